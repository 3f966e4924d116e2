import { TAGS } from '../../base/domain/resources.ts'
import { terminalLines } from './answers/terminal.ts'
import { whyOutOfScope } from '../../server/feeds/osv.ts'
import { datesInWords, describeDates } from '../../server/lookup/dates.ts'
import { findMissingRecord, whyNotAllSearched } from '../../server/lookup/missing-record.ts'
import { readRecordsTags, recordTagsMessage } from '../../server/lookup/record-tags.ts'
import { findRemovedAbout, removedWords } from '../../server/lookup/removed-records.ts'
import {
  MOST_TAGS,
  findRecordIds,
  findTags,
  recordNamed,
  referenceOfPurl,
  whyUnnamed,
} from '../../server/lookup/named.ts'
import { MirrorError } from '../../base/errors.ts'
import { plainRepository } from '../../base/domain/image-reference.ts'
import { toIso } from '../../base/time.ts'
import { type Fields, fieldsOf, jsonTextOf } from '../../base/json/objects.ts'
import { describeIncomplete } from '../../store/catalog/completeness.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { upstreamJson } from '../../cli/context.ts'
import { timeOf } from '../../cli/output.ts'
import { tagsTable } from './list-answers.ts'
import { type LookupOptions } from './open.ts'
import { type LookupResult, type LookupCall, limitOf, runLookup } from './snapshot.ts'
import { dateInWords, readStoredRecord, recordAnswer, recordContent, removedNotices, tagsPart } from './record.ts'
import { findRecords, noIndex, searchCommand, searchResult } from './search.ts'
import { readArtifacts, tagAnswer } from './tag.ts'

const LIMIT = 20
/** Other ids of a record of one kind that are printed. */
const MOST_IDS = 50

/**
 * `patchmirror show NAME`: a record by its id, or an id that one record names; a tag by its reference, id or digest, which may be
 * shortened; the tags of a repository; the records of a package, by its name or a purl.
 */
export function showCommand(name: string, options: LookupOptions): Promise<number> {
  const text = name.trim()
  if (text.startsWith('pkg:') && referenceOfPurl(text) === null) return searchCommand(text, options)
  const limit = limitOf(options.limit, LIMIT)
  return runLookup(options, (stored) => {
    const withoutRecords = stored.use('osv')
    const record = withoutRecords === null ? recordOf(stored, name, limit) : null
    if (record !== null) return record
    const withoutCatalog = stored.use('catalog')
    const tag = withoutCatalog === null ? tagOf(stored, text, limit) : null
    if (tag !== null) return tag
    if (withoutRecords === null && isPackage(stored, text)) return searchResult(stored, text, limit)
    const own = withoutCatalog === null && !text.includes('/') ? tagOf(stored, `library/${text}`, limit) : null
    if (own !== null) return own // as Docker names it
    return refuseMissing(stored, text, [withoutRecords, withoutCatalog])
  })
}

function isPackage(stored: LookupCall, text: string): boolean {
  const found = findRecords(stored, text, 1)
  return found !== null && found.packages.length > 0
}

function recordOf(stored: LookupCall, name: string, limit: number): LookupResult | null {
  const id = recordNamed(stored.reads.osv, name)
  if (id !== null) return recordFinding(stored, id, limit)
  const text = name.trim()
  const naming = stored.views((views) => views.listAliasIds(text, '', 2)) ?? []
  const [only] = naming
  if (only === undefined) return null
  if (naming.length === 1) return recordFinding(stored, only, limit, text)
  return withTags(stored, text, limit, searchResult(stored, text, limit))
}

/** Adds the mirrored tags that have one of the records with this other id among their findings. */
function withTags(stored: LookupCall, alias: string, limit: number, found: LookupResult): LookupResult {
  const ids = stored.views((views) => views.listAliasIds(alias, '', MOST_IDS + 1)) ?? []
  const asked = ids.slice(0, MOST_IDS)
  const removed = findRemovedAbout(stored.reads, alias)
  const tags = readRecordsTags(stored.config, stored.reads, asked, () => void stored.use('catalog'), removed)
  const left =
    asked.length === ids.length ? [] : [`by the first ${MOST_IDS} records alone; the others are not asked for`]
  const shown = stored.isExpected('catalog') ? ['', ...terminalLines({ parts: [tagsPart(tags, limit, alias)] })] : []
  const notices = removed.length === 0 ? [] : ['', ...terminalLines({ parts: removedNotices(removed) })]
  return {
    json: { ...found.json, ...removedMessage(removed), ...recordTagsMessage(tags) },
    lines: [...found.lines, ...notices, ...shown, ...left],
  }
}

/** Names what upstream removed in the JSON; nothing where it removed none. */
function removedMessage(removed: ReturnType<typeof findRemovedAbout>): object {
  return removed.length === 0 ? {} : { removedRecords: removed }
}

/** Returns a stored record. `alias`: the other id by which it was found. */
function recordFinding(stored: LookupCall, id: string, limit: number, alias?: string): LookupResult {
  const row = readStoredRecord(stored.reads, id)
  if (row === null) throw new MirrorError('not_found', `not found: no record has the id ${id}`)
  const content = recordContent(id, row)
  if (content === null)
    throw new MirrorError('corrupt', `the record ${id} is no JSON object; its bytes are served as upstream has them`)
  const dates = stored.reads.dates.readDates(id)
  const removed = alias === undefined ? [] : findRemovedAbout(stored.reads, alias)
  const tags = readRecordsTags(stored.config, stored.reads, [id], () => void stored.use('catalog'), removed)
  const shownTags = stored.isExpected('catalog') ? tags : null
  const found = { id, ...(alias !== undefined && { alias }), removed, stored: row, content, dates, tags: shownTags }
  const extent = { at: 0, packages: limit, references: limit, ids: MOST_IDS, tags: limit, more: null }
  return {
    json: {
      kind: 'record',
      id,
      size: row.size,
      sha256: row.sha256.toString('hex'),
      lastModified: toIso(row.changed * 1000),
      dates: dates && describeDates(dates),
      ...removedMessage(removed),
      ...recordTagsMessage(tags),
      record: upstreamJson(jsonTextOf(contentOf(row.body, row.size))),
    },
    lines: terminalLines(recordAnswer(found, extent)),
  }
}

function tagOf(stored: LookupCall, text: string, limit: number): LookupResult | null {
  const named = findTags(stored.reads.catalog, text)
  const [only] = named
  if (only === undefined) return null
  if (named.length === 1) return tagFinding(stored, only.id, only.body)
  const tags = named.map(({ id, body }) => ({ id, body, item: fieldsOf(JSON.parse(body.toString('utf8'))) }))
  const items = tags.slice(0, limit).map(({ id, item }) => ({ ...item, id }))
  const incomplete = describeIncomplete(stored.reads.catalog.whyIncomplete(TAGS))
  const table = tagsTable({ items, next: null, total: null, incomplete }, undefined, true)
  const lines = [
    `${text} names ${tags.length}${tags.length < MOST_TAGS ? '' : ' or more'} tags; show one by its name, digest or id:`,
    ...terminalLines({ parts: [table] }),
    ...(tags.length > limit
      ? [`… and ${tags.length - limit} more: --limit ${tags.length}, or "patchmirror list tags"`]
      : []),
  ]
  const isRepository = tags.every(({ item }) => isOfRepository(item, text))
  if (!isRepository) throw new MirrorError('not_found', `not found: ${lines.join('\n')}`)
  const bodies = tags.slice(0, limit).map(({ body }) => upstreamJson(body.toString('utf8')))
  return { json: { kind: 'repository', repository: text, total: tags.length, tags: bodies }, lines }
}

/** Returns a listed tag: its names, its fields and its artifacts. */
function tagFinding(stored: LookupCall, id: string, body: Buffer): LookupResult {
  const text = body.toString('utf8')
  const item = fieldsOf(JSON.parse(text))
  const { repository, tag, digest } = namesOfTag({ ...item })
  const artifacts = readArtifacts(stored, 'tags', id)
  return {
    json: { kind: 'tag', id, repository, name: tag, digest, item: upstreamJson(text), artifacts },
    lines: terminalLines(tagAnswer(stored, id, item, artifacts, null)),
  }
}

/** Reports whether a tag belongs to the repository of this name, with or without a registry's host. */
function isOfRepository(item: Fields, name: string): boolean {
  const { repository } = namesOfTag({ ...item })
  return repository !== null && plainRepository(repository) === plainRepository(name)
}

/** Says when a record was removed and first seen: its dates, which a bundle brings, or that of the tombstone alone. */
function removalOf({ reads }: LookupCall, id: string, tombstoneAt: number): string {
  const dates = reads.dates.readDates(id)
  const removed = `removed ${timeOf(dates?.removedAt ?? tombstoneAt)}`
  const [first] = dates === null ? [] : datesInWords(dates)
  return first === undefined ? removed : `${removed}, ${first[0]} ${dateInWords(first[1], first[2])}`
}

/** Throws why nothing of this name is shown: removed, not fetched yet, not mirrored, or not here. */
function refuseMissing(
  stored: LookupCall,
  text: string,
  [withoutRecords, withoutCatalog]: readonly (MirrorError | null)[],
): never {
  const { osv } = stored.reads
  if (withoutRecords !== null && withoutRecords !== undefined) throw withoutRecords
  const isImage = /[/@]|^\w+:[0-9a-f]{8,}$/i.test(text)
  for (const id of new Set([text, text.toUpperCase()])) {
    const outside = isImage && !osv.isOutside(id) ? null : whyOutOfScope(stored.reads, id)
    if (outside !== null) throw new MirrorError('not_ready', `not mirrored: ${id}: ${outside}`)
    const missing = findMissingRecord(stored.reads, id)
    if (missing !== null && (missing.kind !== 'unknown' || !isImage))
      throw new MirrorError('not_ready', `not mirrored yet: ${id}: ${missing.message}`)
    // Last: one that was removed may be listed again, and not be stored for another reason.
    const removed = osv.readTombstone(id)
    if (removed !== null)
      throw new MirrorError(
        'not_found',
        `not found: upstream removed the record ${id}: ${removalOf(stored, id, removed.removedAt)}`,
      )
  }
  if (withoutCatalog && (isImage || stored.isExpected('catalog'))) throw withoutCatalog
  const unnamed = whyUnnamed(stored.reads, text)
  if (unnamed !== null) throw new MirrorError('not_ready', `nothing that is stored is named ${text}; ${unnamed}`)
  const what = withoutCatalog ? 'tags are not mirrored here, and no record' : 'neither a record nor a tag'
  const index = stored.views(() => true) === null ? noIndex(stored.noViews) : null
  const scope = isImage ? null : whyNotAllSearched(stored.reads, null)
  const why = index ?? stored.oldIndex() ?? scope
  const gone = findRemovedAbout(stored.reads, text)
  const named = `${what} of this mirror is named ${text}${gone.length === 0 ? '' : `; upstream removed ${removedWords(gone)}`}`
  if (why !== null) throw new MirrorError('not_ready', `${named}; ${why}`)
  const similar = findRecordIds(osv, text, 3)
  const next =
    similar.length === 0 ? '' : `; ids that begin with it: ${similar.map((id) => JSON.stringify(id)).join(', ')}`
  throw new MirrorError('not_found', `not found: ${named}${next}`)
}
