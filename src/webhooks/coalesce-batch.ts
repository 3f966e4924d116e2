import type { Waiting } from './waiting.ts'

/**
 * How many rows go into one refresh after so many failures of theirs. What fails again is tried in ever smaller
 * company, so a row that fails every refresh is soon alone with its fault.
 */
const COMPANY: readonly number[] = [Infinity, Infinity, 64, 8]
/**
 * While nothing succeeds at all, every so many tries take everything that is due: with a service that is down, a thousand
 * rows then grow as old as one, and not each by itself. Others between them are tried alone, so that it can be told.
 */
const ALL_TOGETHER = 9

/** The company grows by this with every refresh that succeeds, so that a service that is back is caught up with soon. */
const GROWTH = 4

/** What was tried before. */
export interface Tried {
  readonly refreshes: number
  /** Since the last one that succeeded. */
  readonly failuresInRow: number
  /** Since the last one that failed. */
  readonly successesInRow: number
}

/**
 * The rows of the next refresh out of those that are due. New rows do not fail with those that failed; the two take turns,
 * so neither waits for long. Among those that failed, the one comes first that has been due for longest.
 */
export function chooseBatch(due: readonly Waiting[], tried: Tried): readonly Waiting[] {
  const { refreshes, failuresInRow } = tried
  if (failuresInRow > 0 && failuresInRow % ALL_TOGETHER === 0) return due
  const fresh = due.filter(({ attempts }) => attempts === 0)
  const failed = due.filter(({ attempts }) => attempts > 0).sort((a, b) => a.dueAt - b.dueAt)
  const [first] = failed
  if (first === undefined || (fresh.length > 0 && refreshes % 2 === 0)) return fresh
  const peers = failed.filter(({ attempts }) => attempts === first.attempts)
  const company = Math.max(COMPANY[first.attempts] ?? 1, GROWTH ** tried.successesInRow)
  return withSameTarget(peers.slice(0, company), due)
}

/** Rows of one target stand or fall together: asking once answers for all of them. */
function withSameTarget(chosen: readonly Waiting[], due: readonly Waiting[]): readonly Waiting[] {
  const targets = new Set(chosen.map(({ target }) => targetKey(target)))
  return due.filter(({ target }) => targets.has(targetKey(target)))
}

/** Equal for targets that name the same thing. */
export function targetKey(target: Waiting['target']): string {
  if (target === null) return ''
  const { repository, tag, digest, arch, subject, others = [] } = target
  return JSON.stringify([repository, tag, digest, arch, subject, ...others.map(targetKey)])
}
