import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { createOsvScope, parseScopeText } from '../../../base/domain/osv-scope.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { isNone } from '../../../store/catalog/answers.ts'
import { contentOf } from '../../../store/database/gzip.ts'
import { type RowExtras, type RowKind, type RowValues, compareKeys, hashRow } from '../../../store/replication/rows.ts'
import type { Manifest } from '../format/manifest.ts'
import { ROW_VALUES, isKindOf, refuseForeign, rowKey } from '../format/row-schema.ts'
import { integerField, listField, orNull, shape } from '../../../base/json/shapes.ts'
import type { Contents } from './members.ts'
import type { BundleExcerpt } from './open.ts'

/** A line that adds or replaces a row. */
export interface PutLine<K extends RowKind> {
  key: string
  value: RowValues[K]
  hash: string
  extra: RowExtras[K]
}

/** A line of a pack: a row to put, or null with the key of a row to remove. */
export interface Line<K extends RowKind> {
  key: string
  put: PutLine<K> | null
}

const EXTRAS: { readonly [K in RowKind]?: readonly string[] } = {
  source: ['scope'],
  'catalog-list': ['confirmed'],
  'catalog-entry': ['text', 'base64'],
  'catalog-answer': ['base64', 'confirmed'],
  'catalog-document': ['chunks'],
}

/** Throws `bundle` for a pack of rows of an unknown kind: it would be ignored silently. */
export function refuseOtherRows({ members }: Manifest): void {
  for (const { name } of members.filter((one) => one.name.startsWith('rows/'))) {
    const [, source = '', pack = ''] = name.split('/')
    if (!isKindOf(source as SourceName, pack.replace(/-\d+\.jsonl$/, '')))
      // a source of the manifest's
      throw new MirrorError('bundle', `${name} has rows of a kind that this program does not know`)
  }
}

/** Yields the lines of a kind in order, pack by pack: one pack is in memory. Throws `bundle` for an invalid line. */
export async function* eachLine<K extends RowKind>(
  { manifest, read }: Pick<Contents, 'read'> & Pick<BundleExcerpt, 'manifest'>,
  source: SourceName,
  kind: K,
): AsyncGenerator<Line<K>> {
  const packs = manifest.members.filter(({ name }) => PACK.exec(name)?.[1] === `${source}/${kind}`)
  let before: string | null = null
  for (const { name } of packs) {
    let number = 0
    for (const line of linesOf(await read(name), name)) {
      const place = `${name}:${++number}`
      const parsed = parseLine(source, kind, line, place)
      if (before !== null && compareKeys(before, parsed.key) >= 0)
        throw new MirrorError('bundle', `${place} is out of order`)
      if (parsed.put === null && manifest.kind === 'full')
        throw new MirrorError('bundle', `${place} removes something, in a full bundle`)
      before = parsed.key
      yield parsed
    }
  }
}

/** Yields the lines of a pack one at a time: a pack may have too many of them for an array. */
function* linesOf(pack: Buffer, name: string): Generator<string> {
  for (let at = 0; at < pack.length;) {
    const end = pack.indexOf(0x0a, at)
    if (end < 0) throw new MirrorError('bundle', `${name} ends within a line`)
    if (end === at) throw new MirrorError('bundle', `${name} has an empty line`)
    yield pack.toString('utf8', at, end)
    at = end + 1
  }
}

const PACK = /^rows\/(.+)-\d+\.jsonl$/

function parseLine<K extends RowKind>(source: SourceName, kind: K, line: string, place: string): Line<K> {
  const json = parseJson(line, place)
  if ('removed' in json) return removalOf(json, place)
  const extras = EXTRAS[kind]
  const isExtra = ([name]: [string, unknown]): boolean => extras?.includes(name) === true
  const given = extras === undefined ? null : Object.entries(json)
  const rest = given === null ? json : Object.fromEntries(given.filter((one) => !isExtra(one)))
  // Extras are validated where they are used.
  const extra = Object.fromEntries(given?.filter(isExtra) ?? []) as RowExtras[K]
  const value = ROW_VALUES[kind](rest, place)
  refuseForeign(source, kind, value, place)
  const { key } = value
  const put = {
    key,
    value,
    extra,
    /** Computed where it is needed: in an empty folder, and in an export's own check, it is not. */
    get hash() {
      return hashRow(kind, value)
    },
  }
  return { key, put }
}

const removal = shape({ removed: rowKey })

/** Parses a removal, which has no other members. */
function removalOf(json: Record<string, unknown>, place: string) {
  const { removed } = removal(json, place)
  return { key: removed, put: null } as const
}

function parseJson(line: string, place: string): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(line)
    if (typeof json === 'object' && json !== null) return json as Record<string, unknown>
  } catch {
    // reported below
  }
  throw new MirrorError('bundle', `${place} is not a JSON object`)
}

/** Returns the bytes of an item. Throws `bundle` if they do not match the row. */
export function entryBody({ key: at, value, extra }: PutLine<'catalog-entry'>): Buffer {
  const body = bytesIn(extra)
  if (body !== null && sha256Hex(body).startsWith(value.sha) && value.sha !== '') return body
  throw new MirrorError('bundle', `the item ${at} does not have the bytes that its row names`)
}

function bytesIn({ text, base64 }: { text?: unknown; base64?: unknown }): Buffer | null {
  if (typeof text === 'string') return Buffer.from(text)
  return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null
}

/** Returns the stored bytes of an answer, null if upstream has none. Throws `bundle` if they do not match the row. */
export function answerBody({ key: at, value, extra }: PutLine<'catalog-answer'>): Buffer | null {
  const { base64 }: { base64?: unknown } = extra
  // An answer that is a document itself has its bytes in that document.
  if (base64 === null && (isNone(value) || value.links.startsWith('[{"at":[],'))) return null
  const body = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null
  // An answer that "doctor --data" found damaged has no digest: it is transferred unchanged, and the source mirror fetches
  // it again.
  if (body !== null && (value.sha256 === '' || isContent(body, value.size, value.sha256))) return body
  throw new MirrorError('bundle', `the answer ${at} does not have the bytes that its row names`)
}

/** Returns the scope of the source mirror, as stored with a snapshot; null if everything is in scope. Throws `bundle`. */
export function carriedScope({ key: at, extra }: PutLine<'source'>): string | null {
  const { scope = null }: { scope?: unknown } = extra
  if (scope === null) return null
  if (typeof scope === 'string' && createScope(scope) !== null) return scope
  throw new MirrorError('bundle', `the scope of ${at} is malformed`)
}

function createScope(text: string) {
  const settings = parseScopeText(text)
  return settings && createOsvScope(settings)
}

/** Returns when upstream last confirmed a list or an answer, Unix milliseconds; null if unknown. Throws `bundle`. */
export function confirmedOf({ key: at, extra }: PutLine<'catalog-list' | 'catalog-answer'>): number | null {
  const { confirmed }: { confirmed?: unknown } = extra
  return orNull(integerField(0, 2 ** 50))(confirmed ?? null, `the date of ${at}`)
}

/** Returns the lengths of a document's chunks. Throws `bundle` if their sum is not the stored size. */
export function chunksOf({ key: at, value, extra }: PutLine<'catalog-document'>): number[] {
  const given: unknown = (extra as { chunks?: unknown }).chunks
  const chunks = listField(integerField(18, 2 ** 24), 2 ** 22)(given, `the chunks of ${at}`)
  if (chunks.reduce((sum, one) => sum + one, 0) === value.stored && value.blob === at) return chunks
  throw new MirrorError('bundle', `the chunks of document ${at} do not add up to its size`)
}

/** Reports whether a gzip member inflates to exactly this content. */
export function isContent(member: Buffer, contentSize: number, sha256: string): boolean {
  try {
    return sha256Hex(contentOf(member, contentSize)) === sha256
  } catch {
    return false
  }
}
