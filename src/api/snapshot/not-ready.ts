import { toIso } from '../../core/time.ts'
import { MirrorError } from '../../core/errors.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { Reads } from '../../store/reads.ts'

/** The reads that explain why something is missing. */
type RunReads = Pick<Reads, 'runs' | 'ledger'>

/** The error for something of a source that is mirrored, but is not there yet, with the reason that its last run gave. */
export function notReady(reads: RunReads, source: SourceName, what: string): MirrorError {
  return new MirrorError('not_ready', `${what} is not mirrored yet: ${whyMissing(reads, source)}`)
}

/** The error for what the service has and the last run that tried could not fetch, with the reason that the run gave. */
export function notFetched(what: string, reason: string): MirrorError {
  return new MirrorError('not_ready', `${what} is not mirrored yet: this mirror could not fetch it, and every sync tries again: ${reason}`) // prettier-ignore
}

const MAX_MESSAGE = 400

/** Why nothing, or not everything, of a source is mirrored: one clause, from its last runs. */
function whyMissing(reads: RunReads, source: SourceName): string {
  const latest = reads.runs.readLatestRun(source)
  const ended = reads.runs.readLatestWholeRun(source)
  const isRunning = latest !== null && latest.endedAt === null
  if (ended === null && !isRunning && reads.ledger.readLastImport() !== null)
    return `no bundle that was imported has ${source}; "patchmirror export FILE --sources ${source}" on the source mirror makes one that brings it`
  if (ended === null) return isRunning ? 'the first sync has not ended' : neverRun(source)
  const at = ended.endedAt === null ? '' : ` at ${toIso(ended.endedAt)}`
  const message = ended.message ?? ''
  const cut = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
  const reason = cut === '' ? '' : `: ${cut}`
  const next = isRunning ? '; another one is running' : ''
  return `the last sync (${ended.state}${at}) did not have it${reason}${next}`
}

/** Names both ways in: whether this mirror has an upstream is not known from its data. */
function neverRun(source: SourceName): string {
  return (
    `no sync and no import of ${source} has run yet; a disconnected mirror gets it from a full bundle: ` +
    `"patchmirror export FILE --sources ${source}" on the source mirror, "patchmirror import FILE" here`
  )
}
