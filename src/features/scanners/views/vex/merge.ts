import { sha256Hex } from '../../../../base/digest.ts'
import { instantOf } from '../../../../base/time.ts'
import { compareText } from '../../../../base/versions/order.ts'
import { rulesOut, vexStatusOf } from '../../../../documents/vex/statement.ts'
import type { OpenVex } from './openvex.ts'

/** What the head of a merged document says of a document that it is made of. */
export interface VexSource {
  readonly author: string
  /** Null without a date that can be read. */
  readonly timestamp: string | null
}

/**
 * Which documents the statements of a merged document are in, in order, those of equal time together. Of each: the characters
 * of its text, then for each document its number and the place of the statement in it.
 */
export type VexOrder = readonly (readonly [at: string, statements: readonly (readonly number[])[]])[]

/** A merged document, and what it takes to change it later without the documents that it is made of. */
interface Merged {
  readonly content: Buffer
  readonly order: VexOrder
}

/** A statement: its time, and pairs of a document's number and its place in that. */
interface Said {
  readonly at: string
  readonly by: number[]
}

/**
 * Merges several documents about a package (null: all their packages) into one, because a VEX repository has one for each.
 * Statements are ordered by their time, so that the newest counts; of those of equal time what rules nothing out is before the
 * others, and then they are in the order of the documents. Of equal statements only the last one stays. Equal documents give equal
 * bytes.
 */
export function createMerge(about: string | null) {
  const said = new Map<string, Said>() // equal texts have the same time
  return {
    /** Begins with the statements of a merged document, of those documents that `isKept` is true of. */
    restore(before: Merged, isKept: (document: number) => boolean): void {
      for (const [text, { at, by }] of statementsOf(before)) {
        const kept = by.filter((_, i) => isKept(by[i - (i % 2)] ?? -1))
        if (kept.length > 0) said.set(text, { at, by: kept })
      }
    },
    /** Adds a document by its number, each once, in any order. */
    add(number: number, { statements, packages, timestamp }: OpenVex): void {
      for (const place of about === null ? statements.keys() : (packages.get(about) ?? [])) {
        const statement = statements[place]
        if (statement === undefined) continue
        const isDated = 'timestamp' in statement || timestamp === undefined
        const dated = isDated ? statement : { ...statement, timestamp }
        const text = JSON.stringify(dated)
        const before = said.get(text)
        if (before === undefined) said.set(text, { at: instantOf(dated.timestamp), by: [number, place] })
        else if (before.by.at(-2) === number) before.by[before.by.length - 1] = place
        else before.by.push(number, place)
      }
    },
    /** The merged document. `sources`: of the documents, in the order in which their statements of equal time are written. */
    end(sources: ReadonlyMap<number, VexSource>): Merged {
      const sorted = inOrder(said, [...sources.keys()])
      const texts = sorted.map(([text]) => text)
      const head = JSON.stringify(headOf(texts, [...sources.values()])).slice(0, -1)
      const content = Buffer.from(`${head},"statements":[${texts.join()}]}`)
      const byTime: [at: string, statements: number[][]][] = []
      for (const [{ length }, { at, by }] of sorted) {
        const last = byTime.at(-1)
        if (last?.[0] === at) last[1].push([length, ...by])
        else byTime.push([at, [[length, ...by]]])
      }
      return { content, order: byTime }
    },
  }
}

/** The statements of a merged document: they end two characters before its end, and each is one comma from the next. */
function* statementsOf({ content, order }: Merged): Generator<[text: string, Said]> {
  const whole = content.toString()
  const lengths = order.flatMap(([, statements]) => statements.map(([length = 0]) => length))
  let from = whole.length - ']}'.length + 1 - lengths.reduce((sum, length) => sum + length + 1, 0)
  for (const [at, statements] of order)
    for (const [length = 0, ...by] of statements) {
      yield [whole.slice(from, from + length), { at, by }]
      from += length + 1
    }
}

/**
 * Orders statements by their time, then by whether they rule out, by the last document that they are in, and by their place in
 * that. Of equally old ones Trivy takes the first.
 */
function inOrder(said: ReadonlyMap<string, Said>, documents: readonly number[]): [string, Said][] {
  const ranks = new Map(documents.map((number, rank) => [number, rank]))
  const placed = [...said].map((one) => {
    const { by } = one[1]
    let rank = -1
    let place = 0
    for (let i = 0; i < by.length; i += 2) {
      const other = ranks.get(by[i] ?? -1) ?? -1
      if (other > rank) [rank, place] = [other, by[i + 1] ?? 0]
    }
    return { one, at: one[1].at, out: isRulingOut(one[0]) ? 1 : 0, rank, place }
  })
  placed.sort((a, b) => compareText(a.at, b.at) || a.out - b.out || a.rank - b.rank || a.place - b.place)
  return placed.map(({ one }) => one)
}

function isRulingOut(text: string): boolean {
  const { status } = JSON.parse(text) as { status?: unknown }
  return rulesOut(vexStatusOf(status))
}

function headOf(statements: readonly string[], sources: readonly VexSource[]): object {
  let newest = { timestamp: '1970-01-01T00:00:00Z', at: '' }
  for (const { timestamp } of sources) {
    if (timestamp === null || timestamp === newest.timestamp) continue
    const at = instantOf(timestamp)
    if (newest.at <= at) newest = { timestamp, at }
  }
  return {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `urn:sha256:${sha256Hex(statements.join('\n'))}`,
    author: [...new Set(sources.map(({ author }) => author))].sort().join(', '),
    role: 'Statements of several documents, put together by a mirror',
    timestamp: newest.timestamp,
    version: 1,
  }
}
