import { MirrorError } from '../../../base/errors.ts'
import { OSV_INDEX } from '../../../base/domain/feed-paths.ts'
import { isActive, isMediaType } from '../../../base/domain/media-type.ts'
import { canonicalPath, isAddressable, pathForm } from '../../../base/domain/path-templates.ts'
import { faultOfRecordId } from '../../../base/domain/record-id.ts'
import { RELEASES, RESOURCES, ownsResource } from '../../../base/domain/resources.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { FACETS } from '../../../store/catalog/list-query.ts'
import { splitEntryKey } from '../../../store/replication/catalog-pages.ts'
import { ROW_KINDS, type RowKind, type RowValue, type RowValues } from '../../../store/replication/rows.ts'
import {
  type Check,
  integerField,
  jsonText,
  listField,
  choiceField,
  orAbsent,
  orNull,
  shape,
  textField,
  truth,
  union,
  sha256 as digest,
} from '../../../base/json/shapes.ts'

// eslint-disable-next-line no-control-regex -- characters that no key of upstream's has
const CONTROL = /[\0-\x1f\x7f]/
const plain: Check<string> = textField(
  { test: (value) => value !== '' && value.isWellFormed() && !CONTROL.test(value) },
  'a key',
)
/** Ids and timestamps are upstream's, with any content: data that a sync accepts must also pass the air gap. */
const id: Check<string> = textField({ test: (value) => value !== '' && value.isWellFormed() }, 'an id')
const stamp = textField({ test: (value) => value.isWellFormed() }, 'text')
const any = textField({ test: (value) => value.isWellFormed() && !value.includes('\0') }, 'text')
const half = textField(/^[\da-f]{32}$/, 'half a SHA-256 in hex')
const hex = textField(/^(?:[\da-f]{2}){0,64}$/, 'hex')
const uint32 = integerField(0, 0xffffffff)
const size = integerField(0, 2 ** 50)
/** For data that is completely in memory. */
const small = integerField(0, 2 ** 28)
const seconds = integerField(0, 2 ** 40)
const time = integerField(0, 2 ** 50)
/** It becomes a header's value. */
const mediaType = textField(/^[\x20-\x7e]{1,200}$/, 'a media type')

/** It becomes a header's name. */
const headerField = textField(/^[a-z\d-]{1,100}$/, 'the name of a header')

const step = union<string | number>(any, integerField(0))
const place = listField(step, 1_000)
const servedType = textField(
  { test: (value) => isMediaType(value) && !isActive(value) },
  'a media type that documents are served with',
)
const link = shape({ at: place, digest, type: orAbsent(servedType) })
const links = jsonText(listField(link, 100_000), 2 ** 24)
const mentions = jsonText(listField(stamp, 100_000), 2 ** 24)

const next = { path: place, url: truth, link: orNull(any) }
/** The envelope is upstream's own. */
const envelope: Check<unknown> = (value) => value
const onward = shape({
  param: orNull(any),
  byId: truth,
  header: truth,
  silent: truth,
  firstPage: orAbsent(choiceField(0, 1)),
  own: orAbsent(truth),
  headerName: orAbsent(headerField),
})
const skipped = shape({ page: small, count: small, why: stamp })
/** The frame as the crawl learns it (base/json/envelope.ts), with size limits. */
const frame = jsonText(
  shape({
    envelope,
    items: place,
    cursor: orNull(place),
    url: truth,
    link: orNull(any),
    also: listField(shape(next), 100),
    ending: choiceField('absent', 'null', 'empty'),
    total: orNull(place),
    limit: orNull(place),
    shown: orNull(place),
    pages: orNull(place),
    more: listField(place, 100),
    back: listField(place, 100),
    learned: truth,
    onward: orAbsent(onward),
    partial: orAbsent(stamp),
    unproved: orAbsent(stamp),
    cut: orAbsent(truth),
    skipped: orAbsent(listField(skipped, 100)),
    estimated: orAbsent(truth),
    ends: orAbsent(listField(place, 100)),
    page: orAbsent(place),
    type: orAbsent(servedType),
  }),
  2 ** 18,
)

/**
 * Validators of each kind of row; the members in the order in which they are hashed. They throw `bundle` with the
 * position.
 */
export const ROW_VALUES: { [K in RowKind]: Check<RowValues[K]> } = {
  source: shape({
    key: plain,
    snapshot: hex,
    asOf: time,
    records: size,
    whole: truth,
    archive: orNull(shape({ size, crc32c: uint32, sha256: digest, changed: seconds })),
  }),
  document: shape({
    key: plain,
    present: truth,
    size: small,
    sha256: digest,
    changed: seconds,
    entries: size,
    blob: orNull(digest),
  }),
  'osv-record': shape({
    key: id,
    modified: stamp,
    crc32: uint32,
    size: small,
    sha256: digest,
    changed: seconds,
    asOf: orNull(time),
  }),
  'osv-tombstone': shape({ key: id, removedAt: time }),
  'catalog-list': shape({ key: plain, resource: plain, frame, entries: size, changed: seconds }),
  'catalog-entry': shape({
    key: id,
    ordinal: size,
    sha: half,
    facets: listField(orNull(stamp), FACETS),
  }),
  'catalog-answer': shape({
    key: plain,
    resource: plain,
    owner: id,
    ownerSha: hex,
    status: choiceField(200, 204, 404),
    size: small,
    sha256: union(digest, choiceField('')),
    changed: seconds,
    links,
    mentions,
  }),
  'catalog-lacking': shape({ key: plain, resource: plain }),
  'catalog-document': shape({
    key: digest,
    size,
    stored: size,
    type: mediaType,
    changed: seconds,
    blob: digest,
  }),
}

/** The key of a removed row. */
export const rowKey = id

/** Reports whether a source has rows of this kind. */
export function isKindOf(source: keyof typeof ROW_KINDS, kind: string): boolean {
  return ROW_KINDS[source].some((one) => one === kind)
}

/** The form that the setting for extra feeds accepts. */
const FEED = /^\/external(?:\/[\w~-][\w.~-]*)+$/
const OSV = /^\/external\/osv(?:\/|$)/

/** The list of users at any version of the identity surface. */
const VERSIONED = /^\/v\d+(?:-[a-z]+)?\/users$/

/** Forms of the paths that belong to a resource. */
interface Forms {
  lists: RegExp[]
  answers: RegExp[]
  /** Prefix of the items that own its answers. */
  owner: string
}

const FORMS = new Map<string, Forms>([
  ['releases', { lists: [], answers: Object.values(RELEASES).map(pathForm), owner: 'packages/' }],
  ...RESOURCES.map(({ name, surface, list, sublist, item, artifacts }): [string, Forms] => {
    const lists = [list, sublist].flatMap((one) => (one === null ? [] : [pathForm(one.path)]))
    if (surface === 'identity') lists.push(VERSIONED) // under the version with which it was mirrored
    const items = item === null ? [] : [item]
    const answers = [...items, ...artifacts.map(({ path }) => path)].map(pathForm)
    return [name, { lists, answers, owner: `${name}/` }]
  }),
])

/**
 * Throws `bundle` for a row that does not belong to its source: it could replace a row of another source, or never be
 * served.
 */
export function refuseForeign(source: SourceName, kind: RowKind, value: RowValue, place: string): void {
  if (isOwn(source, kind, value)) return
  throw new MirrorError('bundle', `${place} is not a row of ${source}: ${value.key}`)
}

function isOwn(source: SourceName, kind: RowKind, value: RowValue): boolean {
  const { key } = value
  if (kind === 'source') return key === source
  if (kind === 'document') return source === 'osv' ? key === OSV_INDEX : FEED.test(key) && !OSV.test(key)
  if (kind === 'osv-record' || kind === 'osv-tombstone') return faultOfRecordId(key) === null
  if (kind === 'catalog-entry') return isPath(splitEntryKey(key)[0])
  if (!('resource' in value)) return true
  const { resource } = value
  const forms = ownsResource(source, resource) ? FORMS.get(resource) : undefined
  if (forms === undefined || !isPath(key)) return false
  if ('owner' in value && !value.owner.startsWith(forms.owner)) return false
  const lists = kind === 'catalog-answer' ? [] : forms.lists
  const answers = kind === 'catalog-list' ? [] : forms.answers
  return [...lists, ...answers].some((form) => form.test(key))
}

function isPath(path: string): boolean {
  return canonicalPath(path) === path && isAddressable(path)
}
