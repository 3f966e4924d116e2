import { Counter, Gauge, Registry } from 'prom-client'

/** A source as the gauges show it. */
export interface SourceFigures {
  readonly name: string
  readonly state: string
  /** Null before the first snapshot. */
  readonly ageSeconds: number | null
  readonly records: number
  /** How long the last run took; null while it runs, and before the first. */
  readonly lastRunSeconds: number | null
}

/** The inbox as the gauges show it; null while it is not available. */
export type InboxFigures = Readonly<Record<string, number>> | null

/** What is counted, and the page that shows it. */
export interface Metrics {
  /** Counts a request at a webhook endpoint; both are words of ours. */
  readonly countWebhook: (outcome: string, reason: string) => void
  /** The page in Prometheus' text format, with the figures as they are now. */
  readonly render: (sources: readonly SourceFigures[], inbox: InboxFigures) => Promise<string>
  readonly contentType: string
}

/** The counters of this process, in a registry of their own: two mirrors in one process do not add up. */
export function createMetrics(): Metrics {
  const registers = [new Registry()] as const
  const [registry] = registers
  const webhooks = new Counter({
    ...{ name: 'patchmirror_webhook_requests_total', registers: [...registers] },
    help: 'Requests at webhook endpoints, by what they came to and why.',
    labelNames: ['outcome', 'reason'] as const,
  })
  const inbox = gauge(registry, 'patchmirror_webhook_inbox_rows', 'Webhooks remembered, by state.', 'state') // prettier-ignore
  const state = gauge(registry, 'patchmirror_source_state', 'State of a source: 1 for the one it is in.', 'source', 'state') // prettier-ignore
  const age = gauge(registry, 'patchmirror_source_age_seconds', 'Age of what is served, by the date of upstream.', 'source') // prettier-ignore
  const records = gauge(registry, 'patchmirror_source_records', 'Records served.', 'source')
  const lastRun = gauge(registry, 'patchmirror_source_last_run_seconds', 'How long the last run took.', 'source') // prettier-ignore
  return {
    contentType: registry.contentType,
    countWebhook: (outcome, reason) => webhooks.inc({ outcome, reason }),
    render(sources, rows) {
      for (const one of [inbox, state, age, records, lastRun]) one.reset()
      for (const [name, count] of Object.entries(rows ?? {})) inbox.set({ state: name }, count)
      for (const source of sources) {
        const label = { source: source.name }
        state.set({ ...label, state: source.state }, 1)
        records.set(label, source.records)
        if (source.ageSeconds !== null) age.set(label, source.ageSeconds)
        if (source.lastRunSeconds !== null) lastRun.set(label, source.lastRunSeconds)
      }
      return registry.metrics()
    },
  }
}

function gauge(registry: Registry, name: string, help: string, ...labelNames: string[]): Gauge {
  return new Gauge({ name, help, labelNames, registers: [registry] })
}
