import type { EventEmitter } from 'node:events'
import { type FastPath, type FastPathOptions, openFastPath } from '../http/fast-path.ts'
import { type Heads, type JsonResponse, answerText, dated } from '../http/response.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { findPacked } from './osv.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import { inflateMembers, trailerSize } from '../../base/gzip/member.ts'
import { contentOf } from '../../store/database/gzip.ts'

/** What records are served from. */
export type ServedRecords = Pick<ServedSnapshot, 'cache' | 'reads' | 'originOf' | 'knownOrigin'>

/** Opens the fast path for records. */
export function openFastRecords(
  server: EventEmitter,
  served: ServedRecords,
  heads: Heads,
  options: Omit<FastPathOptions, 'find'>,
): FastPath {
  const inflating = createInflating()
  return openFastPath(server, {
    ...options,
    find(target, coding) {
      const origin = served.originOf('osv')
      const shared = heads(origin, coding)
      const found = findPacked(served, target, coding)
      if (found === undefined || found.asOf !== undefined) return undefined // its head is its own
      const ready = (answer: JsonResponse) => ({
        head: answerText(dated(answer, origin), shared),
        body: answer.body,
      })
      if (!('member' in found)) return ready(found)
      const content = inflating(target, found.member, found.size)
      return () => ready(found.known() ?? found.answer(content()))
    },
  })
}

/** Content above this size, bytes, is inflated by itself: the begin of a call is little of its time. */
const LARGE = 1 << 16
/** Bytes of content from which a call takes no more: a client that is slow to read one of them keeps all in memory. */
const ENOUGH = 1 << 16

/** Members that are inflated together when the first content is needed. */
interface Batch {
  readonly members: { readonly member: Buffer; readonly size: number }[]
  /** Their last places in `members` by what was asked for. */
  readonly places: Map<string, number>
  bytes: number
  /** Undefined: not inflated yet; null: together they cannot be. */
  contents: Buffer[] | null | undefined
}

/**
 * Creates the inflating of stored members: returns for each a function that returns its content, or throws as `contentOf`.
 * The members that are given before the first such function is called are inflated with it, in one call of zlib: for a record
 * of 2.6 kB, 5 of the 13 µs of a call are its begin and end. The same member under the same name is inflated once.
 */
export function createInflating(): (name: string, member: Buffer, size: number) => () => Buffer {
  const begin = (): Batch => ({ members: [], places: new Map(), bytes: 0, contents: undefined })
  let open = begin()
  return (name, member, size) => {
    if (size > LARGE) return () => contentOf(member, size)
    const batch = open
    const known = batch.places.get(name)
    // The snapshot may have moved since: then the name has another member.
    const isSame = known !== undefined && batch.members[known]?.member.equals(member) === true
    const at = isSame ? known : batch.members.push({ member, size }) - 1
    batch.places.set(name, at)
    batch.bytes += size
    if (batch.bytes >= ENOUGH) open = begin()
    return () => {
      if (batch === open) open = begin()
      if (batch.contents === undefined) batch.contents = inflate(batch)
      return batch.contents?.[at] ?? contentOf(member, size)
    }
  }
}

/** Null where there is only one, or one of them is not sound: then each is inflated by itself. */
function inflate({ members }: Batch): Buffer[] | null {
  if (members.length < 2) return null
  if (members.some(({ member, size }) => trailerSize(member) !== size)) return null
  let end = 0
  const ends = members.map(({ member }) => (end += member.length))
  const packed = members.map(({ member }) => member)
  const joined = Buffer.concat(packed, end)
  const contents = inflateMembers(joined, ends)
  freeBytes(joined)
  if (contents === null) return null
  let from = 0
  return members.map(({ size }) => contents.subarray(from, (from += size)))
}
