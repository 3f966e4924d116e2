import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry, collectDefaultMetrics } from 'prom-client'

/** Each sample wakes the process, so it is rare: an idle mirror should use no processor time. Shorter delays may be missed. */
const SAMPLE_MS = 1_000
/** The library's own samples are not used: no timer is longer. */
const NEVER_MS = 2 ** 31 - 1

const NANOSECONDS = 1e9
type Samples = ReturnType<typeof monitorEventLoopDelay>
/** Figures of the samples, nanoseconds; each sample is the time from one timer to the next. */
const SAMPLED: Readonly<Record<string, (samples: Samples) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  p50: (samples) => samples.percentile(50),
  p90: (samples) => samples.percentile(90),
  p99: (samples) => samples.percentile(99),
}

/**
 * Registers the library's figures of a process. Its gauges of the event loop's delay are replaced, since they have the time between two
 * samples in them: an idle process would seem to be late by it. They are of the samples since the last scrape that had any.
 */
export function registerProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS })
  registry.removeSingleMetric('nodejs_eventloop_lag_stddev_seconds')
  const samples = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  samples.enable()
  const gauges = Object.keys(SAMPLED).map((figure) => {
    const name = `nodejs_eventloop_lag_${figure}_seconds`
    registry.removeSingleMetric(name)
    const help = `Delay of the event loop in the samples since the last scrape, one each second: ${figure}.`
    return new Gauge({ name, help, registers: [registry], collect: take })
  })
  function take(): void {
    if (samples.count === 0) return // also for the second gauge of a scrape and those after it
    for (const [at, figure] of Object.values(SAMPLED).entries())
      gauges[at]?.set(Math.max(0, figure(samples) / NANOSECONDS - SAMPLE_MS / 1000))
    samples.reset()
  }
}
