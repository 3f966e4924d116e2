import { MirrorError, messageOf } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import { operatorName } from '../../domain/run-facts.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { RowKind } from '../../store/replication/rows.ts'
import type { RunFacts } from '../../store/runs/runs.ts'
import type { ImportOptions, RowCounts } from './types.ts'

/** The rows of an import in the run log, one per source. */
export interface ImportRuns {
  idOf(source: SourceName): number
  /** Ends them successfully, within the transaction that publishes, so that a run reports exactly what was committed. */
  end(
    message: string | null,
    changed: Partial<Record<SourceName, Counted>>,
    rollback: boolean,
  ): void
  /** Ends them as failed, when nothing was committed. */
  fail(error: unknown): Promise<void>
}

type Counted = Partial<Record<RowKind, RowCounts>>

/** Starts a run for each source of an import. */
export async function startRuns(
  { store, bundle, trigger, now, config, file }: ImportOptions,
  sources: readonly SourceName[],
): Promise<ImportRuns> {
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
    idOf: (source) => ids.get(source) ?? 0,
    end(message, changed, rollback) {
      const back = rollback ? `ROLLBACK to bundle ${sequence}: ` : ''
      for (const [source, id] of ids) {
        const given = bundle.manifest.sources[source]
        const text = `${back}${message ?? describe(changed[source])}`
        store.runs.endRun(id, {
          state: given?.whole === false ? 'partial' : 'complete',
          asOf: Date.parse(given?.asOf ?? ''),
          snapshot: given?.snapshot ?? null,
          code: null,
          message:
            given?.whole === false ? `${text}; the source mirror's data was incomplete` : text,
          facts: { ...facts, ...factsOf(changed[source]), ...(rollback && { rollback }) },
          endedAt: now(),
        })
        store.runs.pruneRuns(source, config.data.keepRuns)
      }
    },
    async fail(error) {
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
