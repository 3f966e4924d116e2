import { crc32 } from 'node:zlib'
import type { ViewsWriter } from '../../store/views/writes.ts'
import { deflate } from '../../zip/member.ts'
import { type Folders, analyse } from './record.ts'

/** A record to place into its views: upstream's bytes and their deflate stream. */
interface StoredContent {
  readonly num: number
  readonly id: string
  readonly sha256: Buffer
  /** The index's `modified`. */
  readonly stamp: string
  readonly content: Buffer
  readonly crc32: number
  readonly deflated: Buffer
}

/** The bytes of a member: its content's CRC-32 and size, and its deflate stream. */
export interface MemberStream {
  readonly num: number
  readonly id: string
  readonly crc32: number
  readonly size: number
  readonly deflated: Buffer
}

/** How records are placed. */
export interface Placing {
  readonly views: ViewsWriter
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: ReadonlySet<string>
  /** The folders that there may be, where a choice was made; null: all of them. */
  readonly chosen: ReadonlySet<string> | null
  /** Gets each prefix that was taken off. */
  readonly prefixes: Set<string>
  /** Takes a stream for a view; returns the member's place. */
  readonly put: (view: number, stream: MemberStream) => number
}

/** Writes the rows of a record; its streams, upstream's and the derived one, are each made once for all their views. */
export function placeRecord(placing: Placing, record: StoredContent): void {
  const { views, vendors, chosen } = placing
  const { num, id, sha256, stamp, content, deflated } = record
  const isFolder = (name: string): boolean => chosen?.has(name) ?? true
  const found = analyse(content, stamp, vendors, isFolder)
  const { derived, instant, malformed } = found
  const own = { num, id, crc32: record.crc32, size: content.length, deflated }
  const into = putStream(placing, found.folders, own, false)
  if (derived !== null) {
    const sums = { crc32: crc32(derived.content), size: derived.content.length }
    const stream = { num, id, ...sums, deflated: deflate(derived.content) }
    into.push(...putStream(placing, derived.folders, stream, true))
  }
  const prefixes = derived?.prefixes ?? []
  for (const prefix of prefixes) placing.prefixes.add(prefix)
  views.insertRecord({ num, id, sha256, stamp, instant, views: into, prefixes, malformed })
  for (const name of found.aliases) views.insertAlias(name, num)
}

/** Returns the views that the stream was put into. */
function putStream(
  { views, put }: Placing,
  folders: Folders,
  stream: MemberStream,
  derived: boolean,
): number[] {
  const { num, crc32, size, deflated } = stream
  const into: number[] = []
  for (const [folder, names] of folders) {
    const view = views.viewId(folder)
    into.push(view)
    const place = put(view, stream)
    views.insertMember(view, { num, derived, crc32, size, length: deflated.length, place })
    for (const name of names) views.insertName(view, name, num)
  }
  return into
}
