import { plainText } from '../core/text.ts'
import { textsIn } from '../differences/facts.ts'
import { fieldsOf } from '../json/objects.ts'
import { statedId, statedIds } from '../vex/apply.ts'

/** Returns by which ids VEX may newly rule out a record: those that came, and the upstream ids that went; null: by none. */
export function changedIds(before: unknown, after: unknown): string | null {
  const old = idsOf(before)
  const now = idsOf(after)
  const come = [...now.all].filter((id) => !old.all.has(id))
  const gone = [...old.upstream].filter((id) => !now.all.has(id))
  if (come.length > 0) return `aliases or upstream ids came: ${namedIds(come)}`
  return gone.length > 0 ? `upstream ids are gone: ${namedIds(gone)}` : null
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
