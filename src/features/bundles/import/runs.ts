import { MirrorError, messageOf } from '../../../base/errors.ts'
import { counted } from '../../../base/text.ts'
import { operatorName } from '../../../base/domain/run-facts.ts'
import { type DoubtCounts, doubtText, doubtedCount, doubtedKinds } from '../../../base/domain/doubts.ts'
import { type SourceName, SOURCES } from '../../../base/domain/sources.ts'
import type { Writes } from '../../../store/writes.ts'
import { doubtsCounted } from '../format/doubts.ts'
import { isWithheld } from '../format/withheld.ts'
import type { Manifest } from '../format/manifest.ts'
import type { RowKind } from '../../../store/replication/rows.ts'
import { WITHHELD_ABOVE } from '../../../store/runs/rejected.ts'
import { scopeFact } from '../../../store/runs/run-scope.ts'
import type { RunFacts } from '../../../store/runs/runs.ts'
import { readDoubtNames } from './carried/doubts.ts'
import type { Bundle } from './open.ts'
import type { ImportOptions, RowCounts } from './types.ts'

/** The rows of an import in the run log, one per source. */
export type ImportRuns = Awaited<ReturnType<typeof startRuns>>

type Counted = Partial<Record<RowKind, RowCounts>>

/** The bundle that leads to what is reported. */
type RunOptions = Pick<ImportOptions, 'store' | 'trigger' | 'now' | 'file'> & {
  readonly bundle: Pick<Bundle, 'manifest' | 'key'>
}

/** Starts a run for each source of an import. */
export async function startRuns(
  { store, bundle, trigger, now, file }: RunOptions,
  sources: readonly SourceName[],
  manifests: readonly Manifest[] = [bundle.manifest],
) {
  const { mirror, sequence, kind } = bundle.manifest
  const by = trigger === 'command' ? { by: operatorName() } : {}
  const facts: RunFacts = { mirror, sequence, bundle: kind, key: bundle.key, file, ...by }
  const ids = await store.exclusive(
    () =>
      new Map(
        sources.map((source) => {
          const started = { source, kind: 'import', trigger, startedAt: now() } as const
          return [source, store.runs.startRun(started)]
        }),
      ),
  )
  return {
    idOf: (source: SourceName): number => ids.get(source) ?? 0,
    /** Ends them successfully, within the transaction that publishes, so that a run reports exactly what was committed. */
    end(message: string | null, changed: Partial<Record<SourceName, Counted>>, rollback: boolean): void {
      const back = rollback ? `ROLLBACK to bundle ${sequence}: ` : ''
      for (const [source, id] of ids) {
        const given = bundle.manifest.sources[source]
        const doubts = message === null ? doubtsCounted(manifests, source) : {}
        const summary = `${back}${message ?? describe(changed[source])}`
        const withheld = isWithheld(bundle.manifest, source)
        const text = [summary, ...doubtSentences(doubts), ...(withheld ? [WITHHELD_ABOVE] : [])].join('; ')
        store.runs.endRun(id, {
          state: given?.whole === false ? 'partial' : 'complete',
          asOf: Date.parse(given?.asOf ?? ''),
          snapshot: given?.snapshot ?? null,
          code: null,
          message: given?.whole === false ? `${text}; the source mirror's data was incomplete` : text,
          facts: {
            ...facts,
            ...scopeFact(store.snapshots.readSnapshot(source)),
            ...factsOf(changed[source]),
            ...doubtFacts(doubts),
            ...(withheld && { withheld: 1 }),
            ...(rollback && { rollback }),
          },
          endedAt: now(),
        })
        store.runs.pruneRuns(source)
      }
    },
    /** Ends them as failed, when nothing was committed. */
    async fail(error: unknown): Promise<void> {
      const code = error instanceof MirrorError ? error.code : 'internal'
      const ended = { asOf: null, code, message: messageOf(error), facts, endedAt: now() }
      await store.exclusive(() => {
        for (const [source, id] of ids) {
          const snapshot = store.snapshots.readSnapshot(source)?.id ?? null
          store.runs.endRun(id, { ...ended, state: 'failed', snapshot })
        }
      })
    },
  }
}

/** Says what the mirror that made the bundle published although its guard doubted it. */
function doubtSentences(doubts: DoubtCounts): string[] {
  const kinds = doubtedKinds({}, doubts)
  if (kinds.length === 0) return []
  const words = kinds.map(([kind]) => {
    const count = doubts[kind] ?? 0
    return `${doubtedCount(kind, count)} ${doubtText(kind, count)} (${kind})`
  })
  return [`doubtful at the mirror that made the bundle: ${words.join(', ')}`]
}

function doubtFacts(doubts: DoubtCounts): RunFacts {
  const count = Object.values(doubts).reduce((sum, one) => sum + one, 0)
  return count === 0 ? {} : { doubts: count }
}

/** Adds the doubts of bundles to the newest row of the log of each source, inside the transaction that publishes. */
export async function noteCarriedDoubts(
  { changes, runs }: Pick<Writes, 'changes' | 'runs'>,
  bundles: readonly Pick<Bundle, 'manifest' | 'stream'>[],
): Promise<void> {
  const manifests = bundles.map(({ manifest }) => manifest)
  const names = await readDoubtNames(bundles)
  for (const source of SOURCES) {
    const counts = doubtsCounted(manifests, source)
    const row = changes.readLatestLogged(source)
    const run = runs.readLatestEndedRun(source)?.id ?? 0
    if (row !== null) changes.noteDoubts(source, row.id - 1, { run, doubted: names.get(source) ?? {}, counts })
  }
}

function describe(changed: Counted | undefined): string {
  if (changed === undefined) return 'nothing changed'
  const { put, removed } = totalOf(changed)
  return `${counted(put, 'row')} put, ${removed} removed`
}

function factsOf(changed: Counted | undefined): RunFacts {
  return changed === undefined ? {} : { ...totalOf(changed) }
}

function totalOf(changed: Counted): RowCounts {
  const all = Object.values(changed)
  const sum = (key: keyof RowCounts): number => all.reduce((total, one) => total + one[key], 0)
  return { put: sum('put'), removed: sum('removed') }
}
