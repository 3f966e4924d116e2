import { withTimes } from '../../lookup/answers/cells.ts'
import { asSentence } from '../../lookup/answers/html.ts'
import { MirrorError } from '../../../base/errors.ts'
import { describeMissing } from '../../../server/snapshot/missing.ts'
import { whyNotAllSearched } from '../../../server/lookup/missing-record.ts'
import type { Freshness } from '../../lookup/freshness.ts'
import type { Block } from '../blocks.ts'
import { listIn } from '../download.ts'
import type { WebFeed } from '../feed.ts'
import { withoutCommand } from '../open-text.ts'
import { type LoadPage, type Page, type PageCall, type PageView, parameter } from '../page.ts'

/**
 * Loads a page and says first what is to be known of the sources that it was read from, as commands do: what they lack, that they
 * are too old, or that the index of packages is an earlier one. A list that may lack rows for it is `incomplete`.
 */
export function withDoubts(call: PageCall, { isList }: Page, freshness: Freshness, load: LoadPage): PageView {
  const view = loadOrDoubt(call, freshness, load)
  const warnings = freshness.warnings()
  if (view.feed !== undefined) return { ...view, feed: doubtedFeed(call, view.feed, warnings) }
  if (warnings.length === 0) return view
  const text = withTimes(warnings.map(asSentence).join(' '))
  const notice: Block = { kind: 'notice', tone: 'warn', title: 'State of the data', text }
  const blocks = isList === true ? withIncomplete(view, whyNotAll(call, freshness)) : view.blocks
  return { ...view, blocks: [notice, ...blocks] }
}

/** Returns a feed that says the same where it is described: an entry for it would be news again each time. */
function doubtedFeed({ signedIn }: PageCall, feed: WebFeed, warnings: readonly string[]): WebFeed {
  const doubts = feed.doubt === null ? warnings : [feed.doubt, ...warnings]
  const open = signedIn ? doubts : doubts.map(withoutCommand)
  return { ...feed, doubt: open.length === 0 ? null : open.map(asSentence).join(' ') }
}

/** What is not found here may be among what a source lacks. */
function loadOrDoubt(call: PageCall, freshness: Freshness, load: LoadPage): PageView {
  try {
    return load(call)
  } catch (error) {
    const warnings = freshness.warnings()
    if (!(error instanceof MirrorError) || error.code !== 'not_found' || warnings.length === 0) throw error
    throw new MirrorError('not_found', [error.message, ...warnings].join('; '), { cause: error })
  }
}

/** Returns why records may be missing among those that were read; null: they are all, or none were read. */
function whyNotAll({ query, reads }: PageCall, freshness: Freshness): string | null {
  const osv = freshness.used().find(({ name }) => name === 'osv')
  if (osv === undefined) return null
  const outside = whyNotAllSearched(reads, parameter(query, 'ecosystem') || null)
  const found = [describeMissing('osv', osv), outside, freshness.oldIndex()].filter((why) => why !== null)
  return found.length === 0 ? null : `osv: ${found.join('; ')}`
}

/** Returns the blocks of a page, its list marked as one that may lack rows; the notice says it on the page itself. */
function withIncomplete(view: PageView, why: string | null): readonly Block[] {
  const list = listIn(view)
  if (why === null || list === null) return view.blocks
  const incomplete = [list.incomplete, why].filter((one) => one !== undefined).join('; ')
  return view.blocks.map((block) => (block === list ? { ...list, incomplete } : block))
}
