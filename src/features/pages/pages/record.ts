import { whyOutOfScope } from '../../../server/feeds/osv.ts'
import { findMissingRecord } from '../../../server/lookup/missing-record.ts'
import { recordNamed } from '../../../server/lookup/named.ts'
import { type KnownRecordTags, readRecordTags } from '../../../server/lookup/record-tags.ts'
import { MirrorError } from '../../../base/errors.ts'
import { clip } from '../../../base/text.ts'
import { datesFacts, readStoredRecord, recordAnswer, recordContent, removedRecordAnswer } from '../../lookup/record.ts'
import { link } from '../../lookup/answers/cells.ts'
import type { Block } from '../blocks.ts'
import { answerBlocks } from '../links.ts'
import { type PageCall, type PageView, numberOf, parameter } from '../page.ts'

/** Rows of each kind on a page. */
const EXTENT = { packages: 100, references: 200, ids: 500, tags: 100 }
/** Largest record that is shown as a page, bytes. */
const MAX_BYTES = 16 * 2 ** 20

/** Loads the page of one OSV record. */
export function loadRecord(call: PageCall): PageView {
  const asked = parameter(call.query, 'id')
  const id = recordNamed(call.reads.osv, call.query.get('id') ?? '') ?? asked
  const stored = readStoredRecord(call.reads, id)
  if (stored === null) return missingView(call, id)
  const content = stored.size > MAX_BYTES ? null : recordContent(id, stored)
  const found = { id, stored, content, dates: call.reads.dates.readDates(id), tags: readTags(call, id) }
  const extent = { ...EXTENT, at: numberOf(call.query, 'at') ?? 0, more: call }
  const pageAt = (at: number): string => call.ui('record', { id, at: at === 0 ? null : at })
  return { title: id, blocks: answerBlocks(call, recordAnswer(found, extent), { pageAt }) }
}

/** Reads the mirrored tags with a record, for clients with a key, where this mirror has tags. */
function readTags({ config, reads, refuseOld, signedIn }: PageCall, id: string): KnownRecordTags | string | null {
  if (!signedIn || reads.snapshots.readSnapshot('catalog') === null) return null
  return readRecordTags(config, reads, id, () => {
    for (const source of ['osv', 'catalog'] as const) refuseOld(source)
  })
}

/** A record that is not stored: removed, missing, or of another id. */
function missingView(call: PageCall, id: string): PageView {
  const { reads, ui } = call
  const outside = whyOutOfScope(reads, id)
  const missing = outside === null ? findMissingRecord(reads, id) : null
  const tombstone = outside === null && missing === null ? reads.osv.readTombstone(id) : null
  if (tombstone !== null) {
    const answer = removedRecordAnswer(call, id, tombstone.removedAt)
    return { title: id, status: 404, blocks: answerBlocks(call, answer) }
  }
  const message = outside ?? missing?.message ?? `this mirror has no record ${clip(id)}`
  if (id === '') throw new MirrorError('bad_request', 'name a record: ?id=…')
  if (reads.snapshots.readSnapshot('osv') === null)
    throw new MirrorError('not_ready', 'no OSV records are mirrored yet')
  const found: Block = {
    kind: 'notice',
    tone: 'warn',
    title: 'Not found',
    text: message,
    links: [link('Search for it', ui('search', { q: id }))],
  }
  const dates = answerBlocks(call, { parts: datesFacts(reads.dates.readDates(id)) })
  return { title: id, status: 404, blocks: [found, ...dates] }
}
