import { type Random, createRandom } from '../random.ts'
import type { RecordForm } from './shapes/shape.ts'

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

/** How many tags, packages and AVRs share their ids with one another: an id says nothing without its kind. */
export const COLLIDING = 3

/** The random numbers of the i-th thing of a kind: the same however many there are. */
export function randomFor(seed: number, kind: Kind, i: number): Random {
  return createRandom(seed, 0x4000_0000 + KINDS.indexOf(kind) * 0x0100_0000 + i)
}

/** What a service is generated from. */
export interface Origin {
  seed: number
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
