import { basename } from 'node:path'
import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import { toIso } from '../base/time.ts'
import { isUnreadable, nameStorageError } from '../store/database/faults.ts'
import { databaseOf } from '../store/located.ts'
import { databasePath } from '../store/database/open.ts'
import { probeStorage } from '../store/disk-state.ts'
import type { StorageState } from '../base/reports/storage.ts'
import { probeReads, wasRepairedSince } from '../store/read-probe.ts'

/** What watches the data folder of a daemon. */
export type StorageWatch = ReturnType<typeof watchStorage>

interface WatchOptions {
  readonly dataDir: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly now: () => number
  /** Called when the folder can be written to again. */
  readonly onRoom: () => void
  /** Interval between two looks that nothing asked for, milliseconds. */
  readonly intervalMs?: number
}

/** A full disk is in the log within this time, milliseconds. */
const INTERVAL_MS = 5_000
/** A look that writes a probe file shows quotas, which no number does; every so many looks. */
const WRITE_EVERY = 12

/** What cannot be read. */
interface Damage {
  readonly since: number
  /** For everybody: without the folder's name. */
  readonly reason: string
  /** Whether a probe that finds nothing ends it: a probe found it, or the disk failed. Else only a repair does. */
  readonly isPassing: boolean
}

/** Watches a data folder: each state is logged when it begins and when it ends, and not between. */
export function watchStorage(options: WatchOptions) {
  const { dataDir, log, now, onRoom, intervalMs = INTERVAL_MS } = options
  const damage = watchDamage(options)
  let known: StorageState = { state: 'ok', reason: null, freeBytes: null }
  let looks = 0
  const look = (write: boolean): void => {
    damage.look()
    const found = probeStorage(dataDir, write || known.state !== 'ok')
    const { state } = known
    if (found.state === state) known = { ...known, ...found }
    else known = found.state === 'ok' ? found : { ...found, since: toIso(now()) }
    if (found.state !== 'ok' && found.state !== state) log.warn({ storage: found.state }, `${found.reason}. ${WAITING}`)
    if (found.state !== 'ok' || state === 'ok') return
    log.info({}, 'the data folder (data.dir) can be written to again')
    onRoom()
  }
  const timer = setInterval(() => look(looks++ % WRITE_EVERY === 0), intervalMs).unref()
  return {
    /** Looks at the data folder, and returns its state; reports ask once a second at most. */
    state: (): StorageState => {
      look(true)
      const found = damage.found()
      if (found === null) return known
      const { reason, since } = found
      return { state: 'damaged', reason, freeBytes: known.freeBytes, since: toIso(since) }
    },
    /**
     * Notes an error that a read of the mirror met. True when it says that stored data cannot be read: then the log has it, once for its
     * cause. False for any other error.
     */
    note: damage.note,
    /** Reports whether a message of a part says no more than that stored data cannot be read, which is in the log. */
    explains: (message: string): boolean => {
      if (!message.startsWith(`${databasePath(dataDir)} is damaged`)) return false
      damage.look()
      return damage.found() !== null
    },
    /** Looks at the folder now, as after a write that failed. */
    look: (): void => look(true),
    stop: (): void => clearInterval(timer),
  }
}

const WAITING = 'What is stored is served; syncs, webhooks and what else is to be stored wait for that'

function watchDamage({ dataDir, log, now }: WatchOptions) {
  const path = databasePath(dataDir)
  let found: Damage | null = null
  let known: bigint | null = null
  const met = (error: unknown, byProbe: boolean): void => {
    const isPassing = byProbe || isFailingDisk(error)
    if (found === null) {
      const text = messageOf(nameStorageError(error, dataDir, path))
      log.error({ storage: 'damaged' }, `${text} ${UNREAD}`)
      found = { since: now(), reason: openReason(error), isPassing }
    } else if (!isPassing) found = { ...found, isPassing }
  }
  return {
    found: (): Damage | null => found,
    note: (error: unknown): boolean => {
      if (!isUnreadable(error)) return false
      const file = databaseOf(error)
      if (file === null || basename(file) !== basename(path)) return false // webhooks.db and what is derived are logged by their parts
      met(error, false)
      return true
    },
    look(): void {
      try {
        known = probeReads(dataDir, known)
      } catch (error) {
        if (isUnreadable(error)) met(error, true)
        return
      }
      if (found === null) return
      if (!found.isPassing && !isRepaired(dataDir, found.since)) return
      found = null
      log.info({}, 'what is stored (mirror.db) can be read again')
    },
  }
}

const UNREAD = 'What cannot be read is answered with 503, and /-/ready is 503 until this is over'

function isRepaired(dataDir: string, since: number): boolean {
  try {
    return wasRepairedSince(dataDir, since)
  } catch {
    return false
  }
}

function isFailingDisk(error: unknown): boolean {
  const named = nameStorageError(error, null)
  return named instanceof Error && 'code' in named && named.code === 'storage'
}

function openReason(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const what = isFailingDisk(error) ? 'cannot be read' : 'is damaged'
  return `mirror.db ${what} (${messageOf(inner)}): the log says what to do`
}
