import type { ServerLog } from './failure.ts'
import type { ServedSnapshot } from './moment.ts'

const POLL_MS = 500

/** Keeps looking for new snapshots until it is stopped. */
export interface SnapshotWatcher {
  /** Moves the moment now; a fault of the store is logged and tried again at the next look. */
  readonly look: () => void
  readonly stop: () => void
}

/** Keeps the moment at the newest snapshots: another process may have committed, as `patchmirror sync` does. */
export function followStore(
  moment: Pick<ServedSnapshot, 'refresh'>,
  log: ServerLog | null,
): SnapshotWatcher {
  let failing = false
  const look = (): void => {
    try {
      moment.refresh()
      if (failing) log?.info({}, 'the database can be read again')
      failing = false
    } catch (error) {
      if (!failing)
        log?.error({ err: error }, 'cannot look for new snapshots; the old ones serve on')
      failing = true
    }
  }
  const timer = setInterval(look, POLL_MS).unref()
  return { look, stop: () => clearInterval(timer) }
}
