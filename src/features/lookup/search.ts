import { type Part, type Table, type Value, codeValue, countValue, linkValue, textValue } from './answers/answer.ts'
import { terminalLines } from './answers/terminal.ts'
import { findItems, findRecordIds, packageOfPurl, referenceOfPurl, whyUnnamed } from '../../server/lookup/named.ts'
import { findMissingNamed, whyNotAllSearched } from '../../server/lookup/missing-record.ts'
import { MirrorError } from '../../base/errors.ts'
import { fieldsOf } from '../../base/json/objects.ts'
import type { Reads } from '../../store/reads.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import type { Views } from '../scanners/store/reads.ts'
import { type LookupOptions } from './open.ts'
import { type LookupResult, type LookupCall, limitOf, runLookup } from './snapshot.ts'

const LIMIT = 20
/** Longest text that is searched for, characters. */
const MAX_QUERY = 1000

/** A record that was found, and by what. */
export interface FoundRecord {
  readonly id: string
  readonly modified: string | null
  readonly by: 'id' | 'other id' | 'package'
}

/** What a search is read from. */
export interface SearchReads {
  readonly reads: Reads
  /** Null while there is no index of packages and other ids. */
  readonly views: <T>(use: (views: Views) => T) => T | null
}

/** What was found among the records, one more of each kind than was asked for where there are more. */
interface FoundRecords {
  /** By their own ids or the package of a purl, then by another id. */
  readonly own: readonly FoundRecord[]
  readonly others: readonly FoundRecord[]
  readonly packages: readonly { readonly name: string; readonly ecosystem: string; readonly records: number }[]
  /** The record behind which more by another id come. */
  readonly next?: string | undefined
  /** The package that a purl names. */
  readonly named: ReturnType<typeof packageOfPurl>
  /** Whether it names a version, and the records are those on any. */
  readonly isAnyVersion: boolean
  /** Whether the index of packages and other ids could be read. */
  readonly hasIndex: boolean
}

/** `patchmirror search QUERY`: what the search page finds, by kind. */
export function searchCommand(query: string, options: LookupOptions): Promise<number> {
  const given = query.trim()
  const text = referenceOfPurl(given) ?? given
  if (text === '' || text.length > MAX_QUERY)
    throw new MirrorError('usage', `a search takes 1 to ${MAX_QUERY} characters, not ${text.length}`)
  const limit = limitOf(options.limit, LIMIT)
  return runLookup(options, (stored) => searchResult(stored, text, limit))
}

/** Returns what is named by a text: records, packages, images and tags. Throws `not_found` and `not_ready` where nothing is. */
export function searchResult(stored: LookupCall, query: string, limit: number): LookupResult {
  const withoutRecords = stored.use('osv')
  const isPurl = query.startsWith('pkg:')
  const withoutCatalog = isPurl ? null : stored.use('catalog')
  const found = withoutRecords === null ? findRecords(stored, query, limit) : NOTHING
  if (found === null)
    throw new MirrorError('not_found', `not found: no ecosystem of OSV has packages of the type of ${query}`)
  const records = [...found.own, ...found.others]
  const items = isPurl || withoutCatalog !== null ? [] : findNamedItems(stored, query, limit + 1)
  const unnamed = isPurl ? null : whyUnnamed(stored.reads, query)
  const unknown = [
    ...(found.hasIndex ? [] : [noIndex(stored.noViews)]),
    ...[stored.oldIndex()].filter((why) => why !== null),
    ...(withoutRecords === null ? [] : [withoutRecords.message]),
    ...(withoutCatalog !== null && stored.isExpected('catalog') ? [withoutCatalog.message] : []),
    ...(unnamed === null ? [] : [unnamed]),
  ]
  const scope = whyNotAllSearched(stored.reads, found.named?.ecosystem ?? null)
  if (records.length + found.packages.length + items.length === 0) {
    const missing = isPurl || withoutRecords !== null ? null : findMissingNamed(stored.reads, query)
    const all = [missing?.message, ...unknown, scope].filter((why) => typeof why === 'string')
    refuseEmpty(query, all, withoutCatalog === null)
  }
  const more = [records, found.packages, items].some(({ length }) => length > limit)
  const cut = <Row>(list: readonly Row[]): Row[] => list.slice(0, limit)
  const shown = { records: cut(records), packages: cut(found.packages), items: cut(items) }
  const { isAnyVersion } = found
  const parts = searchParts({ ...shown, isAnyVersion })
  if (more) parts.push(moreNotice(limit, `--limit ${limit * 5} shows more`))
  return {
    json: { query, ...shown, more, notSearched: isAnyVersion ? [ANY_VERSION, ...unknown] : unknown },
    lines: [...terminalLines({ parts }), ...unknown.map((one) => `\n${one}`)],
  }
}

const ANY_VERSION = 'records on any version of the package are listed: "show" names the affected ones'

/** Throws `not_found`, or `not_ready` where something could not be searched. */
function refuseEmpty(query: string, unknown: readonly string[], hasCatalog: boolean): never {
  const images = hasCatalog ? '"patchmirror list tags" lists the images' : 'images and tags are not mirrored here'
  if (unknown.length === 0)
    throw new MirrorError(
      'not_found',
      `not found: nothing here is named ${query}; names are compared as a whole, and ${images}`,
    )
  const why = unknown.join('; ')
  throw new MirrorError('not_ready', `nothing was found that is named ${query}; ${why}`)
}

const NOTHING: FoundRecords = { own: [], others: [], packages: [], named: null, isAnyVersion: false, hasIndex: true }

/**
 * Finds records and packages by a text: one more of each than `limit` where there are more; those by another id begin behind
 * `after`. Null: a purl of a type that no ecosystem has. Throws `bad_request` for what is no purl.
 */
export function findRecords(
  { reads, views }: SearchReads,
  query: string,
  limit: number,
  after = '',
): FoundRecords | null {
  const found = (by: FoundRecord['by']) => (id: string) => ({
    id,
    modified: reads.osv.readEntry(id)?.modified ?? null,
    by,
  })
  if (query.startsWith('pkg:')) {
    const named = packageOfPurl(query)
    if (named === null) return null
    const { ecosystem, names } = named
    const listed = views((open) => names.flatMap((name) => open.listCandidates(ecosystem, name, '', limit + 1)))
    const ids = [...new Set((listed ?? []).map(({ id }) => id))].sort()
    const own = ids.slice(0, limit + 1).map(found('package'))
    const isAnyVersion = named.version !== '' && own.length > 0
    return { ...NOTHING, own, named, isAnyVersion, hasIndex: listed !== null }
  }
  const index = views((open) => ({
    ids: open.listAliasIds(query, after, limit + 1),
    packages: open.listPackagesNamed(query, limit + 1),
  }))
  const own = findRecordIds(reads.osv, query, limit + 1)
  return {
    ...NOTHING,
    own: own.map(found('id')),
    ...(index !== null && index.ids.length > limit && { next: index.ids[limit - 1] }),
    others: (index?.ids ?? []).filter((id) => !own.includes(id)).map(found('other id')),
    packages: index?.packages ?? [],
    hasIndex: index !== null,
  }
}

/** Why names of packages and other ids cannot be searched. */
export function noIndex(noViews: string | null): string {
  return `packages and other ids were not searched: ${noViews ?? 'the index of packages cannot be read'}`
}

/** Finds the listed tags that a text names: as for Docker, `python` is also the image `library/python`. */
export function findNamedItems({ reads }: Pick<SearchReads, 'reads'>, query: string, limit: number) {
  const found = findItems(reads.catalog, query, limit)
  const items = found.length > 0 || query.includes('/') ? found : findItems(reads.catalog, `library/${query}`, limit)
  return items.map(({ list, id, body }) => {
    const { repository, tag, digest } = namesOfTag({ ...fieldsOf(JSON.parse(body.toString('utf8'))) })
    return { list, id, repository, name: tag, digest }
  })
}

/** What is shown of what was found. */
interface Shown extends Pick<FoundRecords, 'packages' | 'isAnyVersion' | 'next'> {
  readonly records: readonly FoundRecord[]
  readonly items: ReturnType<typeof findNamedItems>
}

/** Returns the answer about what a search found: a table of each kind that has rows. */
export function searchParts(shown: Shown): Part[] {
  return [recordTable(shown), packageTable(shown), itemTable(shown)].filter(({ rows }) => rows.length > 0)
}

/** Says that there is more of a kind than is shown, and what shows it. */
export function moreNotice(limit: number, how: string): Part {
  return { kind: 'notice', level: 'note', title: `more exist than the first ${limit} of a kind`, text: how }
}

/** Returns the table of records that were found. */
function recordTable({ records, isAnyVersion, next }: Pick<Shown, 'records' | 'isAnyVersion' | 'next'>): Table {
  return {
    kind: 'table',
    title: 'records',
    ...(isAnyVersion && { notes: ['records on any version of the package: each says which ones are affected'] }),
    columns: ['record', 'modified', 'found by'],
    rows: records.map(({ id, modified, by }) => [
      codeValue(id, { kind: 'record', name: id }),
      textValue(modified),
      textValue(by),
    ]),
    ...(next !== undefined && { next }),
    empty: 'no record of this mirror names it',
  }
}

function packageTable({ packages }: Shown): Table {
  return {
    kind: 'table',
    title: 'packages of this name',
    columns: ['package', 'ecosystem', 'records'],
    rows: packages.map(({ name, ecosystem, records }) => [
      linkValue(name, { kind: 'package', ecosystem, name }),
      textValue(ecosystem),
      countValue(records),
    ]),
    empty: 'there are none',
  }
}

function itemTable({ items }: Shown): Table {
  return {
    kind: 'table',
    title: 'tags',
    columns: ['tag', 'digest', 'id'],
    rows: items.map(({ id, repository, name, digest }): Value[] => {
      const names = [repository, name].filter((part) => part !== null).join(':')
      const short = digest?.replace(/^sha256:/, '').slice(0, 12)
      return [linkValue(names || id, { kind: 'tag', name: id }), textValue(short), codeValue(id)]
    }),
    empty: 'there are none',
  }
}
