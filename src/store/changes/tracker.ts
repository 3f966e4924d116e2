/** How a record or a path differs between two snapshots. */
export type ChangeKind = 'added' | 'changed' | 'removed'

/** The changes of a transaction, recorded by the writers. */
export interface Change {
  /** False: everything may have changed, and `changes` is empty. */
  complete: boolean
  changes: [name: string, kind: ChangeKind][]
}

/** Maximum number of changed names that are listed: with more, followers do a full read. */
export const MAX_TRACKED = 10_000

/** Creates what records what the open transaction of a connection changes, for the change log; it keeps at most `MAX_TRACKED` names in memory. */
export function createChangeTracker() {
  const states = new Map<string, { before: string | null; after: string | null }>()
  let complete = true
  const markIncomplete = (): void => {
    if (!complete) return
    complete = false
    states.clear()
  }
  const clear = (): void => {
    complete = true
    states.clear()
  }
  return {
    /** Whether names are still recorded: false once everything may have changed. */
    isComplete: (): boolean => complete,
    /** Records that too many names changed to list them. */
    markIncomplete,
    /** Discards everything, as at the beginning of a transaction: an earlier one may have been rolled back. */
    clear,
    /**
     * Records a name's state before and after a write: opaque strings that differ whenever the state differs; null if
     * absent.
     */
    record(name: string, before: string | null, after: string | null): void {
      if (!complete) return
      const known = states.get(name)
      if (known !== undefined) known.after = after
      else if (states.size < MAX_TRACKED) states.set(name, { before, after })
      else markIncomplete()
    },
    /** Returns every name that was recorded since the last `take` or `clear`; null: everything may have changed. */
    names: (): string[] | null => (complete ? [...states.keys()] : null),
    /** Returns what was recorded since the last `take` or `clear`; names whose state is the same as before are omitted. */
    take(): Change {
      const changes = [...states].flatMap(([name, { before, after }]): Change['changes'] => {
        const kind = kindOf(before, after)
        return kind === null ? [] : [[name, kind]]
      })
      const taken = { complete, changes }
      clear()
      return taken
    },
  }
}

export type ChangeTracker = ReturnType<typeof createChangeTracker>

function kindOf(before: string | null, after: string | null): ChangeKind | null {
  if (before === after) return null
  if (before === null) return 'added'
  return after === null ? 'removed' : 'changed'
}
