import { plainText } from '../base/text.ts'
import { textsIn } from '../documents/differences/facts.ts'
import { fieldsOf } from '../base/json/objects.ts'
import { statedId, statedIds } from '../documents/vex/apply.ts'
import { type VexReads, readVexStatements } from '../documents/vex/read.ts'
import { rulesOut } from '../documents/vex/statement.ts'

/** By which ids VEX may newly rule out a record. */
interface ChangedIds {
  readonly because: string
  /** The ids that came, in the form in which statements are compared. */
  readonly come: readonly string[]
}

/** Returns by which ids VEX may newly rule out a record: those that came, and the upstream ids that went; null: by none. */
export function changedIds(before: unknown, after: unknown): ChangedIds | null {
  const old = idsOf(before)
  const now = idsOf(after)
  const come = [...now.all].filter((id) => !old.all.has(id))
  const gone = [...old.upstream].filter((id) => !now.all.has(id))
  if (come.length > 0) return { because: `aliases or upstream ids came: ${namedIds(come)}`, come }
  return gone.length > 0 ? { because: `upstream ids are gone: ${namedIds(gone)}`, come } : null
}

/** The ids by which statements name a record, and those of them that it is derived from. */
function idsOf(json: unknown): { all: ReadonlySet<string>; upstream: ReadonlySet<string> } {
  const { id, aliases, upstream } = fieldsOf(json)
  const own = { id: typeof id === 'string' ? id : '', aliases: textsIn(aliases), upstream: textsIn(upstream) }
  return { all: new Set(statedIds(own)), upstream: new Set(own.upstream.map(statedId)) }
}

/** Ids of one record that are named. */
const NAMED_IDS = 3

function namedIds(ids: readonly string[]): string {
  const named = ids.slice(0, NAMED_IDS).map((id) => plainText(id, 40))
  const more = ids.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}

/** Bytes of VEX documents that are read for the ids of one run: the transaction that publishes waits for it. */
const MAX_BYTES = 2 ** 28

/** Returns which of these ids a mirrored VEX document rules out of anything. */
export function ruledOutIds(reads: VexReads, ids: ReadonlySet<string>): Set<string> {
  const found = new Set<string>()
  let bytes = 0
  for (const document of reads.listVexDocuments()) {
    bytes += document.size
    if (bytes > MAX_BYTES || found.size === ids.size) break
    const content = { readVexContent: reads.readVexContent }
    for (const { status, vulnerabilities } of readVexStatements(content, document) ?? []) {
      const named = rulesOut(status) ? vulnerabilities.map(statedId) : []
      for (const id of named) if (ids.has(id)) found.add(id)
    }
  }
  return found
}

/** Records whose new ids are kept: above, their number is reported. */
const MOST_RECORDS = 20_000

/** The ids that came to a record, and what is noted of it. */
interface NewIds {
  readonly come: readonly string[]
  readonly content: string
  readonly packages: readonly string[]
}

/** Creates what collects the ids that came to records, and says which records VEX may rule out by them. */
export function createNewIds() {
  const byRecord = new Map<string, NewIds>()
  return {
    add(record: string, ids: NewIds): void {
      if (ids.come.length > 0 && byRecord.size < MOST_RECORDS) byRecord.set(record, ids)
    },
    count: (): number => byRecord.size,
    /** The records, each with an id that came and is ruled out of anything. */
    listRuledOut(find: (ids: ReadonlySet<string>) => ReadonlySet<string>): [record: string, id: string, of: NewIds][] {
      const ruledOut = find(new Set([...byRecord.values()].flatMap(({ come }) => come)))
      return [...byRecord].flatMap(([record, of]): [string, string, NewIds][] => {
        const id = of.come.find((one) => ruledOut.has(one))
        return id === undefined ? [] : [[record, id, of]]
      })
    },
  }
}
