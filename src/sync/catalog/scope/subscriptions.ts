import { textsWithin } from '../../../base/domain/image-reference.ts'
import { readText, wordsOf } from '../../../base/json/field-names.ts'
import { ECOSYSTEMS } from '../../../base/domain/resources.ts'
import { IMAGE_NAME_FIELDS, TAG_NAME_FIELDS } from '../../../base/json/forms/listed-names.ts'
import { kindOf, refsOf } from './references.ts'
import { type Keys, type SubscribedKind, ecosystemIn, idKey, nameKeys, tagKeys } from './names.ts'

/** Fields that contain the name of a package, or of its source package. */
export const NAME_FIELDS = ['name', 'src_name', 'package_src_name', 'package_name']

/** Listed items to which the account subscribes. */
export interface Subscribed {
  /** Ids of the items that subscriptions name. */
  ids: Record<SubscribedKind, ReadonlySet<string>>
  /** Number of subscriptions. */
  count: number
  /** Subscriptions that name nothing listed: id → reason. */
  unresolved: ReadonlyMap<string, string>
}

/** A listed item. */
interface Item {
  id: string
  value: Record<string, unknown>
}

type Lists = Record<SubscribedKind, Iterable<Item>>

/**
 * Finds the target of each subscription, under any field name: an id or a name, alone or within a reference or a
 * package URL. The most explicit field decides; a value that fits several kinds selects all of them.
 */
export function resolveSubscriptions(subscriptions: Iterable<Item>, lists: Lists): Subscribed {
  const all = [...subscriptions].map(({ id, value }) => ({ id, ...readSubscription(value) }))
  const wanted = new Set(all.flatMap(({ mentions }) => mentions.flatMap(({ keys }) => keys)))
  const index = wanted.size === 0 ? new Map<string, Hit[]>() : indexOf(lists, wanted)
  const ids = { image: new Set<string>(), tag: new Set<string>(), package: new Set<string>() }
  const unresolved = new Map<string, string>()
  for (const { id, mentions, ecosystems } of all) {
    const { hits, missed } = targetsOf(mentions, index, ecosystems)
    for (const hit of hits) ids[hit.kind].add(hit.id)
    const others = mentions.filter(({ rank }) => rank < OWN_ID)
    if (hits.length === 0) unresolved.set(id, whyUnresolved(others))
    else if (missed.length > 0) unresolved.set(id, whyUnresolved(missed))
  }
  return { ids, count: all.length, unresolved }
}

type Keyed = Mention & { keys: readonly string[] }

function readSubscription(value: Readonly<Record<string, unknown>>): {
  mentions: Keyed[]
  ecosystems: ReadonlySet<string>
} {
  const mentions = mentionsIn(value).map((one) => ({ ...one, keys: keysOf(one) }))
  const texts = textsWithin(value)
  const named = [...texts, ...texts.map(ecosystemIn)].map((text) => text?.toLowerCase() ?? '')
  return { mentions, ecosystems: new Set(named.filter((text) => ECOSYSTEMS.includes(text))) }
}

function keysOf({ value, kinds, isId, isName }: Mention): string[] {
  const ids = isId ? kinds.map((kind) => `${kind} ${idKey(value)}`) : []
  if (!isName && !/[:/@]/.test(value)) return ids
  const names = nameKeys(value)
  // A reference names both an image and a tag; either may be listed.
  const family = new Set<SubscribedKind>(kinds.flatMap((kind) => (kind === 'package' ? [kind] : ['tag', 'image'])))
  return [...ids, ...[...family].flatMap((kind) => prefixed(kind, names))]
}

function prefixed(kind: SubscribedKind, keys: Keys): string[] {
  return keys[kind].map((key) => `${kind} ${key}`)
}

interface Hit {
  kind: SubscribedKind
  id: string
  /** Ecosystem of a package; null: unknown. */
  ecosystem: string | null
}

/** Returns the items that the most explicit fields name; `missed`: ids of a list of ids that name nothing. */
function targetsOf(
  mentions: readonly Keyed[],
  index: ReadonlyMap<string, readonly Hit[]>,
  ecosystems: ReadonlySet<string>,
): { hits: Hit[]; missed: Keyed[] } {
  const hasEcosystem = ({ ecosystem }: Hit): boolean =>
    ecosystem === null || ecosystems.size === 0 || ecosystems.has(ecosystem)
  const hitsOf = ({ keys }: Keyed): Hit[] =>
    keys.flatMap((key) => {
      const hits = index.get(key) ?? []
      return key.includes(' =') ? hits : hits.filter(hasEcosystem)
    })
  for (const rank of new Set(mentions.map((one) => one.rank))) {
    const own = mentions.filter((one) => one.rank === rank)
    const hits = own.flatMap(hitsOf)
    if (hits.length === 0) continue
    return { hits, missed: own.filter((one) => one.isListed && hitsOf(one).length === 0) }
  }
  return { hits: [], missed: [] }
}

/** Returns why a subscription is not understood, or only in part, with the values that name nothing. */
function whyUnresolved(missed: readonly Mention[]): string {
  if (missed.length === 0) return 'it has no field that could name an image, a tag or a package'
  const tried = missed.slice(0, 3).map(({ field, value }) => `${field} ${JSON.stringify(value.slice(0, 80))}`)
  return `it names nothing in the lists of images, tags and packages (${tried.join(', ')})`
}

/** Indexes the listed items by those of their keys that subscriptions use. */
function indexOf(lists: Lists, wanted: ReadonlySet<string>): Map<string, Hit[]> {
  const index = new Map<string, Hit[]>()
  const add = (kind: SubscribedKind, { id, value }: Item, names: readonly string[]): void => {
    const keys = [idKey(id), ...otherIds(kind, value).map(idKey), ...names]
    const found = [...new Set(keys)].map((key) => `${kind} ${key}`).filter((key) => wanted.has(key))
    if (found.length === 0) return
    const ecosystem = kind === 'package' ? ecosystemOf(value) : null
    for (const key of found) index.set(key, [...(index.get(key) ?? []), { kind, id, ecosystem }])
  }
  for (const item of lists.image) {
    const names = textsIn(item, IMAGE_NAME_FIELDS)
    add(
      'image',
      item,
      names.flatMap((text) => nameKeys(text).image),
    )
  }
  for (const item of lists.tag) add('tag', item, namesOfTag(item))
  for (const item of lists.package) {
    const purls = textsWithin(item.value).filter((text) => /^pkg:/i.test(text))
    add(
      'package',
      item,
      [...textsIn(item, NAME_FIELDS), ...purls].flatMap((text) => nameKeys(text).package),
    )
  }
  return index
}

function namesOfTag({ value }: Item): string[] {
  const name = readText(value, TAG_NAME_FIELDS)
  const images = refsOf(value).filter(({ kind }) => kind === 'image')
  const own = name === null ? [] : images.flatMap((image) => tagKeys(image.value, name))
  return [...textsWithin(value).flatMap((text) => nameKeys(text).tag), ...own]
}

/** Returns further non-numeric ids of an item: its UUID, its slug; not those of other things that it names. */
function otherIds(kind: SubscribedKind, value: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(value).flatMap(([name, id]) => {
    const isId = /^(id|uuid|guid|slug|key)$/.test(wordsOf(name).at(-1) ?? '')
    if (!isId || typeof id !== 'string' || /^\d*$/.test(id)) return []
    return wordsOf(name).length === 1 || kindOf(name) === kind ? [id] : []
  })
}

function ecosystemOf(value: Readonly<Record<string, unknown>>): string | null {
  return readText(value, ['ecosystem', 'package_ecosystem'])?.toLowerCase() ?? null
}

/** Returns the texts of these fields of an item. */
export function textsIn({ value }: Pick<Item, 'value'>, fields: readonly string[]): string[] {
  return fields.map((field) => readText(value, [field])).filter((text) => text !== null)
}

/** A value of a subscription that may name its target. */
interface Mention {
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
const OWN_ID = 5

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
function mentionsIn(subscription: Readonly<Record<string, unknown>>): Mention[] {
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
