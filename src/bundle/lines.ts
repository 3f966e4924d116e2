import { hash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import {
  type RowExtras,
  type RowKind,
  type RowValues,
  ROW_KINDS,
  compareKeys,
  hashRow,
} from '../store/carried-rows.ts'
import { contentOf } from '../store/gzip.ts'
import type { SourceName } from '../store/runs.ts'
import { type Check, integer, listOf, orNull, shape, text, truth } from './checked.ts'
import type { Manifest } from './manifest.ts'
import type { Bundle } from './open.ts'

/** A line that puts a row. */
export interface PutLine<K extends RowKind> {
  key: string
  value: RowValues[K]
  hash: string
  extra: RowExtras[K]
}

/** A line of a pack: a row to put, or null with the key of one that is to go. */
export interface Line<K extends RowKind> {
  key: string
  put: PutLine<K> | null
}

const key = text(/^[^\0]+$/, 'a key')
const any = text(/^[^\0]*$/, 'text')
const digest = text(/^[\da-f]{64}$/, 'a SHA-256 in hex')
const hex = text(/^(?:[\da-f]{2})*$/, 'hex')
const uint32 = integer(0, 0xffffffff)
const size = integer(0, 2 ** 50)
/** Of what is held in memory as a whole. */
const small = integer(0, 2 ** 30)
const seconds = integer(0, 2 ** 40)
const time = integer(0, 2 ** 50)

/** The members in the order in which they are hashed. */
const VALUES: { [K in RowKind]: Check<RowValues[K]> } = {
  source: shape({
    ...{ key, snapshot: hex, asOf: time, records: size, whole: truth },
    archive: orNull(shape({ size, crc32c: uint32, sha256: digest, changed: seconds })),
  }),
  document: shape({
    ...{ key, present: truth, size: small, sha256: digest, changed: seconds, entries: size },
    blob: orNull(digest),
  }),
  'osv-record': shape({
    ...{ key, modified: any, crc32: uint32, size: small, sha256: digest, changed: seconds },
    asOf: orNull(time),
  }),
  'osv-tombstone': shape({ key, removedAt: time }),
  'catalog-list': shape({ key, resource: any, frame: any, entries: size, changed: seconds }),
  'catalog-entry': shape({ key, ordinal: size, sha: hex, facets: listOf(orNull(any), 100) }),
  'catalog-answer': shape({
    ...{ key, resource: any, owner: any, ownerSha: hex, status: integer(100, 599) },
    ...{ size: small, sha256: hex, changed: seconds, links: any, mentions: any },
  }),
  'catalog-lacking': shape({ key, resource: any }),
  'catalog-document': shape({
    ...{ key: digest, size, stored: size, type: any, changed: seconds, blob: digest },
  }),
}

const EXTRAS: { readonly [K in RowKind]?: readonly string[] } = {
  'catalog-entry': ['text', 'base64'],
  'catalog-answer': ['base64'],
  'catalog-document': ['chunks'],
}

/** Throws `bundle` for a pack of rows that belongs to no kind of its source: it would be left out in silence. */
export function refuseOtherRows({ members }: Manifest): void {
  for (const { name } of members.filter((one) => one.name.startsWith('rows/'))) {
    const [, source = '', pack = ''] = name.split('/')
    const kinds: readonly string[] = ROW_KINDS[source as SourceName] // a source of the manifest's
    if (!kinds.includes(pack.replace(/-\d+\.jsonl$/, '')))
      throw new MirrorError(
        'bundle',
        `${name} holds rows of a kind that this program does not know`,
      )
  }
}

/** The lines of a kind in order, pack by pack: one pack is in memory. Throws `bundle` for whatever is no line. */
export async function* eachLine<K extends RowKind>(
  { manifest, read }: Pick<Bundle, 'manifest' | 'read'>,
  source: SourceName,
  kind: K,
): AsyncGenerator<Line<K>> {
  const packs = manifest.members.filter(({ name }) => PACK.exec(name)?.[1] === `${source}/${kind}`)
  let before: string | null = null
  for (const { name } of packs) {
    const lines = (await read(name)).toString('utf8').split('\n')
    if (lines.pop() !== '') throw new MirrorError('bundle', `${name} ends within a line`)
    for (const [i, line] of lines.entries()) {
      const parsed = parseLine(kind, line, `${name}:${i + 1}`)
      if (before !== null && compareKeys(before, parsed.key) >= 0)
        throw new MirrorError('bundle', `${name}:${i + 1} is out of order`)
      if (parsed.put === null && manifest.kind === 'full')
        throw new MirrorError('bundle', `${name}:${i + 1} removes something, in a full bundle`)
      before = parsed.key
      yield parsed
    }
  }
}

const PACK = /^rows\/(.+)-\d+\.jsonl$/

function parseLine<K extends RowKind>(kind: K, line: string, place: string): Line<K> {
  const json = parseJson(line, place)
  if ('removed' in json) return { key: key(json['removed'], place), put: null }
  const extras = EXTRAS[kind]
  const isExtra = ([name]: [string, unknown]): boolean => extras?.includes(name) === true
  const given = extras === undefined ? null : Object.entries(json)
  const rest = given === null ? json : Object.fromEntries(given.filter((one) => !isExtra(one)))
  // What an extra is, is checked where it is used.
  const extra = Object.fromEntries(given?.filter(isExtra) ?? []) as RowExtras[K]
  const value = VALUES[kind](rest, place)
  return { key: value.key, put: { key: value.key, value, hash: hashRow(kind, value), extra } }
}

function parseJson(line: string, place: string): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(line)
    if (typeof json === 'object' && json !== null) return json as Record<string, unknown>
  } catch {
    // said below
  }
  throw new MirrorError('bundle', `${place} is no JSON object`)
}

/** The bytes of an item. Throws `bundle` when they are not the row's. */
export function entryBody({ key: at, value, extra }: PutLine<'catalog-entry'>): Buffer {
  const { text: plain, base64 }: { text?: unknown; base64?: unknown } = extra
  const body =
    typeof plain === 'string'
      ? Buffer.from(plain)
      : typeof base64 === 'string'
        ? Buffer.from(base64, 'base64')
        : null
  if (body !== null && hash('sha256', body, 'hex').startsWith(value.sha) && value.sha !== '')
    return body
  throw new MirrorError('bundle', `the item ${at} does not have the bytes that its row names`)
}

/** The stored bytes of an answer, null for a 404. Throws `bundle` when they are not the row's. */
export function answerBody({ key: at, value, extra }: PutLine<'catalog-answer'>): Buffer | null {
  const { base64 }: { base64?: unknown } = extra
  if (base64 === null) return null
  const body = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null
  // An answer that "verify" found damaged has no digest: it is carried as it is, and fetched again above.
  if (body !== null && (value.sha256 === '' || isContent(body, value.size, value.sha256)))
    return body
  throw new MirrorError('bundle', `the answer ${at} does not have the bytes that its row names`)
}

/** The lengths of a document's chunks. Throws `bundle` when they are not those of the whole. */
export function chunksOf({ key: at, value, extra }: PutLine<'catalog-document'>): number[] {
  const given: unknown = (extra as { chunks?: unknown }).chunks
  const chunks = listOf(integer(18, 2 ** 24), 2 ** 22)(given, `the chunks of ${at}`)
  if (chunks.reduce((sum, one) => sum + one, 0) === value.stored && value.blob === at) return chunks
  throw new MirrorError('bundle', `the chunks of document ${at} do not make up the whole`)
}

/** Whether a gzip member inflates to exactly this content. */
export function isContent(member: Buffer, contentSize: number, sha256: string): boolean {
  try {
    return hash('sha256', contentOf(member, contentSize), 'hex') === sha256
  } catch {
    return false
  }
}
