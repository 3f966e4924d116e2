import { createWebhookLog } from '../api/followers/event-log.ts'
import type { ServerOptions } from '../api/server.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { HOUR_MS } from '../core/time.ts'
import { type RelayThread, startRelayThread, wantsRelay } from '../relay/thread.ts'
import type { RelayStateChange } from '../relay/state-changes.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { inboxPath } from '../store/database/open.ts'
import type { RelayTarget } from '../store/webhooks/outbox.ts'
import { type Attempt, type InboxView, createInboxView } from './inbox-view.ts'
import { warnOnce } from './log-lines.ts'

/** What the relay is started with. */
interface RelayStartOptions {
  readonly config: Config
  readonly version: string
  readonly log: Pick<Logger, 'warn' | 'info'>
  /** Reports whether the cause of a fault is in the log, as that of a database which all parts use. */
  readonly isExplained: (message: string) => boolean
}

/** The relay, and what the server shows of it. */
export interface RunningRelay {
  /** For the server's options. */
  shown: Pick<ServerOptions, 'webhookLog' | 'relayTargets' | 'onServed' | 'onFindingsServed'>
  /** Resolves when its first position in the change log is stored, or when it cannot start yet; never rejects. */
  readonly placed: Promise<unknown>
  /** Adds a listener that is called when webhooks.db was written to, by any process. */
  readonly onWritten: InboxView['onWritten']
  /** A delivery was stored: clients of the event stream are to be notified. */
  arrived(): void
  /** The tags were judged again: what changed in their findings is to be sent. */
  judged(): void
  /** Ends it and starts it again with the settings in force. */
  restart(): void
  /** Ends it; after the server. */
  close(): Promise<void>
}

/**
 * Forwards what is received and published, on a thread of its own. Without any receiver yet, the thread starts
 * with the first delivery: the secret of a first subscription may be created while the daemon runs.
 */
export function startRelay(options: RelayStartOptions): RunningRelay {
  const { config } = options
  const attempt = createAttempt(options)
  const view = createInboxView(config.data.dir, attempt)
  let served = 0
  let isFindingsServed = false
  let thread: Promise<RelayThread> | null = wantsRelay(config) || hasTargets(view, attempt) ? begin(options) : null
  const look = (): void => void thread?.then((begun) => begun.written())
  view.onWritten(look)
  const looking = setInterval(look, HOUR_MS).unref() // events get too old while the thread rests
  const onServed = (upTo: number): void => {
    served = upTo
    void thread?.then((begun) => begun.served(upTo))
  }
  const onFindingsServed = (isServed: boolean): void => {
    isFindingsServed = isServed
    void thread?.then((begun) => begun.servesFindings(isServed))
  }
  /** Tells a new thread what is served. */
  const tell = (): void => {
    onServed(served)
    onFindingsServed(isFindingsServed)
  }
  return {
    shown: { ...shownOf(view, attempt), onServed, onFindingsServed },
    placed: Promise.resolve(thread),
    onWritten: view.onWritten,
    arrived() {
      if (thread !== null) return
      thread = begin(options)
      tell()
    },
    judged: () => void thread?.then((begun) => begun.judged()),
    restart() {
      if (thread === null && !wantsRelay(config)) return
      const old = thread
      // One after the other: both would send the same events.
      thread = Promise.resolve(old)
        .then((running) => running?.close())
        .then(() => begin(options))
      tell()
    },
    async close() {
      await (await thread)?.close()
      clearInterval(looking)
      view.close()
    },
  }
}

function begin({ config, version, log, isExplained }: RelayStartOptions): Promise<RelayThread> {
  const { relay, data } = config
  const upstream = { ...config.upstream, ...NO_CREDENTIAL }
  const warn = warnOnce(log)
  return startRelayThread({
    config: { relay, upstream, data },
    version,
    onFault(message) {
      if (!isExplained(message)) warn(`relay, which tries again: ${message}`)
    },
    onTurn: (turn) => logStateChange(log, turn),
  })
}

/** One line for a target that begins to fail, is disabled, or is back; its number is that of `relay status`. */
function logStateChange(log: RelayStartOptions['log'], { id, state, reason }: RelayStateChange): void {
  const fields = { target: id, state }
  if (state === 'ok') log.info(fields, `relay: target ${id} takes events again`)
  else if (state === 'failing')
    log.warn({ ...fields, reason }, `relay: target ${id} fails; it is tried again, later and later`)
  else {
    const todo = `"patchmirror relay enable ${id}" takes it back`
    log.warn({ ...fields, reason }, `relay: target ${id} is disabled and gets nothing more; ${todo}`)
  }
}

/** Reports whether events were forwarded before: targets removed from the settings are deleted, with what waits for them. */
function hasTargets({ reads }: InboxView, attempt: Attempt): boolean {
  const targets = attempt(
    () => reads()?.listTargets() ?? [],
    () => [],
  )
  return targets.length > 0
}

function createAttempt({ log, isExplained, config: { data } }: RelayStartOptions): Attempt {
  const warn = warnOnce(log) // status pages are requested often
  return (work, otherwise) => {
    try {
      return work()
    } catch (error) {
      const why = messageOf(nameStorageError(error, data.dir, inboxPath(data.dir)))
      if (!isExplained(why)) warn(`what is passed on cannot be shown: ${why}`)
      return otherwise()
    }
  }
}

type Shown = Pick<RunningRelay['shown'], 'webhookLog' | 'relayTargets'>

/** What the server shows. A damaged webhooks.db takes none of the mirror's pages with it: they go by what was seen last. */
function shownOf({ reads }: InboxView, attempt: Attempt): Required<Shown> {
  const log = () => {
    const stored = reads()
    return stored && createWebhookLog(stored)
  }
  let last = 0
  let targets: readonly RelayTarget[] = []
  return {
    relayTargets: () =>
      (targets = attempt(
        () => reads()?.listTargets() ?? [],
        () => targets,
      )),
    webhookLog: {
      last: () =>
        (last = attempt(
          () => log()?.last() ?? 0,
          () => last,
        )),
      // Fewer than the last id: a client that returns with its position starts from the beginning.
      count: (after) =>
        attempt(
          () => log()?.count(after) ?? 0,
          () => -1,
        ),
      list: (after, limit) =>
        attempt(
          () => log()?.list(after, limit) ?? [],
          () => [],
        ),
    },
  }
}

/** Credentials for receivers: none. */
const NO_CREDENTIAL = { apiKey: null, token: null, clientId: null, clientSecret: null }
