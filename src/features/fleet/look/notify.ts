import { messageOf } from '../../../base/errors.ts'
import { runPool } from '../../../base/pacing.ts'
import type { SigningKey } from '../../bundles/format/keys.ts'
import { readErrorBody } from '../../../upstream/http/errors.ts'
import type { Transport } from '../../../upstream/http/transport.ts'
import type { Config } from '../../../config/schema.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { type ReaderReport, listPresent } from '../readers.ts'
import { LOOK_PATH, type Takeover, parseLookAnswer, sealLook } from './message.ts'

/** What a publisher notifies the other mirrors with. */
interface NotifyDeps {
  readonly store: ObjectStore
  /** The id of this mirror. */
  readonly own: string
  readonly keys: readonly SigningKey[]
  readonly transport: Pick<Transport, 'send'>
  /** Those that could not be notified before. */
  readonly missed: MissedMirrors
  /** What follows from it that not all can be notified; null: they were. */
  readonly onNotified: (effect: string | null) => void
}

/** The mirrors of a fleet that could not be notified, from one generation to the next. */
type MissedMirrors = ReturnType<typeof createMissed>

/** `patienceMs`: how far a mirror may be behind and be ready, milliseconds; `clock`: milliseconds that are never set. */
export function createMissed(patienceMs: () => number, clock: () => number) {
  const missed = new Map<string, { said: string; since: number }>()
  return {
    /** Notes that a mirror was notified. */
    heard: ({ id }: ReaderReport): void => void missed.delete(id),
    /**
     * Notes that a mirror could not be notified of a generation. Returns whether the others wait for it: not if it was missed `patienceMs`
     * ago, has reported nothing since, and does not serve the generation before, so that it does not follow by its polls either.
     */
    isAwaited({ id, at, generation: served }: ReaderReport, generation: number): boolean {
      const first = missed.get(id)
      if (first?.said === at) return served >= generation - 1 || clock() - first.since < patienceMs()
      missed.set(id, { said: at, since: clock() })
      return true
    },
  }
}

/** Mirrors that are notified at the same time; longest time for each, and for all together, milliseconds. */
const NOTIFIED_AT_ONCE = 16
const ONE_MS = 1_000
const ALL_MS = 2_000

/**
 * Notifies the other mirrors of a fleet that a generation is about to be published. Returns how they took over the last ones,
 * once all that are awaited have answered that they look for it; null: one may learn of it by its poll alone. Never rejects.
 */
export async function notifyMirrors(deps: NotifyDeps, generation: number): Promise<readonly Takeover[] | null> {
  const took: Takeover[] = []
  const awaited: string[] = []
  const silent: string[] = []
  try {
    const mirrors = (await listPresent(deps.store)).filter(({ id }) => id !== deps.own)
    const deadline = AbortSignal.timeout(ALL_MS)
    await runPool(mirrors, NOTIFIED_AT_ONCE, async (mirror) => {
      const signal = AbortSignal.any([deadline, AbortSignal.timeout(ONE_MS)])
      try {
        took.push(await notifyMirror(deps, mirror, generation, signal))
        deps.missed.heard(mirror)
      } catch (error) {
        const list = deps.missed.isAwaited(mirror, generation) ? awaited : silent
        list.push(messageOf(error))
      }
    })
  } catch (error) {
    awaited.push(messageOf(error))
  }
  deps.onNotified(effectOf(awaited, silent))
  return awaited.length === 0 ? took : null
}

/** Names the mirror that is waited for, or else one that is not any more. */
function effectOf([awaited]: readonly string[], [silent]: readonly string[]): string | null {
  if (awaited !== undefined) return `so these begin after two polls: ${awaited}`
  if (silent !== undefined) return `but none is delayed: ${silent}, and it has said nothing since that began`
  return null
}

/** Creates what sends to other mirrors: without a proxy, and loaded when it first sends. */
export function createNotifier(upstream: Config['upstream']): Transport {
  const limits = { concurrency: NOTIFIED_AT_ONCE, requestTimeoutMs: ONE_MS }
  let connecting: Promise<Transport> | null = null
  const connect = async (): Promise<Transport> => {
    const { createTransport } = await import('../../../upstream/http/transport.ts')
    return createTransport({ ...upstream, ...limits }, { direct: true })
  }
  return {
    send: async (...request) => (await (connecting ??= connect())).send(...request),
    close: async () => (await connecting)?.close(),
  }
}

async function notifyMirror(
  { keys, transport }: NotifyDeps,
  { id, name, address }: ReaderReport,
  generation: number,
  signal: AbortSignal,
): Promise<Takeover> {
  if (address === null) throw new Error(`${name} has no address for other mirrors`)
  const fail = (why: string): Error => new Error(`${name} at ${address}: ${why}`)
  const body = sealLook(generation, id, keys)
  const url = new URL(address.replace(/\/*$/, LOOK_PATH))
  const headers = { 'content-type': 'application/json' }
  const answer = await transport.send({ method: 'POST', url, headers, body }, signal).catch((error: unknown) => {
    throw fail(signal.aborted ? 'no answer in time' : messageOf(error))
  })
  const bytes = await readErrorBody(answer.body)
  if (answer.status !== 200 || bytes === null) throw fail(`it answered ${answer.status}`)
  const has = parseLookAnswer(bytes)
  if (has.generation !== generation - 1) throw fail('it does not have the generation before')
  if (has.took === null) throw fail('it has taken over no generation since its start')
  return has.took
}

/** Least time from the publication to the activation, and what is added to that of the slowest takeover, as for the look that finds it: milliseconds. */
const LEAST_MS = 1_000
const MARGIN_MS = 300

/** Bytes of bundles up to which a takeover takes as long: it is the import's own work. */
const SMALL_BYTES = 2 ** 21

/** What decides how long after its publication a generation is activated. */
interface DelayFacts {
  /** How the other mirrors took over generations; null: not all look for this one. */
  readonly took: readonly Takeover[] | null
  /** Bytes that they download of this one. */
  readonly bytes: number
  /** How long the store took for these bytes, milliseconds: it may be as slow for the generation. */
  readonly storedMs: number
  /** The time in which all find it by their polls, milliseconds; the most. */
  readonly longest: number
}

/** Returns how long after its publication a generation is activated, milliseconds: the slowest mirror has it by then. */
export function delayOf({ took, bytes, storedMs, longest }: DelayFacts): number {
  if (took === null) return longest
  const needs = took.map((one) => one.ms * Math.max(1, bytes / Math.max(SMALL_BYTES, one.bytes)))
  return Math.min(longest, Math.max(LEAST_MS, Math.ceil(1.5 * Math.max(0, ...needs) + storedMs + MARGIN_MS)))
}
