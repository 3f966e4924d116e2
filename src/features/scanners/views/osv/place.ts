import type { ViewsWriter } from '../../store/writes.ts'
import { deflateQuickly } from '../../../../base/gzip/member.ts'
import type { PreparedFolders, PreparedRecord } from './prepare/prepared.ts'

/** A member of a view: its record, its content's CRC-32 and size, and its deflate stream. */
export interface MemberStream {
  readonly num: number
  readonly id: string
  readonly crc32: number
  readonly size: number
  readonly deflated: Uint8Array
}

/** How records are placed. */
export interface Placing {
  readonly views: ViewsWriter
  /** Gets each prefix that was taken off. */
  readonly prefixes: Set<string>
  /** Takes a stream for a view; returns the member's place. */
  readonly put: (view: number, stream: MemberStream) => number
}

/** Writes the rows of a record; its streams, upstream's and the derived one, are each made once for all their views. */
export function placeRecord(placing: Placing, num: number, record: PreparedRecord): void {
  const { views } = placing
  const { id, sha256, stamp, instant, prefixes, malformed, own, derived } = record
  const into = putStream(placing, own.folders, { ...own, num, id }, false)
  if (derived !== null) {
    const { crc32, content } = derived
    const stream = { num, id, crc32, size: content.length, deflated: deflateQuickly(content) }
    into.push(...putStream(placing, derived.folders, stream, true))
  }
  for (const prefix of prefixes) placing.prefixes.add(prefix)
  views.insertRecord({ num, id, sha256, stamp, instant, views: into, prefixes, malformed })
  for (const name of record.aliases) views.insertAlias(name, num)
  views.countEcosystems(record.ecosystems, 1)
}

/** Returns the views that the stream was put into. */
function putStream(
  { views, put }: Placing,
  folders: PreparedFolders,
  { num, id, crc32, size, deflated }: MemberStream,
  derived: boolean,
): number[] {
  return folders.map(([folder, names]) => {
    const view = views.viewId(folder)
    const place = put(view, { num, id, crc32, size, deflated })
    views.insertMember(view, { num, derived, crc32, size, length: deflated.length, place })
    for (const name of names) views.insertName(view, name, num)
    return view
  })
}
