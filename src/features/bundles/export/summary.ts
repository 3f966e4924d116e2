import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { createGzip, gzip, gzipSync } from 'node:zlib'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { type LineFault, eachGzipLines } from '../format/lines.ts'
import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import type { CarriedReader } from '../../../store/replication/reader.ts'
import {
  type CarriedRow,
  type RowKind,
  type SummaryRow,
  ROW_KINDS,
  compareRows,
  createStateDigest,
} from '../../../store/replication/rows.ts'
import { isSha256Hex } from '../../../base/digest.ts'

/** A source in a summary. Times in Unix milliseconds. */
export interface SummarySource {
  digest: string
  snapshot: string
  /** Upstream's date of the stored data. */
  asOf: number
  records: number
}

/** The first line of a summary. */
export interface SummaryHeader {
  format: 1
  kind: 'patchmirror-summary'
  /** Identity of the mirror that wrote it. */
  mirror: string
  /** Of all its sources together. */
  digest: string
  sources: Partial<Record<SourceName, SummarySource>>
  /** Without rows: it only identifies the state. */
  brief: boolean
  createdAt: number
  /** The bundle that was imported last: its source mirror and sequence; null: none, or not requested. */
  imported: { mirror: string; sequence: number } | null
}

const PIECE = 16_384
/** Longest line, bytes. A line has a path or an id, a header little more: anything longer is not a summary. */
const MAX_LINE = 1 << 20

/** Writes a summary, gzipped, in chunks: the header, and unless it is brief a line per row of its sources. */
export function writeSummary(reader: CarriedReader, header: SummaryHeader): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: 6 })
  return Readable.from(summaryText(reader, header)).pipe(gzip)
}

function* summaryText(reader: CarriedReader, header: SummaryHeader): Generator<string> {
  let text = `${JSON.stringify(header)}\n`
  if (!header.brief)
    for (const source of SOURCES.filter((one) => header.sources[one] !== undefined))
      for (const kind of ROW_KINDS[source])
        for (const row of reader.eachRow(source, kind)) {
          text += `${lineOfRow(source, row)}\n`
          if (text.length < PIECE) continue
          yield text
          text = ''
        }
  yield text
}

/** Returns the line of a row, without its end. */
export function lineOfRow(source: SourceName, { kind, key, hash }: Omit<SummaryRow, 'source'>): string {
  return `${source} ${kind} ${hash} ${quoteKey(key)}`
}

/** Bytes of text that are compressed at once. */
const MEMBER = 1 << 20
/** Texts that wait for zlib's threads at most. */
const MOST_WAITING = 8
/** Random digits hardly compress: level 6 takes a third longer for 2 %. */
const QUICK = { level: 1 }
const compress = promisify(
  gzip as (bytes: Buffer, options: object, done: (error: Error | null, made: Buffer) => void) => void,
)

/**
 * Creates a reader that notes the rows which are read through it: the state digests, and the summary, are known without a
 * further pass. It reads sources and kinds in their order, each once and to its end.
 */
export function createStatePass({ eachRow }: Pick<CarriedReader, 'eachRow'>) {
  const digests: Partial<Record<SourceName, string>> = {}
  const members: Promise<Buffer>[] = []
  let text = ''
  let texts: Buffer[] = []
  let bytes = 0
  let waiting = 0
  let digest = createStateDigest()
  const packAside = (member: Buffer): Promise<Buffer> => {
    waiting++
    return compress(member, QUICK).finally(() => waiting--)
  }
  const pack = (): void => {
    const member = Buffer.concat(texts)
    const packed = waiting < MOST_WAITING ? packAside(member) : Promise.resolve(gzipSync(member, QUICK))
    packed.catch(() => undefined) // it is awaited later
    members.push(packed)
    texts = []
    bytes = 0
  }
  /** A text that grows for long would outlive the young generation with all its parts. */
  const settle = (): void => {
    const settled = Buffer.from(text)
    texts.push(settled)
    bytes += settled.length
    text = ''
    if (bytes > MEMBER) pack()
  }
  return {
    *eachRow<K extends RowKind>(source: SourceName, kind: K): Generator<CarriedRow<K>> {
      for (const row of eachRow(source, kind)) {
        digest.add(row)
        text += `${lineOfRow(source, row)}\n`
        if (text.length > PIECE) settle()
        yield row
      }
      if (kind !== ROW_KINDS[source].at(-1)) return
      digests[source] = digest.end()
      digest = createStateDigest()
    },
    /** The state digests of the sources that were read to their end. */
    digests,
    /** Returns the summary of the rows so far, gzip. */
    async summary(header: SummaryHeader): Promise<Buffer> {
      settle()
      pack()
      return Buffer.concat([gzipSync(`${JSON.stringify(header)}\n`), ...(await Promise.all(members))])
    },
  }
}

export type StatePass = ReturnType<typeof createStatePass>

/** An open summary: its header, and the lines of its rows in order, which can be read once. */
interface Summary {
  header: SummaryHeader
  lines: SummaryLines
}

/** Lines of rows in order (`lineOfRow`), as many as were read at once. */
export type SummaryLines = AsyncGenerator<readonly string[]>

/**
 * Reads a summary from a stream; memory does not grow with its size. Throws `bundle` for any other file. Its lines are not parsed:
 * a comparison with rows needs only those that differ (`parseLine`).
 */
export async function readSummary(chunks: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<Summary> {
  const pages = eachGzipLines(chunks, MAX_LINE, faultOf)
  const page = await pages.next()
  const [first = '', ...lines] = page.done === true ? [] : page.value
  const header = parseHeader(first)
  return { header, lines: following(lines, pages) }
}

async function* following(first: readonly string[], pages: AsyncGenerator<string[]>): SummaryLines {
  yield first
  yield* pages
}

/** Yields the lines of one source; they are consecutive, so later ones are not read. Throws `bundle`. */
export async function* linesOfSource(pages: SummaryLines, source: SourceName): SummaryLines {
  const place = SOURCES.indexOf(source)
  for await (const page of pages) {
    yield page.filter((line) => sourceOf(line) === source)
    const last = page.at(-1)
    if (last !== undefined && SOURCES.indexOf(sourceOf(last)) > place) return
  }
}

/** Returns the row of a line. Throws `bundle`, also if it is not behind the line `before`. */
export function parseLine(line: string, before: string | null): SummaryRow {
  const row = rowOf(line)
  if (before !== null && compareRows(rowOf(before), row) >= 0) throw bad('its rows are out of order')
  return row
}

function faultOf(fault: LineFault): MirrorError {
  if (fault === 'endless') return bad('it has a line without an end')
  return fault === 'cut' ? bad('it is truncated') : bad(messageOf(fault.cause), fault.cause)
}

function sourceOf(line: string): SourceName {
  const source = SOURCES.find((one) => line.startsWith(one) && line[one.length] === ' ')
  if (source === undefined) throw bad(NOT_ROW)
  return source
}

const ROW = /^\S+ (\S+) ([\da-f]{32}) (.+)$/s
const NOT_ROW = 'it has a line that is not a row'

function rowOf(line: string): SummaryRow {
  const source = sourceOf(line)
  const [, name, hash, text = ''] = ROW.exec(line) ?? []
  const kind = ROW_KINDS[source].find((one) => one === name)
  const key = unquoteKey(text)
  if (kind === undefined || hash === undefined || key === null) throw bad(NOT_ROW)
  return { source, kind, key, hash }
}

/** Encodes a key for its line: paths and ids unchanged; one with a control character or a leading quote as JSON. */
function quoteKey(key: string): string {
  return /^"|\p{Cc}/u.test(key) ? JSON.stringify(key) : key
}

function unquoteKey(text: string): string | null {
  if (!text.startsWith('"')) return text === '' ? null : text
  try {
    const key: unknown = JSON.parse(text)
    return typeof key === 'string' ? key : null
  } catch {
    return null
  }
}

function parseHeader(line: string): SummaryHeader {
  const header = parseJson(line)
  if (header?.['kind'] !== 'patchmirror-summary') throw bad('its first line is not the header of a summary')
  const { format } = header
  if (format !== 1) throw bad(`it has format ${String(format)}, and this program knows 1: use a newer one`)
  if (!isHeader(header)) throw bad('its first line is incomplete')
  return header
}

function parseJson(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

function isHeader(value: object): value is SummaryHeader {
  const { mirror, digest, sources, brief, createdAt }: Partial<Record<string, unknown>> = {
    ...value,
  }
  const named = typeof mirror === 'string' && isSha256Hex(digest) && typeof createdAt === 'number'
  if (!named || typeof brief !== 'boolean' || typeof sources !== 'object' || sources === null) return false
  return Object.entries(sources).every(([name, one]) => isSource(name, one))
}

function isSource(name: string, value: unknown): boolean {
  if (typeof value !== 'object' || !SOURCES.some((source) => source === name)) return false
  const { digest, snapshot, asOf, records }: Partial<Record<string, unknown>> = { ...value }
  return isSha256Hex(digest) && typeof snapshot === 'string' && typeof asOf === 'number' && typeof records === 'number'
}

function bad(why: string, cause?: unknown): MirrorError {
  const text = `this file was not written by "patchmirror bundle need", or it is damaged: ${why}`
  return new MirrorError('bundle', text, { cause })
}
