import type { FindingsLog } from '../../server/followers/event-log.ts'
import type { Config } from '../../config/schema.ts'
import { readFindings } from '../../store/findings/database.ts'
import { logPosition } from '../../store/findings/message.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'

/** Followers' log of changed findings, and how it learns of them. */
interface FindingsFeed extends FindingsLog {
  /** The tags were judged again. */
  judged(): void
}

/** Most changes that are added up for an event: a follower that was away for longer reads them. */
const MOST_COUNTED = 10_000

/**
 * Creates the log of the event stream. The newest position is kept in memory, since it is asked for at each look; the numbers are
 * read for each event. Where the findings cannot be read, an event has none: it still says that something changed.
 */
export function createFindingsFeed(config: Pick<Config, 'data' | 'match' | 'views'>): FindingsFeed {
  const read = <T>(use: (reads: FindingsReads) => T): T | null => {
    try {
      return readFindings(config.data.dir, use)
    } catch {
      return null
    }
  }
  const readLast = (): string | null =>
    read((reads) => (reads.readState() === null ? null : logPosition(reads, reads.lastLog())))
  let newest = readLast()
  return {
    judged: () => void (newest = readLast() ?? newest),
    last: () => (config.match.tags && config.views.query ? newest : null),
    since: (after) => JSON.stringify({ after, ...(read((reads) => sinceOf(reads, after)) ?? NOT_COUNTED) }),
  }
}

const NOT_COUNTED = { complete: false, counts: null }

/** `complete`: the changes since then are all still there; `counts`: null where they are not, or too many. */
function sinceOf(reads: FindingsReads, after: string): object {
  const last = reads.lastLog()
  const [name, seq = ''] = after.split('-')
  const from = Number(seq)
  const oldest = reads.firstLog() ?? last + 1
  const complete = logPosition(reads, from) === `${name}-${from}` && from <= last && from + 1 >= oldest
  const counts = complete && last - from <= MOST_COUNTED ? reads.sumLog(from) : null
  return { position: logPosition(reads, last), complete, counts }
}
