import type { RunSummary } from '../../base/reports/runs.ts'
import type { SourceState } from '../../base/reports/sources.ts'
import type { StorageState } from '../../base/reports/storage.ts'
import type { RelayStatus } from '../../base/reports/transfer.ts'
import type { Misses } from '../../base/reports/webhooks.ts'
import { lastedMs } from '../../store/runs/runs.ts'
import { type Figures, type Sample, STAGES } from './figures.ts'

/** Lists the states of a source, in the order of the page. */
export const SOURCE_STATES: readonly SourceState[] = [
  'never',
  'running',
  'complete',
  'partial',
  'quarantined',
  'failed',
  'stopped',
]
/** Lists those of a target of the relay, and of the data folder. */
export const TARGET_STATES: readonly RelayStatus['state'][] = ['ok', 'failing', 'disabled', 'paused']
export const STORAGE_STATES: readonly StorageState['state'][] = ['ok', 'full', 'failing', 'damaged']

/** Returns the value of what is so, or not. */
export const flag = (is: boolean): number => (is ? 1 : 0)

/** One series for every possible state, 1 for the current one: rules can compare with 0, and no series appears or disappears. */
export const ofStates = (states: readonly string[], current: string, ...labels: string[]): Sample[] =>
  states.map((state) => [flag(state === current), ...labels, state])

type Source = Figures['sources'][number]

/** Makes a series for each source. */
export const perSource =
  (value: (source: Source) => number | null) =>
  ({ sources }: Figures): Sample[] =>
    sources.map((source) => [value(source), source.name])

/** Returns a time in Unix seconds. */
export const seconds = (time: string | null): number | null => (time === null ? null : Date.parse(time) / 1000)

/** Returns how long a run took, seconds; null while it runs. */
export function runSeconds(run: RunSummary): number | null {
  const ms = lastedMs(run)
  return ms === null ? null : ms / 1000
}

/** Makes a series for each kind of views. */
export const perView =
  (isSo: (view: NonNullable<Figures['views']>[number]) => boolean) =>
  ({ views = [] }: Figures): Sample[] =>
    views.map((view) => [flag(isSo(view)), view.kind])

/** Makes a series of what polls and events found of the same changes. */
export const ofWeek =
  (value: (misses: Misses) => number) =>
  ({ webhooks }: Figures): Sample[] => {
    const misses = webhooks?.refresh.misses ?? null
    return misses === null ? [] : [[value(misses), '7d']]
  }

/** Returns how long events took. */
export const latencies = ({ webhooks }: Figures): Sample[] =>
  STAGES.flatMap((stage): Sample[] => {
    const latency = webhooks?.refresh.latency?.[stage] ?? null
    if (latency === null) return []
    return [
      [latency.median / 1000, stage, '50'],
      [latency.p99 / 1000, stage, '99'],
    ]
  })

/** Returns the refreshes that events caused. */
export const refreshes = ({ webhooks }: Figures): Sample[] => {
  if (webhooks === undefined) return []
  const { refreshes: all, failedRefreshes: failed } = webhooks.refresh
  return [
    [failed, 'failed'],
    [all - failed, 'ok'],
  ]
}

/** Returns what became of the bundles in the inbox. */
export const settledBundles = ({ boxes }: Figures): Sample[] => {
  const inbox = boxes?.inbox ?? null
  if (inbox === null) return []
  return (['imported', 'superseded', 'refused'] as const).map((name) => [inbox[name], name])
}

/** Returns what the signatures of artifacts came to. */
export const signaturesOf = ({ signatures }: Source): Sample[] =>
  signatures === null ? [] : (['verified', 'failed', 'none'] as const).map((state) => [signatures[state], state])

/** Returns whether a folder of bundles has a problem; null: it is not configured. */
export const problem = (box: { readonly problem: string | null } | null | undefined): number | null =>
  box ? flag(box.problem !== null) : null
