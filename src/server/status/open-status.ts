import { isPrivateSource } from '../../base/domain/sources.ts'
import type { RunSummary } from '../../base/reports/runs.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import type { RegistryStatus } from '../../base/reports/transfer.ts'
import type { Status } from '../../base/reports/status.ts'

/**
 * Returns the report without upstream's messages and private paths, for clients without a key. Those are shown by the
 * command line only (`patchmirror status`, `patchmirror runs`).
 */
export function openStatus(status: Status): Status {
  const relay = status.relay.map((one) => ({ ...one, target: null, reason: null }))
  const { verified } = status
  const sources = status.sources.map(openSourceStatus)
  return { ...status, sources, relay, ...(verified && { verified: { ...verified, damaged: [] } }) }
}

/** Returns one source of the report without upstream's messages and private paths. */
export function openSourceStatus(source: SourceStatus): SourceStatus {
  const { partialLists, unprovedLists, lastRun, wrongRun, progress, waiting, signatures } = source
  if (!isPrivateSource(source.name))
    return { ...source, lastRun: lastRun && withoutPeople(lastRun), wrongRun: wrongRun && withoutPeople(wrongRun) }
  return {
    ...source,
    partialLists: partialLists.map(withoutPrivateNames),
    unprovedLists: unprovedLists.map(withoutPrivateNames),
    waiting: waiting.map((one) => ({ ...one, reason: null })),
    signatures: signatures && { ...signatures, unverified: [] },
    lastRun: lastRun && openRun(lastRun),
    wrongRun: wrongRun && openRun(wrongRun),
    ...(progress?.retry && { progress: { ...progress, retry: openRetry(progress.retry) } }),
  }
}

/** A repeated request without its path, and without what upstream answered. */
function openRetry({ nextAt }: Retry): Retry {
  const reason = 'the log of the daemon says why'
  return { reason, nextAt }
}

type Retry = NonNullable<NonNullable<SourceStatus['progress']>['retry']>

/** A run without the names of those who gave a command. */
function withoutPeople(run: RunSummary): RunSummary {
  const facts = Object.entries(run.facts).filter(([name]) => name !== 'by' && name !== 'decidedBy')
  return { ...run, facts: Object.fromEntries(facts) }
}

/** A run with its state, its code and its numbers. */
function openRun(run: RunSummary): RunSummary {
  const facts = Object.entries(run.facts).filter(([, value]) => typeof value === 'number')
  return { ...run, message: openMessage(run), facts: Object.fromEntries(facts) }
}

/** A clause of a message that counts, in words that are all the mirror's own. */
const COUNTS = /^(?:dry run: )?(?:nothing changed|\d+ [a-z]+[a-z\d, ]*)$/

/** Returns the leading clauses of a message that only contain counts: the rest may repeat what upstream sent. */
function openMessage({ id, message }: RunSummary): string | null {
  if (message === null) return null
  const clauses = message.split('; ')
  const end = clauses.findIndex((clause) => !COUNTS.test(clause))
  if (end < 0) return message
  const rest = `"patchmirror runs ${id}", on the machine of the mirror, shows the whole message`
  return [...clauses.slice(0, end), rest].join('; ')
}

/** A path of a private source below its collection. */
const PRIVATE_PATH = /(\/(?:v\d+(?:-[a-z]+)?\/\w+|packages\/ecosystems))\/[^\s:;,]+/g

function withoutPrivateNames({ path, reason }: NamedReason): NamedReason {
  return { path: withoutNames(path), reason: withoutNames(reason) }
}

type NamedReason = SourceStatus['partialLists'][number]

/** Returns what is shown of a registry, to anybody. */
export function openRegistry(registry: RegistryStatus): RegistryStatus {
  const { incomplete } = registry
  return { ...registry, incomplete: incomplete === null ? null : withoutNames(incomplete) }
}

/** The mirror's own words on a list, without the private paths and the pieces of upstream's JSON that they name. */
function withoutNames(text: string): string {
  return text.replace(PRIVATE_PATH, '$1/…').replace(/".*"/s, '"…"')
}
