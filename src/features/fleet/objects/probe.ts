import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { messageOf } from '../../../base/errors.ts'
import { counted } from '../../../base/text.ts'
import { FleetError, type ObjectInfo, type ObjectStore, readObject } from './object-store.ts'

/** One property of a store that was tried. */
export interface ProbeCheck {
  /** What was tried. */
  readonly name: string
  /** What was seen, in a few words. */
  readonly found: string
  /** `unknown`: the store did not answer every time that it was tried, so nothing is known of it. */
  readonly state: 'ok' | 'warn' | 'failed' | 'unknown'
  /** What needs it: every fleet, or a lease, which `fleet.role: sole-writer` does without. */
  readonly needed: 'store' | 'lease'
}

/** What a store can be used for. */
export interface ProbeReport {
  readonly checks: readonly ProbeCheck[]
  /** Whether it can keep the objects of a fleet. */
  readonly store: boolean
  /** Whether its conditional writes can decide which mirror leads. */
  readonly lease: boolean
}

/** How thoroughly to try. */
export interface ProbeOptions {
  /** Writes at the same time; 32 without it. */
  readonly width?: number
  /** How often a race is repeated; 4 without it. */
  readonly rounds?: number
  /** Content that the driver writes in parts, to be tried as well. */
  readonly large?: { readonly file: string; readonly size: number; readonly sha256: string }
}

/** Bytes of one competing write: enough that a store which checks first is still busy when the next write is checked. */
const BODY_BYTES = 32 << 10
/** A store whose clock is so many milliseconds off is worth a warning. */
const CLOCK_MS = 5_000

/** How often a check is tried before a store that does not answer is named. */
const ATTEMPTS = 3

/** A store to try, and a prefix of keys for that. */
interface Place {
  readonly store: ObjectStore
  readonly key: (name: string) => string
}

/**
 * Tries whether a store does what a fleet needs, with real writes below `probe/`, which are deleted afterwards. Throws `FleetError`
 * where it cannot be reached or refuses the credentials.
 */
export async function probeStore(
  store: ObjectStore,
  { width = 32, rounds = 4, large }: ProbeOptions = {},
): Promise<ProbeReport> {
  const prefix = `probe/${randomBytes(8).toString('hex')}-`
  const race = { width, rounds }
  const attempt = createAttempts(store, prefix)
  try {
    await store.put(`${prefix}first`, Buffer.from('first'))
    const checks = [
      await attempt('put if absent', 'lease', (place) => raceAbsent(place, race)),
      await attempt('put if match', 'lease', (place) => raceMatch(place, race)),
      await attempt('stale match refused', 'lease', staleMatch),
      await attempt('read after write', 'store', readAfterWrite),
      await attempt('list after write', 'store', listAfterWrite),
      await attempt('ranges', 'store', ranges),
    ]
    if (large !== undefined) checks.push(await attempt('parts', 'store', (place) => parts(place, large)))
    checks.push(await attempt('clock of the store', 'store', clock))
    const isSeen = ({ state }: ProbeCheck): boolean => state === 'ok' || state === 'warn'
    const holds = (needed: ProbeCheck['needed']): boolean =>
      checks.every((check) => check.needed !== needed || isSeen(check))
    return { checks, store: holds('store'), lease: holds('store') && holds('lease') }
  } finally {
    await clear(store, prefix)
  }
}

/** Tries what a reader needs, which writes nothing that others read: that it can read and list. */
export async function probeReading(store: ObjectStore): Promise<ProbeReport> {
  const found = await readObject(store, 'head.json', 1 << 20)
  let count = 0
  for await (const info of store.list('gen/')) {
    if (info.size > 0) count++
    if (count === 1) break
  }
  const text = (isThere: boolean): string => (isThere ? 'allowed' : 'allowed; nothing is there yet')
  const checks: ProbeCheck[] = [
    { name: 'read', found: text(found !== null), state: 'ok', needed: 'store' },
    { name: 'list', found: text(count > 0), state: 'ok', needed: 'store' },
  ]
  return { checks, store: true, lease: false }
}

type Seen = Pick<ProbeCheck, 'found' | 'state'>

const seen = (isFine: boolean, found: string): Seen => ({ found, state: isFine ? 'ok' : 'failed' })

/** Runs one check. */
type Attempt = (
  name: string,
  needed: ProbeCheck['needed'],
  check: (place: Place) => Promise<Seen>,
) => Promise<ProbeCheck>

/** Creates what runs checks: a passing failure is no finding, so that check is tried again, with other keys. */
function createAttempts(store: ObjectStore, prefix: string): Attempt {
  let count = 0
  return async (name, needed, check) => {
    for (let failures = 1; ; failures++) {
      const own = `${prefix}${count++}-`
      try {
        return { name, needed, ...(await check({ store, key: (key) => own + key })) }
      } catch (error) {
        if (!(error instanceof FleetError)) throw error
        const found = messageOf(error)
        if (!error.isPassing) return { name, needed, found, state: 'failed' }
        if (failures === ATTEMPTS) return { name, needed, found, state: 'unknown' }
      }
    }
  }
}

async function raceAbsent({ store, key }: Place, { width, rounds }: Race): Promise<Seen> {
  const results: string[] = []
  for (let round = 0; round < rounds; round++) {
    const name = key(`absent-${round}`)
    const bodies = bodiesOf(width)
    const writes = await raced(bodies, (body) => store.putIfAbsent(name, body))
    results.push(await countWinners(store, name, bodies, writes))
  }
  return summary(results, width)
}

async function raceMatch({ store, key }: Place, { width, rounds }: Race): Promise<Seen> {
  const name = key('match')
  const results: string[] = []
  for (let round = 0; round < rounds; round++) {
    const { etag } = await store.put(name, Buffer.from(`round ${round}`))
    const bodies = bodiesOf(width)
    const writes = await raced(bodies, (body) => store.putIfMatch(name, body, etag))
    results.push(await countWinners(store, name, bodies, writes))
  }
  return summary(results, width)
}

function bodiesOf(width: number): Buffer[] {
  return Array.from({ length: width }, () => randomBytes(BODY_BYTES))
}

/** `''` is a round that one write won. */
function summary(results: readonly string[], width: number): Seen {
  const wrong = results.find((result) => result !== '')
  const rounds = `${counted(results.length, 'round')} of ${width} at once`
  return wrong === undefined ? seen(true, `1 of ${width} won, in ${rounds}`) : seen(false, `${wrong}, in ${rounds}`)
}

async function staleMatch({ store, key }: Place): Promise<Seen> {
  const name = key('stale')
  const first = await store.put(name, Buffer.from('first'))
  const second = await store.putIfMatch(name, Buffer.from('second'), first.etag)
  if (second === null) return seen(false, 'a match with the right etag was refused')
  if ((await store.putIfMatch(name, Buffer.from('third'), first.etag)) !== null)
    return seen(false, 'a match with an old etag replaced newer content')
  if ((await store.putIfAbsent(name, Buffer.from('fourth'))) !== null)
    return seen(false, 'an object that exists was created again')
  if ((await store.putIfMatch(key('none'), Buffer.from('x'), first.etag)) !== null)
    return seen(false, 'a match created an object that did not exist')
  return seen(true, 'nothing was written')
}

async function readAfterWrite({ store, key }: Place): Promise<Seen> {
  const name = key('read')
  for (const text of ['one', 'two', 'three']) {
    const { etag } = await store.put(name, Buffer.from(text))
    const found = await readObject(store, name, 100)
    const head = await store.head(name)
    if (found?.bytes.toString() !== text) return seen(false, 'a read had older content')
    if (found.info.etag !== etag || head?.etag !== etag) return seen(false, 'write, read and head have different etags')
  }
  await store.delete(name)
  const isGone = (await store.head(name)) === null
  return seen(isGone, isGone ? 'at once' : 'a deleted object was still there')
}

async function listAfterWrite({ store, key }: Place): Promise<Seen> {
  await store.put(key('list-a'), Buffer.from('a'))
  await store.put(key('list-b'), Buffer.from('b'))
  await store.delete(key('list-a'))
  const keys: string[] = []
  for await (const info of store.list(key('list-'))) keys.push(info.key)
  const isRight = keys.join() === key('list-b')
  return seen(isRight, isRight ? 'at once' : `${counted(keys.length, 'object')} instead of the one written`)
}

async function ranges({ store, key }: Place): Promise<Seen> {
  const bytes = randomBytes(100_000)
  await store.put(key('range'), bytes)
  for (const from of [0, 99_990, 100_000]) {
    const found = await store.get(key('range'), { from })
    if (found === null) return seen(false, 'an object was not found')
    if (!(await buffer(found.body)).equals(bytes.subarray(from)))
      return seen(false, `a read from byte ${from} on had other bytes`)
  }
  return seen(true, 'an interrupted download can be continued')
}

async function parts({ store, key }: Place, large: NonNullable<ProbeOptions['large']>): Promise<Seen> {
  const written = await store.putIfAbsent(key('parts'), large)
  if (written?.size !== large.size) return seen(false, 'a large object was not written')
  const again = await store.putIfAbsent(key('parts'), large)
  if (again === null) return seen(true, 'large objects are created once')
  // Such objects are named by their content, so nothing is lost.
  return { found: 'an upload in parts ignores its condition', state: 'warn' }
}

async function clock({ store, key }: Place): Promise<Seen> {
  const off = (await deviationIn(store, key('clock'), Date.now)) ?? 0
  return { found: clockWords(off), state: Math.abs(off) > CLOCK_MS ? 'warn' : 'ok' }
}

/** Returns by how many milliseconds the clock of a store is ahead of the one here; null: it is not known. Throws `FleetError`. */
export async function deviationFromStore(store: ObjectStore, now: () => number): Promise<number | null> {
  const key = `probe/${randomBytes(8).toString('hex')}-clock`
  return deviationIn(store, key, now).finally(() => store.delete(key).catch(() => undefined))
}

async function deviationIn(store: ObjectStore, key: string, now: () => number): Promise<number | null> {
  const before = now()
  await store.put(key, Buffer.from('x'))
  const found: ObjectInfo | null = await store.head(key)
  return found === null ? null : deviationOf(found.modifiedAt, before, now())
}

/** Returns how far a time is outside of a span, milliseconds; negative before it. */
function deviationOf(at: number, before: number, after: number): number {
  if (at > after) return at - after
  // The store may round down to a second.
  return at < before - 1000 ? at - before : 0
}

function clockWords(off: number): string {
  if (off === 0) return 'as on this machine, within a second'
  return `${(Math.abs(off) / 1000).toFixed(1)} s ${off > 0 ? 'ahead of' : 'behind'} this machine`
}

/** Deletes what was written; what remains after a failure is small and is never read. */
async function clear(store: ObjectStore, prefix: string): Promise<void> {
  try {
    for await (const { key } of store.list(prefix)) await store.delete(key)
  } catch (error) {
    if (!(error instanceof FleetError)) throw error
  }
}

/** How many writes compete, and how often. */
interface Race {
  readonly width: number
  readonly rounds: number
}

/** How a competing write ended: written, not written, or not known. */
type Ending = 'won' | 'lost' | 'unknown'

/** Starts one write for each body at the same time. Throws when all of them failed. */
async function raced(
  bodies: readonly Buffer[],
  write: (body: Buffer) => Promise<ObjectInfo | null>,
): Promise<Ending[]> {
  const results = await Promise.allSettled(bodies.map(write))
  const failed = results.find((one) => one.status === 'rejected')
  if (failed !== undefined && results.every((one) => one.status === 'rejected')) throw failed.reason
  return results.map((one) => {
    if (one.status === 'fulfilled') return one.value === null ? 'lost' : 'won'
    if (!(one.reason instanceof FleetError)) throw one.reason
    return one.reason.isPassing ? 'unknown' : 'lost'
  })
}

/**
 * Returns what is wrong with the end of a race; empty: one write won, and its content is what the store has. Throws where no write
 * won and some were not answered: then nothing was seen.
 */
async function countWinners(
  store: ObjectStore,
  key: string,
  bodies: readonly Buffer[],
  endings: readonly Ending[],
): Promise<string> {
  const won = endings.filter((ending) => ending === 'won').length
  if (won > 1) return `${won} of ${bodies.length} won`
  const found = await readObject(store, key, Number.MAX_SAFE_INTEGER)
  const stored = bodies.findIndex((body) => found?.bytes.equals(body) === true)
  const ending = endings[stored]
  if (won === 0 && ending === undefined && endings.includes('unknown'))
    throw new FleetError('unknown', 'fleet.url: the store did not answer all writes of a race')
  if (won === 1 && ending !== 'won') return 'the content is not that of the write that won'
  return ending === 'won' || ending === 'unknown' ? '' : `none of ${bodies.length} won`
}
