import { Counter, Gauge, Registry } from 'prom-client'
import type { Figures } from './metric-figures.ts'
import { METRICS } from './metric-table.ts'

/** What is counted, and the page that shows it. */
interface Metrics {
  /** Counts a request at a webhook endpoint; both are words of ours. */
  readonly countWebhook: (outcome: string, reason: string) => void
  /** Counts connections that were closed or refused for want of places; the reason is a word of ours. */
  readonly countClosed: (reason: string, count: number) => void
  /** What the receiving side of webhooks counts by. */
  readonly webhooks: {
    readonly onOutcome: Metrics['countWebhook']
    readonly onClosed: Metrics['countClosed']
  }
  /** The page in Prometheus' text format, with the figures as they are now. */
  readonly render: (figures: Figures) => Promise<string>
  readonly contentType: string
}

/** The metrics of this process, in a registry of their own: two mirrors in one process do not add up. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const webhooks = new Counter({
    name: 'patchmirror_webhook_requests_total',
    help: 'Requests at webhook endpoints, by what they came to and why.',
    labelNames: ['outcome', 'reason'] as const,
    registers,
  })
  const closed = new Counter({
    name: 'patchmirror_connections_closed_total',
    help: 'Connections that were closed or refused for want of places, by reason.',
    labelNames: ['reason'] as const,
    registers,
  })
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
  const countWebhook: Metrics['countWebhook'] = (outcome, reason) =>
    webhooks.inc({ outcome, reason })
  const countClosed: Metrics['countClosed'] = (reason, count) => closed.inc({ reason }, count)
  return {
    contentType: registry.contentType,
    countWebhook,
    countClosed,
    webhooks: { onOutcome: countWebhook, onClosed: countClosed },
    render(figures) {
      for (const update of updates) update(figures)
      return registry.metrics()
    },
  }
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
