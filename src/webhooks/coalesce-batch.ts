import type { Waiting } from './waiting.ts'

/**
 * How many rows go into one refresh after so many failures of theirs. What fails again is tried in ever smaller
 * company, so a row that fails every refresh is soon alone with its fault.
 */
const COMPANY: readonly number[] = [Infinity, Infinity, 64, 8]
/** From so many failed refreshes in a row on it is the service, not a row. */
const SERVICE_DOWN = 4

/**
 * The rows of the next refresh out of those that are due, oldest first. New rows never wait for rows that failed, nor
 * fail with them. While nothing at all succeeds (`failuresInRow`), every other try takes everything: the first one that
 * succeeds then covers all, and a day without the service costs no more refreshes for many rows than for one.
 */
export function chooseBatch(due: readonly Waiting[], failuresInRow: number): readonly Waiting[] {
  if (failuresInRow >= SERVICE_DOWN && failuresInRow % 2 === 0) return due
  const fresh = due.filter(({ attempts }) => attempts === 0)
  if (fresh.length > 0) return fresh
  const least = due.reduce((found, { attempts }) => Math.min(found, attempts), Infinity)
  const peers = due.filter(({ attempts }) => attempts === least)
  return withSameTarget(peers.slice(0, COMPANY[least] ?? 1), due)
}

/** Rows of one target stand or fall together: asking once answers for all of them. */
function withSameTarget(chosen: readonly Waiting[], due: readonly Waiting[]): readonly Waiting[] {
  const targets = new Set(chosen.map(({ target }) => targetKey(target)))
  return due.filter(({ target }) => targets.has(targetKey(target)))
}

/** Equal for targets that name the same thing. */
export function targetKey(target: Waiting['target']): string {
  if (target === null) return ''
  const { repository, tag, digest, arch, subject } = target
  return JSON.stringify([repository, tag, digest, arch, subject])
}
