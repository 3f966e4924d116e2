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
import { type Supervisor, supervise } from '../../base/threads/supervisor.ts'
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
  const state: RelayState = { served: 0, isFindingsServed: false }
  let thread: Promise<RelayThread> | null = isWanted(parts) || hasTargets(inbox) ? begin(parts, state) : null
  const post = (message: ToRelay): void => void thread?.then((running) => running.post(message))
  /** Starts a thread after another: both would send the same events. */
  const startAfter = (old: Promise<RelayThread> | null): void => {
    thread = Promise.resolve(old)
      .then((running) => running?.stop())
      .then(() => begin(parts, state))
  }
  signals.on('served', (upTo) => {
    state.served = upTo
    post({ type: 'served', log: upTo })
  })
  signals.on('judged', () => post({ type: 'judged' }))
  signals.on('delivered', () => (thread === null ? startAfter(null) : undefined))
  signals.on('relaySettings', () => (thread !== null || isWanted(parts) ? startAfter(thread) : undefined))
  return {
    shown: { relayTargets: () => withNames(targets(), parts.config.relay) },
    followed: {
      onFindingsServed(isServed) {
        state.isFindingsServed = isServed
        post({ type: 'findings', isServed })
      },
    },
    placed: Promise.resolve(thread),
    async close() {
      await (await thread)?.stop() // what is under way is sent again by the next start
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

/** What is sent to each thread when it is ready. */
interface RelayState {
  /** The change log is served up to here. */
  served: number
  /** Whether the findings of tags are served. */
  isFindingsServed: boolean
}

type RelayThread = Supervisor<ToRelay>

/** Starts a thread. Resolves when it runs, or when it has reported why it cannot start; it is tried again. Never rejects. */
async function begin(parts: RelayParts, state: RelayState): Promise<RelayThread> {
  const { config, version, log, isExplained } = parts
  const upstream = { ...config.upstream, ...NO_CREDENTIAL }
  const start: RelayStart = { config: { relay: relayOf(parts), upstream, data: config.data }, version }
  const warn = warnOnce(log)
  const onFault = (message: string): void => {
    if (!isExplained(message)) warn(`relay, which tries again: ${message}`)
  }
  const thread = supervise<ToRelay, FromRelay>({
    file: workerFile('relay.worker', import.meta.url),
    data: () => start,
    limits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 },
    onMessage(message) {
      if (message.type === 'turn') logStateChange(log, message.turn, handleOf(parts, message.turn.id))
      else if (message.type === 'unset') logUnset(parts, message.target, message.is)
      else onFault(message.message)
    },
    onReady() {
      thread.post({ type: 'findings', isServed: state.isFindingsServed })
      thread.post({ type: 'served', log: state.served })
    },
    onFailed: onFault,
  })
  await thread.started
  return thread
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

/** Whether there is anything to pass on at start, or anything may be received that somebody follows. */
function wantsRelay(config: Config): boolean {
  return relayUrls(config.relay).length > 0 || mayReceive(config)
}
