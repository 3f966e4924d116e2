import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { describeOsvScope, leavesOut, parseScopeText, takesAllOf } from '../../base/domain/osv-scope.ts'
import type { Reads } from '../../store/reads.ts'

/** Why a record is not stored that upstream lists, or may list. */
export interface MissingRecord {
  /** `absent`: upstream lists it and answers 404; `failed`: it could not be stored; `unknown`: whether it is listed is not known here. */
  readonly kind: 'absent' | 'failed' | 'unknown'
  /** For people. */
  readonly message: string
}

type RecordReads = Pick<Reads, 'snapshots' | 'feeds' | 'osv' | 'runs'>

/** Returns why the partial snapshot that is served misses a record; null where upstream does not list it, or the snapshot is whole. */
export function findMissingRecord(reads: RecordReads, id: string): MissingRecord | null {
  const snapshot = reads.snapshots.readSnapshot('osv')
  if (snapshot?.whole !== false) return null
  if (!reads.feeds.hasUpstreamBody(OSV_INDEX)) return { kind: 'unknown', message: UNKNOWN }
  if (!reads.osv.isMissing(id)) {
    const above = reads.runs.readLatestWith('osv', snapshot.id)?.facts['upstreamLacks']
    return typeof above === 'string' ? { kind: 'unknown', message: `${NOT_HERE}: ${above}` } : null
  }
  const why = whyNotFetched(reads, id)
  const message = `upstream lists this record, and the mirror could not store it: ${why}`
  return { kind: why.startsWith(ANSWERS_404) ? 'absent' : 'failed', message }
}

/** Does the same for the record that a text may name, also in lower case. */
export function findMissingNamed(reads: RecordReads, text: string): MissingRecord | null {
  return findMissingRecord(reads, text) ?? findMissingRecord(reads, text.toUpperCase())
}

const NOT_HERE = 'this mirror does not have this record, and the service may have it'

const UNKNOWN =
  'this mirror does not have this record, and which records are missing from its partial snapshot is not stored here: upstream may have it'

/** Runs that are looked through for the reason why a record could not be fetched. */
const RUNS = 50

const NO_REASON = '"patchmirror runs" names the run that tried'

/** Reason in run facts for a listed record that upstream answers with 404. */
const ANSWERS_404 = 'upstream lists it but answers 404'

/** Returns the reason why a listed record could not be fetched, or where to look for it: runs record it of some ids only. */
function whyNotFetched({ runs }: Pick<Reads, 'runs'>, id: string): string {
  for (const { source, facts } of runs.listRuns(RUNS)) {
    const missing = source === 'osv' ? facts['lackingIds'] : undefined
    if (!Array.isArray(missing)) continue
    const found = (missing as string[]).find((line) => line.startsWith(`${id}: `))
    return found?.slice(id.length + 2) ?? NO_REASON
  }
  return NO_REASON
}

/** Says that records of an ecosystem are not mirrored, because the scope leaves it out as a whole; null: it does not. */
export function whyLeftOut({ snapshots, runs }: Pick<Reads, 'snapshots' | 'runs'>, ecosystem: string): string | null {
  const snapshot = snapshots.readSnapshot('osv')
  if (snapshot === null) return null
  const above = snapshot.whole ? null : runs.readLatestWith('osv', snapshot.id)?.facts['upstreamScope']
  const scopes = [
    { whose: 'osv.scope', text: snapshot.scope },
    { whose: 'osv.scope of the mirror that is upstream', text: typeof above === 'string' ? above : null },
  ]
  for (const { whose, text } of scopes) {
    const scope = parseScopeText(text)
    if (scope !== null && leavesOut(scope, ecosystem))
      return `Records of ${ecosystem} are not mirrored here: ${whose} leaves them out (${describeOsvScope(scope)}).`
  }
  return null
}

/**
 * Says that what is not found may be among the records outside of the scope, by another id or by its package; null: it cannot be.
 * `ecosystem`: of the package that is looked for; null: it may be any.
 */
export function whyNotAllSearched({ snapshots }: RecordReads, ecosystem: string | null): string | null {
  const scope = parseScopeText(snapshots.readSnapshot('osv')?.scope ?? null)
  if (scope === null || (ecosystem !== null && takesAllOf(scope, ecosystem))) return null
  return `the records outside of osv.scope are not mirrored, and may name it (${describeOsvScope(scope)})`
}
