import { dateInWords, datesInWords, describeDates } from '../../server/lookup/dates.ts'
import {
  type KnownRecordTags,
  JUDGED_BEFORE,
  foundPackage,
  noTagHasIt,
  readRecordTags,
  recordTagsMessage,
} from '../../server/lookup/record-tags.ts'
import { describeAffected, describeSeverity } from '../../server/lookup/affected.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import { type Fields, eachObject, fieldsOf, isObject, jsonTextOf } from '../../base/json/objects.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { RecordDates } from '../../store/dates/reads.ts'
import { upstreamJson } from '../../cli/context.ts'
import { cut, table, visible, wrapped } from '../../cli/output.ts'
import type { LookupResult, LookupCall } from './snapshot.ts'

/** Widths of the columns of affected packages, characters: they fit a terminal of 80. */
const WIDTHS = [24, 12, 20, 18]
/** Longest text of a cell. */
const MAX_CELL = 300
const MOST_IDS = 50

/** Returns a stored record. `alias`: the other id by which it was found. */
export function recordFinding(stored: LookupCall, id: string, limit: number, alias?: string): LookupResult {
  const row = stored.reads.osv.readRecord(id)
  if (row === null) throw new MirrorError('not_found', `not found: no record has the id ${id}`)
  const text = jsonTextOf(contentOf(row.body, row.size))
  const record = parse(text)
  if (record === null)
    throw new MirrorError('corrupt', `the record ${id} is no JSON object; its bytes are served as upstream has them`)
  const changedAt = toIso(row.changed * 1000)
  const dates = stored.reads.dates.readDates(id)
  const sha256 = row.sha256.toString('hex')
  const tags = readRecordTags(stored.config, stored.reads, id, () => void stored.use('catalog'))
  return {
    json: {
      kind: 'record',
      id,
      size: row.size,
      sha256,
      lastModified: changedAt,
      dates: dates && describeDates(dates),
      ...recordTagsMessage(tags),
      record: upstreamJson(text),
    },
    lines: [
      alias === undefined ? id : `${id}, which names ${visible(alias)}`,
      ...textLines(record),
      '',
      ...factLines(record),
      '',
      ...affectedLines(record, limit),
      ...referenceLines(record, limit),
      '',
      ...(dates === null ? [] : [...dateLines(dates), '']),
      ...(stored.isExpected('catalog') ? [...tagLines(tags, limit), ''] : []),
      `${row.size} bytes, served with Last-Modified ${changedAt}`,
      `SHA-256 ${sha256}`,
    ],
  }
}

/** Returns the mirrored tags with a record among their findings, or why they are not known. */
function tagLines(found: KnownRecordTags | string, limit: number): string[] {
  if (typeof found === 'string') return [`mirrored tags with it: not known: ${found}`]
  const { tags, tagCount, isCurrent } = found
  const behind = isCurrent ? [] : [JUDGED_BEFORE]
  if (tagCount === 0) return [noTagHasIt(found), ...behind]
  const rows = tags.slice(0, limit).map((one) => {
    const cells = [one.name || one.id, `${foundPackage(one)} ${one.version}`, fixWords(one)]
    return cells.map((cell) => cut(cell, MAX_CELL))
  })
  return [
    `${counted(tagCount, 'mirrored tag has', 'mirrored tags have')} it`,
    table(['tag', 'package', 'with a fix'], rows),
    ...moreOf(tags, limit),
    ...behind,
  ]
}

/** Returns whether a finding has a fix, in words. */
function fixWords({ suppressed, fixable }: KnownRecordTags['tags'][number]): string {
  if (suppressed) return 'ruled out by VEX'
  return fixable ? 'yes' : 'no'
}

/** Returns a line for each date of a record on this mirror. */
function dateLines(dates: RecordDates): string[] {
  return datesInWords(dates).map(([name, at, note]) => `${name.padEnd(16)} ${dateInWords(at, note)}`)
}

function parse(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function textLines({ summary, withdrawn }: Fields): string[] {
  return [
    ...(typeof summary === 'string' ? [visible(cut(summary, 500))] : []),
    ...(typeof withdrawn === 'string' ? [`WITHDRAWN since ${visible(cut(withdrawn, 40))}`] : []),
  ]
}

function factLines(record: Fields): string[] {
  const dates = ['published', 'modified'].flatMap((name): [string, string][] => {
    const value = record[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  const ids = ['aliases', 'upstream', 'related'].flatMap((name): [string, string][] => {
    const value = record[name]
    const list: unknown[] = Array.isArray(value) ? value : []
    const texts = list.filter((one) => typeof one === 'string')
    const more = texts.length > MOST_IDS ? ` and ${texts.length - MOST_IDS} more` : ''
    return texts.length === 0 ? [] : [[name, `${texts.slice(0, MOST_IDS).join(', ')}${more}`]]
  })
  const severity = describeSeverity(record).map((one): [string, string] => ['severity', one])
  return [...dates, ...severity, ...ids].map(([name, value]) => `${name.padEnd(10)} ${visible(cut(value, 2000))}`)
}

function affectedLines({ affected }: Fields, limit: number): string[] {
  const list: unknown[] = Array.isArray(affected) ? affected : []
  if (list.length === 0) return ['it names no affected package']
  const rows = list.slice(0, limit).flatMap((one) => {
    const { ecosystem, name, affected, fixed } = describeAffected(one)
    const cells = [name, ecosystem, affected.join('; '), fixed.join(', ') || 'no fix named']
    return wrapped(
      cells.map((cell) => cut(cell || '-', MAX_CELL)),
      WIDTHS,
    )
  })
  return [table(['package', 'ecosystem', 'affected', 'fixed in'], rows), ...moreOf(list, limit)]
}

function referenceLines({ references }: Fields, limit: number): string[] {
  const list = [...eachObject(references)].map(fieldsOf)
  if (list.length === 0) return []
  const rows = list.slice(0, limit).map(({ type, url }) => {
    const kind = typeof type === 'string' ? type : '-'
    return [cut(kind, 16), typeof url === 'string' ? cut(url, 500) : '-']
  })
  return ['', table(['reference', 'address'], rows), ...moreOf(list, limit)]
}

function moreOf(list: readonly unknown[], limit: number): string[] {
  return list.length > limit ? [`… and ${list.length - limit} more: --limit ${list.length}, or --json`] : []
}
