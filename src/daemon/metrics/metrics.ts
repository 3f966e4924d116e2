import { X509Certificate } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { Run } from '../../store/runs/runs.ts'
import type { Figures } from './figures.ts'
import { METRICS } from './table.ts'
import { readNamedFile } from '../../base/files.ts'

/** Upper bounds of the histogram of answers, seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30]

/** What is counted, and the page that shows it. */
interface Metrics extends Counters {
  /** The page in Prometheus' text format, with the figures as they are now. */
  readonly render: (figures: Omit<Figures, 'certificates'>) => Promise<string>
  readonly contentType: string
}

/** The metrics of this process, in a registry of their own: two mirrors in one process do not add up. */
export function createMetrics(
  version = 'unknown',
  certificateFiles: Readonly<Record<string, string | null>> = {},
): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const counters = createCounters(registry, version)
  const updates = METRICS.map(([name, help, type, labels, series]) => {
    const metric = createMetric({ name, help, labelNames: [...labels], registers }, type)
    return (figures: Figures): void => {
      metric.clear()
      for (const [value, ...values] of series(figures)) {
        const named = Object.fromEntries(labels.map((label, i) => [label, values[i] ?? '']))
        if (value !== null) metric.show(named, value)
      }
    }
  })
  return {
    ...counters,
    contentType: registry.contentType,
    render(figures) {
      const shown = { ...figures, certificates: readCertificates(certificateFiles) }
      for (const update of updates) update(shown)
      return registry.metrics()
    },
  }
}

/** Reads when certificates expire; one that cannot be read is left out, since the daemon does not serve with it either. */
function readCertificates(files: Readonly<Record<string, string | null>>): Figures['certificates'] {
  return Object.entries(files).flatMap(([name, file]) => {
    if (file === null) return []
    try {
      return [{ name, expiresAt: Date.parse(new X509Certificate(readNamedFile(file)).validTo) }]
    } catch {
      return []
    }
  })
}

interface Settings {
  readonly name: string
  readonly help: string
  readonly labelNames: string[]
  readonly registers: Registry[]
}

interface Shown {
  /** Removes every series. */
  readonly clear: () => void
  readonly show: (labels: Record<string, string>, value: number) => void
}

function createMetric(settings: Settings, type: 'gauge' | 'counter'): Shown {
  if (type === 'counter') {
    const counter = new Counter(settings)
    return {
      clear: () => counter.reset(),
      show: (labels, value) => counter.inc(labels, value),
    }
  }
  const gauge = new Gauge(settings)
  // A gauge without labels shows 0 after a reset; removed, it shows nothing until it is set.
  const clear = settings.labelNames.length === 0 ? () => gauge.remove() : () => gauge.reset()
  return { clear, show: (labels, value) => gauge.set(labels, value) }
}

/** What is counted when it happens, since the start of the process. */
export interface Counters {
  /** Counts a request at a webhook endpoint; both are words of ours. */
  readonly countWebhook: (outcome: string, reason: string) => void
  /** Counts connections that were closed or refused because none was free; the reason is a word of ours. */
  readonly countClosed: (reason: string, count: number) => void
  /** Counts requests that were refused or ended because there was no room for their bytes; the reason is a word of ours. */
  readonly countShort: (reason: string, count: number) => void
  /** Counts an answer: the surface of its path, its status, and the seconds from the request to its end. */
  readonly countAnswer: (surface: string, code: number, seconds: number) => void
  /** Counts a run that has ended, with its requests and bytes upstream. */
  readonly countRun: (run: Pick<Run, 'source' | 'kind' | 'state' | 'facts'>) => void
}

/** Gauges of the library whose names are those of counters; their sums are in the gauges without `_total`. */
const MISNAMED = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`)

/** Registers the counters, the figures of the process and the build. */
function createCounters(registry: Registry, version: string): Counters {
  const registers = [registry]
  registerProcess(registry)
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const build = new Gauge({
    name: 'patchmirror_build_info',
    help: 'Always 1; the version is a label.',
    labelNames: ['version'] as const,
    registers,
  })
  build.set({ version }, 1)
  const webhooks = new Counter({
    name: 'patchmirror_webhook_requests_total',
    help: 'Requests at webhook endpoints, by outcome and reason.',
    labelNames: ['outcome', 'reason'] as const,
    registers,
  })
  const closed = new Counter({
    name: 'patchmirror_connections_closed_total',
    help: 'Connections that were closed or refused because none was free, by reason.',
    labelNames: ['reason'] as const,
    registers,
  })
  const short = new Counter({
    name: 'patchmirror_requests_short_of_memory_total',
    help: 'Requests that were refused or ended because bodies and unsent answers had used up their memory, by reason.',
    labelNames: ['reason'] as const,
    registers,
  })
  return {
    countWebhook: (outcome, reason) => webhooks.inc({ outcome, reason }),
    countClosed: (reason, count) => closed.inc({ reason }, count),
    countShort: (reason, count) => short.inc({ reason }, count),
    countAnswer: createAnswers(registry),
    countRun: createRuns(registers),
  }
}

function createRuns(registers: Registry[]): Counters['countRun'] {
  const runs = new Counter({
    name: 'patchmirror_runs_total',
    help: 'Runs that ended, by source, kind and state.',
    labelNames: ['source', 'kind', 'state'] as const,
    registers,
  })
  const [requests, bytes] = (['requests', 'bytes'] as const).map(
    (name) =>
      new Counter({
        name: `patchmirror_upstream_${name}_total`,
        help: `Cost of the runs that ended: ${name} upstream.`,
        labelNames: ['source'] as const,
        registers,
      }),
  )
  return ({ source, kind, state, facts }) => {
    runs.inc({ source, kind, state })
    requests?.inc({ source }, Number(facts['requests'] ?? 0))
    bytes?.inc({ source }, Number(facts['bytes'] ?? 0))
  }
}

/**
 * Creates the counts of answers. Those by surface and status are plain numbers, put into the library's form when the page is
 * read, because the fast path counts each answer: measured 0.2 µs for an answer, 0.65 µs with the library's counter.
 */
function createAnswers(registry: Registry): Counters['countAnswer'] {
  const counts = new Map<string, Map<number, number>>()
  registry.registerMetric(
    new Counter({
      name: 'patchmirror_http_requests_total',
      help: 'Requests that were answered, by surface and status.',
      labelNames: ['surface', 'code'] as const,
      registers: [],
      collect() {
        this.reset()
        for (const [surface, codes] of counts) for (const [code, count] of codes) this.inc({ surface, code }, count)
      },
    }),
  )
  const times = new Histogram({
    name: 'patchmirror_http_request_duration_seconds',
    help: 'Time from the request to the end of its answer.',
    buckets: BUCKETS,
    registers: [registry],
  })
  return (surface, code, seconds) => {
    let codes = counts.get(surface)
    if (codes === undefined) counts.set(surface, (codes = new Map<number, number>()))
    codes.set(code, (codes.get(code) ?? 0) + 1)
    times.observe(seconds)
  }
}

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
function registerProcess(registry: Registry): void {
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
