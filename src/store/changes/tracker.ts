/** What became of a record or a path between two snapshots. */
export type ChangeKind = 'added' | 'changed' | 'removed'

/** What a transaction did, noted by the writers while they do it. */
export interface Change {
  /** False: everything may have changed, and `changes` is empty. */
  complete: boolean
  changes: [name: string, kind: ChangeKind][]
}

/** Notes of one write connection: what the open transaction changed, for the change log. */
export interface ChangeTracker {
  /** A name's state before and after a write, as any text that tells states apart; null: not there. */
  record(name: string, before: string | null, after: string | null): void
  /** Whether names are still noted: false once everything may have changed. */
  isComplete(): boolean
  /** Something was written whose names are too many to note. */
  markIncomplete(): void
  /** What was noted since the last `take` or `clear`; a name that is as it was before is left out. */
  take(): Change
  /** Forgets, as at the begin of a transaction: what an earlier one noted may have been rolled back. */
  clear(): void
}

/** More changed names than this are not worth a list: whoever follows reads everything anew. */
export const MAX_TRACKED = 10_000

/** Notes that hold at most `MAX_TRACKED` names in memory. */
export function createChangeTracker(): ChangeTracker {
  const noted = new Map<string, { before: string | null; after: string | null }>()
  let complete = true
  const markIncomplete = (): void => {
    if (!complete) return
    complete = false
    noted.clear()
  }
  const clear = (): void => {
    complete = true
    noted.clear()
  }
  return {
    isComplete: () => complete,
    markIncomplete,
    clear,
    record(name, before, after) {
      if (!complete) return
      const known = noted.get(name)
      if (known !== undefined) known.after = after
      else if (noted.size < MAX_TRACKED) noted.set(name, { before, after })
      else markIncomplete()
    },
    take() {
      const changes = [...noted].flatMap(([name, { before, after }]): Change['changes'] => {
        const kind = kindOf(before, after)
        return kind === null ? [] : [[name, kind]]
      })
      const taken = { complete, changes }
      clear()
      return taken
    },
  }
}

function kindOf(before: string | null, after: string | null): ChangeKind | null {
  if (before === after) return null
  if (before === null) return 'added'
  return after === null ? 'removed' : 'changed'
}
