import { wordsOf } from '../../../base/json/field-names.ts'
import { kindOf } from './references.ts'
import type { SubscribedKind } from './names.ts'

/** A value of a subscription that may name its target. */
export interface Mention {
  field: string
  value: string
  /** Kinds of things that it can name. */
  kinds: readonly SubscribedKind[]
  /** Whether it can be an id or a name; both are possible. */
  isId: boolean
  isName: boolean
  /** How explicit its field is: from 0, an id of a named kind, to `OWN_ID`. */
  rank: number
  /** Whether it is one of several ids in a list, each of which is a target. */
  isListed: boolean
}

/** Rank of the subscription's own id, which may also be the id of its target. */
export const OWN_ID = 5

/** A number, which may be the id of any kind. */
const NUMBER = /^\d{1,20}$/
const MAX_TEXT = 500
const MAX_DEPTH = 6
const ALL: readonly SubscribedKind[] = ['tag', 'image', 'package']

/** Fields of other parties, dates and states; their values name no target. */
const FOREIGN =
  /^(organi[sz]ations?|orgs?|accounts?|users?|members?|owners?|tenants?|teams?|customers?|creat(or|ed)|updat(er|ed)|deleted|at|by|date|time|email|status|state|enabled|active|type|kind|category|ecosystem|arch|architecture|os|distro|platform|role|plan|severity|description|secret|token)$/
/** Fields whose number is an amount and not an id. */
const AMOUNT =
  /^(count|total|limit|size|priority|order|rank|page|number|quota|days|hours|interval|version|major|minor|level|score|bytes)$/
const ID = /^(ids?|uuids?|guids?)$/
const NAME = /^(names?|repos?|repository|repositories|refs?|references?|purls?|urls?|uris?|digests?|slugs?)$/
/** Fields whose value is a name even when it is a number. */
const TEXT = /^(names?|repos?|repository|repositories|slugs?|digests?)$/
/** Fields whose text can state the kind of the target. */
const DISCRIMINATOR = /^(type|kind|category|class|resource|target|entity|object|subject)$/

/**
 * Returns the values of a subscription that may name its target, the most explicit first: an id under a field that
 * states its kind, a name under such a field, another value under one, a value under any other field, its own id.
 */
export function mentionsIn(subscription: Readonly<Record<string, unknown>>): Mention[] {
  const stated = new Set<SubscribedKind>()
  const found: Mention[] = []
  const visit = (value: unknown, at: Position): void => {
    if (at.depth > MAX_DEPTH) return
    if (Array.isArray(value)) for (const inner of value) visit(inner, { ...at, depth: at.depth + 1, isListed: true })
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) visit(inner, below(at, name))
    else if (typeof value === 'string' || Number.isInteger(value)) {
      const text = String(value).trim()
      if (text === '' || text.length > MAX_TEXT) return
      const own = DISCRIMINATOR.test(at.words.at(-1) ?? '') ? statedKind(text) : null
      if (own !== null) stated.add(own)
      else if (!at.isForeign) found.push(mentionOf(text, at))
    }
  }
  visit(subscription, { field: '', words: [], kind: null, depth: 0, isForeign: false, isListed: false })
  const kinds = ALL.filter((kind) => stated.has(kind))
  return found
    .map((one) => (one.kinds === ALL && kinds.length > 0 ? { ...one, kinds } : one))
    .sort((one, other) => one.rank - other.rank)
}

interface Position {
  field: string
  words: readonly string[]
  kind: SubscribedKind | null
  depth: number
  isForeign: boolean
  isListed: boolean
}

function below({ kind, depth, isForeign }: Position, field: string): Position {
  const words = wordsOf(field)
  const own = kindOf(field)
  return {
    field,
    words,
    depth: depth + 1,
    isListed: false,
    kind: own === null || own === 'avr' ? kind : own,
    isForeign: isForeign || words.some((word) => FOREIGN.test(word)),
  }
}

function mentionOf(value: string, { field, words, kind, depth, isListed }: Position): Mention {
  const last = words.at(-1) ?? ''
  const isNumber = NUMBER.test(value)
  const isIdField = ID.test(last)
  const isOwn = kind === null && isIdField && depth === 1 && (words.length === 1 || words[0] === 'subscription')
  const statesKind = kindOf(last) !== null
  const isNameField = NAME.test(last) && !statesKind
  const isId = isOwn ? !isNumber : !(isNumber && (TEXT.test(last) || AMOUNT.test(last)))
  return {
    field,
    value,
    isId,
    isName: !isIdField && !isOwn,
    kinds: kind === null ? ALL : [kind],
    isListed: isListed && isIdField,
    rank: isOwn ? OWN_ID : rankOf(kind, isIdField || statesKind, isNameField, isNumber),
  }
}

function rankOf(kind: SubscribedKind | null, isId: boolean, isName: boolean, isNumber: boolean): number {
  if (kind === null) return isId || !isNumber ? 3 : 4
  if (isId) return 0
  return isName ? 1 : 2
}

/**
 * Returns the kind that a text of a field such as `resource_type` states; null when it states none and may be a name.
 */
function statedKind(text: string): SubscribedKind | null {
  if (!/^[a-z][a-z _-]{0,39}$/i.test(text)) return null
  const kind = wordsOf(text).length > 3 ? null : kindOf(text)
  return kind === 'avr' ? null : kind
}
