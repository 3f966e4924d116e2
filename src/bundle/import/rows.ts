import { hash } from 'node:crypto'
import { MirrorError } from '../../core/errors.ts'
import type { SourceName } from '../../domain/sources.ts'
import { isNone } from '../../store/catalog/answers.ts'
import { contentOf } from '../../store/database/gzip.ts'
import {
  type RowExtras,
  type RowKind,
  type RowValues,
  compareKeys,
  hashRow,
} from '../../store/replication/rows.ts'
import type { Manifest } from '../format/manifest.ts'
import { ROW_VALUES, isKindOf, refuseForeign, rowKey } from '../format/row-schema.ts'
import { integerField, listField, orNull, shape } from '../format/validators.ts'
import type { Bundle } from './open.ts'

/** A line that puts a row. */
export interface PutLine<K extends RowKind> {
  key: string
  value: RowValues[K]
  hash: string
  extra: RowExtras[K]
}

/** A line of a pack: a row to put, or null with the key of one that is to go. */
interface Line<K extends RowKind> {
  key: string
  put: PutLine<K> | null
}

const EXTRAS: { readonly [K in RowKind]?: readonly string[] } = {
  'catalog-list': ['confirmed'],
  'catalog-entry': ['text', 'base64'],
  'catalog-answer': ['base64', 'confirmed'],
  'catalog-document': ['chunks'],
}

/** Throws `bundle` for a pack of rows that belongs to no kind of its source: it would be left out in silence. */
export function refuseOtherRows({ members }: Manifest): void {
  for (const { name } of members.filter((one) => one.name.startsWith('rows/'))) {
    const [, source = '', pack = ''] = name.split('/')
    if (!isKindOf(source as SourceName, pack.replace(/-\d+\.jsonl$/, '')))
      // a source of the manifest's
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

/** The lines of a pack, one at a time: a pack may have more of them than a list can hold. */
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

function parseLine<K extends RowKind>(
  source: SourceName,
  kind: K,
  line: string,
  place: string,
): Line<K> {
  const json = parseJson(line, place)
  if ('removed' in json) return removalOf(json, place)
  const extras = EXTRAS[kind]
  const isExtra = ([name]: [string, unknown]): boolean => extras?.includes(name) === true
  const given = extras === undefined ? null : Object.entries(json)
  const rest = given === null ? json : Object.fromEntries(given.filter((one) => !isExtra(one)))
  // What an extra is, is checked where it is used.
  const extra = Object.fromEntries(given?.filter(isExtra) ?? []) as RowExtras[K]
  const value = ROW_VALUES[kind](rest, place)
  refuseForeign(source, kind, value, place)
  return { key: value.key, put: { key: value.key, value, hash: hashRow(kind, value), extra } }
}

const removal = shape({ removed: rowKey })

/** A removal has nothing else. */
function removalOf(json: Record<string, unknown>, place: string) {
  const { removed } = removal(json, place)
  return { key: removed, put: null } as const
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

/** The stored bytes of an answer, null where upstream has none. Throws `bundle` when they are not the row's. */
export function answerBody({ key: at, value, extra }: PutLine<'catalog-answer'>): Buffer | null {
  const { base64 }: { base64?: unknown } = extra
  // An answer that is a document itself has its bytes there.
  if (base64 === null && (isNone(value) || value.links.startsWith('[{"at":[],'))) return null
  const body = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null
  // An answer that "verify" found damaged has no digest: it is carried as it is, and fetched again above.
  if (body !== null && (value.sha256 === '' || isContent(body, value.size, value.sha256)))
    return body
  throw new MirrorError('bundle', `the answer ${at} does not have the bytes that its row names`)
}

/** When upstream last confirmed a list or an answer, unix milliseconds; null where the bundle does not say. Throws `bundle`. */
export function confirmedOf({
  key: at,
  extra,
}: PutLine<'catalog-list' | 'catalog-answer'>): number | null {
  const { confirmed }: { confirmed?: unknown } = extra
  return orNull(integerField(0, 2 ** 50))(confirmed ?? null, `the date of ${at}`)
}

/** The lengths of a document's chunks. Throws `bundle` when they are not those of the whole. */
export function chunksOf({ key: at, value, extra }: PutLine<'catalog-document'>): number[] {
  const given: unknown = (extra as { chunks?: unknown }).chunks
  const chunks = listField(integerField(18, 2 ** 24), 2 ** 22)(given, `the chunks of ${at}`)
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
