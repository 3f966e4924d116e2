import { handleOfTarget } from '../../base/domain/status.ts'
import type { RelayStateChange } from './state-changes.ts'
import { RELAY_DAYS, type RelayTarget } from '../../store/webhooks/outbox.ts'
import type { UnsetTarget } from '../../store/webhooks/target-settings.ts'
import { counted } from '../../base/text.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'
import { warnOnce } from '../../daemon/log-lines.ts'
import { relayUrls, withNames } from '../../config/kinds/relay-targets.ts'
import type { Config } from '../../config/schema.ts'
import { mayReceive } from '../../config/kinds/webhooks.ts'
import { supervise } from '../../base/threads/supervisor.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { FromRelay, RelayStart, ToRelay } from './relay.worker.ts'

type RelayParts = Pick<Parts, 'config' | 'version' | 'log' | 'isExplained' | 'signals' | 'inbox' | 'leads'>

/**
 * Forwards what is received and published, on a thread of its own. Without any receiver yet, the thread starts
 * with the first delivery: the secret of a first subscription may be created while the daemon runs.
 */
export function startRelay(parts: RelayParts): RunningPart {
  const { signals, inbox } = parts
  const targets = targetsOf(inbox)
  let served = 0
  let isFindingsServed = false
  let thread: Promise<RelayThread> | null = isWanted(parts) || hasTargets(inbox) ? begin(parts) : null
  const ask = (work: (running: RelayThread) => void): void => void thread?.then(work)
  /** Starts a thread after another: both would send the same events. */
  const startAfter = (old: Promise<RelayThread> | null): void => {
    thread = Promise.resolve(old)
      .then((running) => running?.close())
      .then(() => begin(parts))
    ask((running) => running.served(served))
    ask((running) => running.servesFindings(isFindingsServed))
  }
  signals.on('served', (upTo) => {
    served = upTo
    ask((running) => running.served(upTo))
  })
  signals.on('judged', () => ask((running) => running.judged()))
  signals.on('delivered', () => (thread === null ? startAfter(null) : undefined))
  signals.on('relaySettings', () => (thread !== null || isWanted(parts) ? startAfter(thread) : undefined))
  return {
    shown: { relayTargets: () => withNames(targets(), parts.config.relay) },
    followed: {
      onFindingsServed(isServed) {
        isFindingsServed = isServed
        ask((running) => running.servesFindings(isServed))
      },
    },
    placed: Promise.resolve(thread),
    async close() {
      await (await thread)?.close()
    },
  }
}

/** The settings of the relay: without targets while another mirror leads, which passes events on. */
function relayOf({ config: { relay }, leads }: RelayParts): Parts['config']['relay'] {
  return leads() ? relay : { ...relay, targets: [] }
}

function isWanted(parts: RelayParts): boolean {
  return wantsRelay({ ...parts.config, relay: relayOf(parts) })
}

function begin(parts: RelayParts): Promise<RelayThread> {
  const { config, version, log, isExplained } = parts
  const relay = relayOf(parts)
  const { data } = config
  const upstream = { ...config.upstream, ...NO_CREDENTIAL }
  const warn = warnOnce(log)
  return startRelayThread({
    config: { relay, upstream, data },
    version,
    onFault(message) {
      if (!isExplained(message)) warn(`relay, which tries again: ${message}`)
    },
    onTurn: (turn) => logStateChange(log, turn, handleOf(parts, turn.id)),
    onUnset: (target, is) => logUnset(parts, target, is),
  })
}

/** What a target is called in the settings, else its number. */
function handleOf({ config, inbox }: RelayParts, id: number): string {
  const target = withNames(targetsOf(inbox)(), config.relay).find((one) => one.id === id)
  return handleOfTarget(target ?? { id, name: null })
}

/** One line for a target that begins to fail, is disabled, or is back; its number is that of `patchmirror relay`. */
function logStateChange(log: RelayParts['log'], { id, state, reason }: RelayStateChange, called: string): void {
  const fields = { target: id, state }
  if (state === 'ok') log.info(fields, `relay: target ${called} takes events again`)
  else if (state === 'failing')
    log.warn({ ...fields, reason }, `relay: target ${called} fails; it is tried again, later and later`)
  else {
    const todo = `"patchmirror relay --enable ${called}" takes it back`
    log.warn({ ...fields, reason }, `relay: target ${called} is disabled and gets nothing more; ${todo}`)
  }
}

/** One line for a target that the settings do not have any more, where something waits, or waited, for it. */
function logUnset({ log, leads }: RelayParts, target: UnsetTarget, is: 'paused' | 'forgotten'): void {
  const { id, pending, givenUp } = target
  const why = leads() ? 'relay.targets does not have it' : 'another mirror of the fleet leads'
  const waiting = `${counted(pending, 'event waits', 'events wait')} ${RELAY_DAYS} days for it to come back`
  const said = is === 'paused' ? `is paused, as ${why}; ${waiting}` : `did not come back and is forgotten`
  const lost = givenUp === 0 ? '' : `; given up: ${counted(givenUp, 'event')}`
  log.warn({ target: id, pending, givenUp }, `relay: target ${handleOfTarget(target)} ${said}${lost}`)
}

/** Reports whether events were forwarded before: what waits for targets that the settings do not have is kept, then given up. */
function hasTargets(inbox: Parts['inbox']): boolean {
  return inbox.read(
    (reads) => reads.listTargets().length > 0,
    () => false,
  )
}

/** Returns what reads the targets: those seen last, while webhooks.db cannot be read. */
function targetsOf(inbox: Parts['inbox']): () => readonly RelayTarget[] {
  let seen: readonly RelayTarget[] = []
  return () =>
    (seen = inbox.read(
      (reads) => reads.listTargets(),
      () => seen,
    ))
}

/** Credentials for receivers: none. */
const NO_CREDENTIAL = { apiKey: null, token: null }

/** The relay's thread as the rest of the program sees it. */
interface RelayThread {
  /** The change log is served up to here: the relay may tell of it. */
  served(log: number): void
  /** The tags were judged again: the relay may tell of it. */
  judged(): void
  /** Whether the findings of tags are served: until they are, the relay tells of none. */
  servesFindings(isServed: boolean): void
  /** Ends it. What is under way is sent again by the next start. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
interface RelayThreadDeps extends RelayStart {
  /** A fault: nothing is lost by it, and it is tried again. */
  readonly onFault: (message: string) => void
  /** A target begins to fail, is disabled, or is back. */
  readonly onTurn: (turn: RelayStateChange) => void
  /** The settings do not have a target. */
  readonly onUnset: (target: UnsetTarget, is: 'paused' | 'forgotten') => void
}

/** Starts the relay. Resolves when it runs, or when it has reported why it cannot start; it is tried again. Never rejects. */
async function startRelayThread({ onFault, onTurn, onUnset, ...data }: RelayThreadDeps): Promise<RelayThread> {
  let served = 0
  let isServed = false
  const supervisor = supervise<ToRelay, FromRelay>({
    file: workerFile('relay.worker', import.meta.url),
    data: () => data satisfies RelayStart,
    limits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 },
    onMessage(message) {
      if (message.type === 'turn') onTurn(message.turn)
      else if (message.type === 'unset') onUnset(message.target, message.is)
      else onFault(message.message)
    },
    onReady() {
      supervisor.post({ type: 'findings', isServed })
      supervisor.post({ type: 'served', log: served })
    },
    onFailed: onFault,
  })
  await supervisor.started
  return {
    served(log) {
      served = log
      supervisor.post({ type: 'served', log })
    },
    judged: () => supervisor.post({ type: 'judged' }),
    servesFindings(now) {
      isServed = now
      supervisor.post({ type: 'findings', isServed })
    },
    close: () => supervisor.stop(),
  }
}

/** Whether there is anything to pass on at start, or anything may be received that somebody follows. */
function wantsRelay(config: Config): boolean {
  return relayUrls(config.relay).length > 0 || mayReceive(config)
}
