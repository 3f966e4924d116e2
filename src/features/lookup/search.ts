import { findItems, findRecordIds, packageOfPurl, referenceOfPurl } from '../../server/lookup/named.ts'
import { findMissingNamed } from '../../server/lookup/missing-record.ts'
import { MirrorError } from '../../base/errors.ts'
import { fieldsOf } from '../../base/json/objects.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { table } from '../../cli/output.ts'
import { type LookupOptions } from './open.ts'
import { type LookupResult, type LookupCall, limitOf, runLookup } from './snapshot.ts'

const LIMIT = 20
/** Longest text that is searched for, characters. */
const MAX_QUERY = 1000

/** A record that was found, and by what. */
interface FoundRecord {
  readonly id: string
  readonly modified: string | null
  readonly by: 'id' | 'other id' | 'package'
}

/** `patchmirror search QUERY`: what the search page finds, by kind. */
export function searchCommand(query: string, options: LookupOptions): Promise<number> {
  const given = query.trim()
  const text = referenceOfPurl(given) ?? given
  if (text === '' || text.length > MAX_QUERY) throw new MirrorError('usage', `QUERY takes 1 to ${MAX_QUERY} characters`)
  const limit = limitOf(options.limit, LIMIT)
  return runLookup(options, (stored) => findingOf(stored, text, limit))
}

function findingOf(stored: LookupCall, query: string, limit: number): LookupResult {
  const withoutRecords = stored.use('osv')
  const isPurl = query.startsWith('pkg:')
  const withoutCatalog = isPurl ? null : stored.use('catalog')
  const notes: string[] = []
  const found = {
    ...(withoutRecords !== null ? NOTHING : findRecords(stored, query, limit, notes)),
    items: isPurl || withoutCatalog !== null ? [] : itemsOf(stored, query, limit + 1),
  }
  const unknown = [
    ...notes,
    ...(withoutRecords === null ? [] : [withoutRecords.message]),
    ...(withoutCatalog !== null && stored.isExpected('catalog') ? [withoutCatalog.message] : []),
  ]
  const { records, packages, items } = found
  if (records.length + packages.length + items.length === 0) {
    const missing = isPurl || withoutRecords !== null ? null : findMissingNamed(stored.reads, query)
    refuseEmpty(query, missing === null ? unknown : [missing.message, ...unknown])
  }
  const more = [records, packages, items].some(({ length }) => length > limit)
  const cut = <Value>(list: readonly Value[]): Value[] => list.slice(0, limit)
  const shown = { records: cut(records), packages: cut(packages), items: cut(items) }
  const next = `more exist than the first ${limit} of a kind: --limit ${limit * 5} shows more`
  return {
    json: { query, ...shown, more, notSearched: unknown },
    lines: [...linesOf(shown), ...(more ? ['', next] : []), ...unknown.map((one) => `\n${one}`)],
  }
}

/** Throws `not_found`, or `not_ready` where something could not be searched. */
function refuseEmpty(query: string, unknown: readonly string[]): never {
  if (unknown.length === 0)
    throw new MirrorError(
      'not_found',
      `not found: nothing here is named ${query}; names are compared as a whole, and "patchmirror tags" lists the images`,
    )
  const why = unknown.join('; ')
  throw new MirrorError('not_ready', `nothing was found that is named ${query}; ${why}`)
}

const NOTHING = { records: [], packages: [] }

function findRecords(stored: LookupCall, query: string, limit: number, notes: string[]) {
  const { osv } = stored.reads
  const record = (id: string, by: FoundRecord['by']): FoundRecord => {
    return { id, modified: osv.readEntry(id)?.modified ?? null, by }
  }
  if (query.startsWith('pkg:')) {
    const ids = recordsOfPurl(stored, query, limit + 1, notes)
    return { records: ids.map((id) => record(id, 'package')), packages: [] }
  }
  const index = stored.views((views) => ({
    ids: views.listAliasIds(query, '', limit + 1),
    packages: views.listPackagesNamed(query, limit + 1),
  }))
  if (index === null) notes.push(noIndex(stored.noViews))
  const own = findRecordIds(osv, query, limit + 1)
  const others = (index?.ids ?? []).filter((id) => !own.includes(id))
  return {
    records: [...own.map((id) => record(id, 'id')), ...others.map((id) => record(id, 'other id'))],
    packages: index?.packages ?? [],
  }
}

function recordsOfPurl(stored: LookupCall, purl: string, limit: number, notes: string[]): string[] {
  const named = packageOfPurl(purl)
  if (named === null)
    throw new MirrorError('not_found', `not found: no ecosystem of OSV has packages of the type of ${purl}`)
  const { ecosystem, name, version } = named
  const found = stored.views((views) => views.listCandidates(ecosystem, name, '', limit))
  if (found === null) notes.push(noIndex(stored.noViews))
  else if (version !== '' && found.length > 0)
    notes.push('records on any version of the package are listed: "show" names the affected ones')
  return (found ?? []).map(({ id }) => id)
}

/** Why names of packages and other ids cannot be searched. */
export function noIndex(noViews: string | null): string {
  return `packages and other ids were not searched: ${noViews ?? 'the index of packages cannot be read'}`
}

function itemsOf({ reads }: LookupCall, query: string, limit: number) {
  return findItems(reads.catalog, query, limit).map(({ list, id, body }) => {
    const { repository, tag, digest } = namesOfTag({ ...fieldsOf(JSON.parse(body.toString('utf8'))) })
    return { list, id, repository, name: tag, digest }
  })
}

interface Shown {
  readonly records: readonly FoundRecord[]
  readonly packages: readonly { name: string; ecosystem: string; records: number }[]
  readonly items: ReturnType<typeof itemsOf>
}

function linesOf({ records, packages, items }: Shown): string[] {
  const tables = [
    [['record', 'modified', 'found by'], records.map(({ id, modified, by }) => [id, modified ?? '-', by])],
    [['package', 'ecosystem', 'records'], packages.map((one) => [one.name, one.ecosystem, String(one.records)])],
    [
      ['list', 'item', 'name'],
      items.map(({ list, id, repository, name }) => [
        list,
        id,
        [repository, name].filter((part) => part !== null).join(':'),
      ]),
    ],
  ] as const
  const shown = tables.filter(([, rows]) => rows.length > 0)
  return shown.flatMap(([head, rows], at) => [...(at > 0 ? [''] : []), table(head, rows)])
}
