import { messageOf } from '../../../base/errors.ts'
import type { KeyTrust } from '../../bundles/format/keys.ts'
import { FleetError, type ObjectStore, OversizedError, readObject } from '../objects/object-store.ts'
import { openGeneration } from './format/envelope.ts'
import { GENERATION_CAPS, type Generation, type KnownGeneration, digestOfObject } from './format/generation.ts'
import { GENERATION_FOLDER, HEAD_KEY, generationKey, numberInKey } from './format/object-names.ts'
import { refuseGeneration } from './format/refusals.ts'

/** A generation in the chain, as the next one is compared with it. */
export interface ChainLink {
  readonly generation: number
  readonly sha256: string
  readonly epoch: number
  /** Identity of its fleet; absent: not known, as of a position that is stored in a data folder. */
  readonly fleet?: string
  /** When it was published, or a time after that, as when it was applied here. */
  readonly publishedAt: string
}

/** Returns a verified generation as a link of the chain. */
export function linkOf({ generation: known, sha256 }: KnownGeneration): ChainLink {
  const { generation, epoch, fleet, publishedAt } = known
  return { generation, sha256, epoch, fleet, publishedAt }
}

/**
 * Returns up to `most` generations before a verified one, newest first, as far as they exist, follow each other and were
 * published at or after `since` (Unix milliseconds).
 */
export async function readHistory(
  store: ObjectStore,
  from: KnownGeneration,
  { since, most, trust }: { since: number; most: number; trust: KeyTrust },
): Promise<KnownGeneration[]> {
  const history: KnownGeneration[] = []
  let later = from
  while (history.length < most && later.generation.generation > 1) {
    const next = later.generation.generation - 1
    const numbers = Array.from({ length: Math.min(AT_ONCE, next) }, (_, i) => next - i)
    const found = await Promise.all(numbers.map((number) => fetchGeneration(store, number)))
    for (const [at, bytes] of found.entries()) {
      const { previous } = later.generation
      if (bytes === null || digestOfObject(bytes) !== previous) return history
      const known = openNumbered(bytes, next - at, trust, previous)
      if (Date.parse(known.generation.publishedAt) < since) return history
      history.push(known)
      later = known
    }
  }
  return history.slice(0, most)
}

/** Generations that are read at once. */
const AT_ONCE = 16

/**
 * Reads a generation and verifies it by itself, or, as `openGeneration`, by a SHA-256; null: the store does not have it. Throws
 * `fleet`.
 */
export async function readGeneration(
  store: ObjectStore,
  number: number,
  trust: KeyTrust,
  vouched: string | null = null,
): Promise<KnownGeneration | null> {
  const bytes = await fetchGeneration(store, number)
  return bytes && openNumbered(bytes, number, trust, vouched)
}

async function fetchGeneration(store: ObjectStore, number: number): Promise<Buffer | null> {
  try {
    return (await readObject(store, generationKey(number), GENERATION_CAPS.bytes))?.bytes ?? null
  } catch (error) {
    if (!(error instanceof OversizedError)) throw error
    throw refuseGeneration('malformed', `the generation ${error.message}`, { cause: error })
  }
}

function openNumbered(bytes: Buffer, number: number, trust: KeyTrust, vouched: string | null): KnownGeneration {
  const key = generationKey(number)
  const known = openGeneration(bytes, trust, key, vouched)
  if (known.generation.generation === number) return known
  throw refuseGeneration('malformed', `${key} has the generation ${known.generation.generation}`)
}

/**
 * Reads the generation behind `before`, verified against it; `newest` was seen to exist. Throws `fleet` with the reason:
 * `untrusted`, `malformed`, `hole`, `fork`, `epoch`, `fleet`.
 */
export async function readNext(
  store: ObjectStore,
  before: ChainLink,
  newest: number,
  trust: KeyTrust,
): Promise<KnownGeneration> {
  const number = before.generation + 1
  const known = await readGeneration(store, number, trust)
  if (known === null) throw holeIn(store, number, newest)
  verifyLink(before, known)
  return known
}

/**
 * Reads a generation again that was applied or published here. Throws `fleet` with the reason `backwards` where the store has none
 * that is newer, else `fork`.
 */
export async function confirmLink(store: ObjectStore, link: ChainLink, trust: KeyTrust): Promise<KnownGeneration> {
  const { generation, sha256 } = link
  const found = await readGeneration(store, generation, trust, sha256)
  if (found?.sha256 === sha256) return found
  const isLost = found === null
  throw refuseGeneration(
    isLost && !(await isBegunAnew(store, link, trust)) ? 'backwards' : 'fork',
    `${store.url} ${isLost ? 'does not have' : 'has another one than'} the generation ${generation} that was applied or ` +
      'published here: was it restored from a backup, were objects deleted or replaced, or is it another folder? Restore ' +
      'them; where that is not possible, start this node with an empty data folder. Until then it serves what it has, and ' +
      'publishes nothing',
  )
}

/** Reports whether a store that lost a generation has one that was published later. */
async function isBegunAnew(store: ObjectStore, { publishedAt }: ChainLink, trust: KeyTrust): Promise<boolean> {
  const number = await findNewest(store, 0)
  const newest = number === 0 ? null : await readGeneration(store, number, trust)
  return newest !== null && Date.parse(newest.generation.publishedAt) > Date.parse(publishedAt)
}

/** Throws `fleet` unless a generation follows the one before it. */
function verifyLink(before: ChainLink, { generation }: KnownGeneration): void {
  const name = `generation ${generation.generation}`
  if (generation.previous !== before.sha256)
    throw refuseGeneration(
      'fork',
      `${name} follows another generation ${before.generation} than the one that was followed here: the history of ` +
        'the fleet was replaced, as by a restored backup of the store. If that was intended, start this node with an ' +
        'empty data folder',
    )
  if (generation.epoch < before.epoch)
    throw refuseGeneration(
      'epoch',
      `${name} was published under the lease ${generation.epoch}, and generation ${before.generation} under ` +
        `${before.epoch}: its publisher had lost the lease`,
    )
  if (before.fleet !== undefined) refuseOtherFleet(generation, before.fleet)
}

/** Throws `fleet` with the reason `fleet` for a generation of another fleet than the one with this identity. */
export function refuseOtherFleet({ generation, fleet }: Generation, expected: string): void {
  if (fleet === expected) return
  throw refuseGeneration(
    'fleet',
    `generation ${generation} belongs to another fleet (${fleet}) than this store (${expected}), though a trusted key signed ` +
      'it: check fleet.url, and who else publishes with that key',
  )
}

/**
 * Returns the number of the newest generation; 0: none. `known`: a generation that exists, 0: none is known; then the hint
 * `head.json` is read, and if that does not help, the store is listed. Neither is trusted: only generations that can be
 * read count, and the search ends where the next one does not exist.
 */
export async function findNewest(store: ObjectStore, known: number): Promise<number> {
  const exists = async (number: number): Promise<boolean> =>
    number <= Number.MAX_SAFE_INTEGER && (await store.head(generationKey(number))) !== null
  let newest = known
  if (known === 0) newest = await findStart(store, exists)
  let step = 1
  for (; await exists(newest + step); step *= 2) newest += step
  for (step >>= 1; step >= 1; step >>= 1) if (await exists(newest + step)) newest += step
  return newest
}

async function findStart(store: ObjectStore, exists: (number: number) => Promise<boolean>): Promise<number> {
  const hint = await readHint(store)
  if (hint !== null && (await exists(hint))) return hint
  let listed = 0
  for await (const { key } of store.list(GENERATION_FOLDER)) {
    const number = numberInKey(key)
    if (number !== null && Number.isSafeInteger(number)) listed = Math.max(listed, number)
  }
  return listed > 0 && (await exists(listed)) ? listed : 0
}

const MAX_HINT_BYTES = 4096

/**
 * Throws `fleet` with the reason `hole` if a later generation than `newest` exists, but not the next one. Such a one is
 * looked for where the hint names it, or `seen`: the number of one that existed.
 */
export async function refuseHole(store: ObjectStore, newest: number, seen = 0): Promise<void> {
  for (const later of [seen, (await readHint(store)) ?? 0]) {
    if (later <= newest + 1 || (await store.head(generationKey(later))) === null) continue
    if ((await store.head(generationKey(newest + 1))) !== null) return // it was published meanwhile
    throw holeIn(store, newest + 1, later)
  }
}

function holeIn({ url }: ObjectStore, missing: number, newest: number): Error {
  return refuseGeneration(
    'hole',
    `generation ${missing} is missing on ${url}, and ${newest} exists: restore it, or start this node with an empty ` +
      'data folder; until then it serves what it has',
  )
}

/** Returns the generation that the hint names; null where there is none that can be read. */
async function readHint(store: ObjectStore): Promise<number | null> {
  try {
    const found = await readObject(store, HEAD_KEY, MAX_HINT_BYTES)
    if (found === null) return null
    const hint: unknown = JSON.parse(found.bytes.toString('utf8'))
    if (typeof hint !== 'object' || hint === null || !('generation' in hint)) return null
    const { generation } = hint
    return typeof generation === 'number' && Number.isSafeInteger(generation) && generation > 0 ? generation : null
  } catch (error) {
    if (error instanceof FleetError && error.outcome === 'unknown') throw error
    return null // an oversized or invalid hint is none
  }
}

/** Writes the hint at the newest generation; returns why that failed, null: it did not. */
export async function writeHint(store: ObjectStore, { generation, sha256 }: ChainLink): Promise<string | null> {
  try {
    await store.put(HEAD_KEY, Buffer.from(`${JSON.stringify({ generation, sha256 })}\n`))
    return null
  } catch (error) {
    return messageOf(error)
  }
}
