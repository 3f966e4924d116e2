import type { Noun } from '../shapes/record.ts'
import { type Random, createRandom } from '../../feed/random.ts'
import type { RecordForm } from '../shapes/shape.ts'

/** One thing of the service: what lists show of it, and what only its own page adds. */
export interface Entry<F extends object = object> {
  id: string
  /** Its place in its collection; never used twice. */
  seq: number
  /** Unix milliseconds, whole seconds. */
  lastModified: number
  listed: F
  detail: object
}

/** Things of one kind, in the order in which they came. */
export interface Collection<F extends object = object> {
  readonly noun: Noun
  get(id: string): Entry<F> | undefined
  all(): readonly Entry<F>[]
  /** Adds a thing, or replaces the one of the same id in its place. */
  put(entry: Omit<Entry<F>, 'seq'>): Entry<F>
  remove(id: string): boolean
  /** Unix milliseconds of the last change. */
  lastModified(): number
  /** A selection that is kept until the collection changes; `make` must follow from `key` alone. */
  select(key: string, make: () => readonly Entry<F>[]): readonly Entry<F>[]
}

const CACHED_SELECTIONS = 64

/** A collection with what was generated for it, ids distinct. */
export function createCollection<F extends object>(
  noun: Noun,
  generated: readonly Entry<F>[],
  lastModified: number,
): Collection<F> {
  const entries = new Map(generated.map((entry) => [entry.id, entry]))
  const selections = new Map<string, readonly Entry<F>[]>()
  let listed: readonly Entry<F>[] | undefined
  let next = generated.length
  let at = lastModified
  const changed = (time: number): void => {
    listed = undefined
    selections.clear()
    at = time > at ? time : at + 1000 // Last-Modified must move with every change
  }
  return {
    noun,
    get: (id) => entries.get(id),
    all: () => (listed ??= [...entries.values()]),
    put(given) {
      const entry = { ...given, seq: entries.get(given.id)?.seq ?? next++ }
      entries.set(entry.id, entry)
      changed(entry.lastModified)
      return entry
    },
    remove(id) {
      const had = entries.delete(id)
      if (had) changed(at)
      return had
    },
    lastModified: () => at,
    select: (key, make) => selections.get(key) ?? keep(selections, key, make()),
  }
}

/** Keeps a selection, the oldest one going when there are too many. */
function keep<F extends object>(
  selections: Map<string, readonly Entry<F>[]>,
  key: string,
  made: readonly Entry<F>[],
): readonly Entry<F>[] {
  const [oldest] = selections.keys()
  if (selections.size >= CACHED_SELECTIONS && oldest !== undefined) selections.delete(oldest)
  selections.set(key, made)
  return made
}

/** The kinds of things that are generated, each with its own streams of random numbers. */
const KINDS = [
  'shared',
  'image',
  'tag',
  'package',
  'ticket',
  'avr',
  'user',
  'subscription',
  'organization',
  'document',
  'api_key',
  'webhook',
] as const

/** A kind of generated thing. */
export type Kind = (typeof KINDS)[number]

/** Number of tags, packages and AVRs that share their ids: an id is only unique within its kind. */
const COLLIDING = 3

/** The random numbers of the i-th thing of a kind: the same however many there are. */
export function randomFor(seed: number, kind: Kind, i: number): Random {
  return createRandom(seed, 0x4000_0000 + KINDS.indexOf(kind) * 0x0100_0000 + i)
}

/** What a service is generated from. */
export interface Origin {
  seed: number
  /** How many generated records the feed begins with; 0: its records are an archive's. */
  records: number
  ids: RecordForm['ids']
}

const FIRST_IMAGE = 1001

/** The id of the i-th thing of a kind; integers are given as texts. Ids of different kinds may be the same. */
export function idFor({ seed, ids }: Origin, kind: Kind, i: number): string {
  if (ids === 'integer' || (ids === 'mixed' && kind === 'image'))
    return String(kind === 'image' ? FIRST_IMAGE + i : i + 1)
  return ids === 'name' ? `${kind.replace('_', '-')}-${i + 1}` : uuidFor(seed, kind, i)
}

function uuidFor(seed: number, kind: Kind, i: number): string {
  const shared = i < COLLIDING && (kind === 'tag' || kind === 'package' || kind === 'avr')
  const random = randomFor(seed ^ 0x1d, shared ? 'shared' : kind, i)
  const hex = (digits: number): string =>
    random
      .int(16 ** digits)
      .toString(16)
      .padStart(digits, '0')
  return `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'.charAt(random.int(4))}${hex(3)}-${hex(6)}${hex(6)}`
}

/** A digest as registries write them. */
export function digestFor(random: Random): string {
  const words = Array.from({ length: 8 }, () =>
    random
      .int(2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  )
  return `sha256:${words.join('')}`
}
