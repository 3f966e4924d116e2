import { Counter, Gauge, Registry } from 'prom-client'
import {
  type BoxesFigures,
  type BundleFigures,
  type Figures,
  type RefreshFigures,
  type RelayFigures,
  type ViewsFigures,
  STAGES,
} from './metric-figures.ts'

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

/** The counters of this process, in a registry of their own: two mirrors in one process do not add up. */
export function createMetrics(): Metrics {
  const registers = [new Registry()] as const
  const [registry] = registers
  const webhooks = new Counter({
    ...{ name: 'patchmirror_webhook_requests_total', registers: [...registers] },
    help: 'Requests at webhook endpoints, by what they came to and why.',
    labelNames: ['outcome', 'reason'] as const,
  })
  const closed = new Counter({
    ...{ name: 'patchmirror_connections_closed_total', registers: [...registers] },
    help: 'Connections that were closed or refused for want of places, by reason.',
    labelNames: ['reason'] as const,
  })
  const inbox = gauge(registry, 'patchmirror_webhook_inbox_rows', 'Webhooks remembered, by state.', 'state') // prettier-ignore
  const state = gauge(registry, 'patchmirror_source_state', 'State of a source: 1 for the one it is in.', 'source', 'state') // prettier-ignore
  const age = gauge(registry, 'patchmirror_source_age_seconds', 'Age of what is served, by the date of upstream.', 'source') // prettier-ignore
  const records = gauge(registry, 'patchmirror_source_records', 'Records served.', 'source')
  const partial = gauge(registry, 'patchmirror_source_partial_lists', 'Lists served that are not known to be complete.', 'source') // prettier-ignore
  const lastRun = gauge(registry, 'patchmirror_source_last_run_seconds', 'How long the last run took.', 'source') // prettier-ignore
  const showRefreshes = createRefreshGauges(registry)
  const showRelay = createRelayGauges(registry)
  const showBundle = createBundleGauges(registry)
  const showViews = createViewsGauges(registry)
  const showBoxes = createBoxesGauges(registry)
  const showStorage = createStorageGauges(registry)
  const countWebhook: Metrics['countWebhook'] = (outcome, reason) =>
    webhooks.inc({ outcome, reason })
  const countClosed: Metrics['countClosed'] = (reason, count) => closed.inc({ reason }, count)
  return {
    contentType: registry.contentType,
    countWebhook,
    countClosed,
    webhooks: { onOutcome: countWebhook, onClosed: countClosed },
    render({ sources, inbox: rows, refresh, relay, bundle = null, views = [], boxes, storage }) {
      showViews(views)
      showBoxes(boxes ?? { outbox: null, inbox: null })
      showStorage(storage)
      showRefreshes(refresh)
      showRelay(relay)
      showBundle(bundle)
      for (const one of [inbox, state, age, records, partial, lastRun]) one.reset()
      for (const [name, count] of Object.entries(rows ?? {})) inbox.set({ state: name }, count)
      for (const source of sources) {
        const label = { source: source.name }
        setStates(state, label, SOURCE_STATES, source.state)
        records.set(label, source.records)
        partial.set(label, source.partialListCount)
        if (source.ageSeconds !== null) age.set(label, source.ageSeconds)
        if (source.lastRunSeconds !== null) lastRun.set(label, source.lastRunSeconds)
      }
      return registry.metrics()
    },
  }
}

const WEEK = { window: '7d' }

function createRefreshGauges(registry: Registry): (refresh: RefreshFigures) => void {
  const refreshes = new Counter({
    ...{ name: 'patchmirror_webhook_refreshes_total', registers: [registry] },
    help: 'Refreshes that webhooks caused since the start, by outcome.',
    labelNames: ['outcome'] as const,
  })
  const latency = gauge(registry, 'patchmirror_webhook_latency_seconds', 'Time from being received, of the newest webhooks that are done.', 'stage', 'percentile') // prettier-ignore
  const unannounced = gauge(registry, 'patchmirror_webhook_unannounced_changes', 'Tags of a week that a poll found and no webhook announced.', 'window') // prettier-ignore
  const unconfirmed = gauge(registry, 'patchmirror_webhook_unconfirmed_announcements', 'Webhooks of a week whose tag was never listed.', 'window') // prettier-ignore
  const suspect = gauge(registry, 'patchmirror_webhook_subscription_suspect', '1: changes come, webhooks do not.', 'window') // prettier-ignore
  return (refresh) => {
    for (const one of [refreshes, latency, unannounced, unconfirmed, suspect]) one.reset()
    if (refresh === null) return
    const { failedRefreshes: failed } = refresh
    refreshes.inc({ outcome: 'failed' }, failed)
    refreshes.inc({ outcome: 'ok' }, refresh.refreshes - failed)
    for (const stage of STAGES) {
      const spread = refresh.latency?.[stage] ?? null
      if (spread === null) continue
      latency.set({ stage, percentile: '50' }, spread.median / 1000)
      latency.set({ stage, percentile: '99' }, spread.p99 / 1000)
    }
    if (refresh.misses === null) return
    const { misses } = refresh
    unannounced.set(WEEK, misses.unannounced)
    unconfirmed.set(WEEK, misses.unconfirmed)
    suspect.set(WEEK, misses.warning === null ? 0 : 1)
  }
}

function createRelayGauges(registry: Registry): (targets: readonly RelayFigures[]) => void {
  const state = gauge(registry, 'patchmirror_relay_target_state', 'State of a target: 1 for the one it is in.', 'target', 'state') // prettier-ignore
  const waiting = gauge(registry, 'patchmirror_relay_waiting', 'Events that wait for a target.', 'target') // prettier-ignore
  const givenUp = counter(registry, 'patchmirror_relay_given_up_total', 'Events that a target never took.', 'target') // prettier-ignore
  return (targets) => {
    for (const one of [state, waiting, givenUp]) one.reset()
    for (const { id, ...target } of targets) {
      const label = { target: String(id) }
      setStates(state, label, TARGET_STATES, target.state)
      waiting.set(label, target.pending)
      givenUp.inc(label, target.givenUp)
    }
  }
}

function createBundleGauges(registry: Registry): (bundle: BundleFigures) => void {
  const sequence = gauge(registry, 'patchmirror_bundle_sequence', 'Number of the bundle that was imported last.') // prettier-ignore
  const time = gauge(registry, 'patchmirror_bundle_import_timestamp_seconds', 'When a bundle was imported last.') // prettier-ignore
  return (bundle) => {
    // Without labels a gauge that was never set shows 0, and that is no sequence and no time.
    for (const one of [sequence, time]) one.remove()
    if (bundle === null) return
    sequence.set(bundle.sequence)
    time.set(Date.parse(bundle.importedAt) / 1000)
  }
}

function createBoxesGauges(registry: Registry): (boxes: BoxesFigures) => void {
  const sequence = gauge(registry, 'patchmirror_outbox_sequence', 'Number of the bundle that was put into the outbox last.') // prettier-ignore
  const failing = gauge(registry, 'patchmirror_outbox_failing', '1: the outbox could not be filled the last time.') // prettier-ignore
  const waiting = gauge(registry, 'patchmirror_inbox_waiting', 'Bundles that wait in the inbox.') // prettier-ignore
  const blind = gauge(registry, 'patchmirror_inbox_failing', '1: the inbox could not be looked into the last time.') // prettier-ignore
  const settled = counter(registry, 'patchmirror_inbox_bundles_total', 'Bundles that came into the inbox since the start, by what became of them.', 'outcome') // prettier-ignore
  return ({ outbox, inbox }) => {
    // Without labels a gauge that was never set shows 0.
    for (const one of [sequence, failing, waiting, blind]) one.remove()
    settled.reset()
    if (outbox !== null) failing.set(outbox.problem === null ? 0 : 1)
    const last = outbox?.last ?? null
    if (last !== null) sequence.set(last.sequence)
    if (inbox === null) return
    waiting.set(inbox.waiting.length)
    blind.set(inbox.problem === null ? 0 : 1)
    for (const outcome of ['imported', 'superseded', 'refused'] as const)
      settled.inc({ outcome }, inbox[outcome])
  }
}

function createViewsGauges(registry: Registry): (views: readonly ViewsFigures[]) => void {
  const current = gauge(registry, 'patchmirror_views_current', '1: what scanners read shows what is served.', 'kind') // prettier-ignore
  const making = gauge(registry, 'patchmirror_views_making', '1: it is made just now.', 'kind') // prettier-ignore
  const failing = gauge(registry, 'patchmirror_views_failing', '1: it could not be made the last time.', 'kind') // prettier-ignore
  return (views) => {
    for (const one of [current, making, failing]) one.reset()
    for (const view of views) {
      const label = { kind: view.kind }
      current.set(label, view.state === 'current' ? 1 : 0)
      making.set(label, view.making ? 1 : 0)
      failing.set(label, view.failing ? 1 : 0)
    }
  }
}

function createStorageGauges(registry: Registry): (storage: Figures['storage']) => void {
  const state = gauge(registry, 'patchmirror_storage_state', 'State of the data folder: 1 for the one it is in.', 'state') // prettier-ignore
  const free = gauge(registry, 'patchmirror_storage_free_bytes', 'Free on the disk of the data folder.') // prettier-ignore
  return (storage) => {
    state.reset()
    free.remove() // without labels a gauge that was never set shows 0
    if (storage === undefined) return
    setStates(state, {}, STORAGE_STATES, storage.state)
    if (storage.freeBytes !== null) free.set(storage.freeBytes)
  }
}

const SOURCE_STATES = ['never', 'running', 'complete', 'partial', 'quarantined', 'failed'] as const
const TARGET_STATES = ['ok', 'failing', 'disabled'] as const
const STORAGE_STATES = ['ok', 'full', 'failing'] as const

/** Shows every state that there is, 1 for the one that holds: a rule can then compare with 0, and no series comes and goes. */
function setStates(
  gauge: Gauge,
  labels: Readonly<Record<string, string>>,
  states: readonly string[],
  current: string,
): void {
  for (const state of states) gauge.set({ ...labels, state }, state === current ? 1 : 0)
}

/** A counter whose value is kept elsewhere: it is reset, and increased to that, for each page. */
function counter(registry: Registry, name: string, help: string, ...labelNames: string[]): Counter {
  return new Counter({ name, help, labelNames, registers: [registry] })
}

function gauge(registry: Registry, name: string, help: string, ...labelNames: string[]): Gauge {
  return new Gauge({ name, help, labelNames, registers: [registry] })
}
