import type { SourceName } from '../../base/domain/sources.ts'
import { type Refusal, type createQuarantineReader, refusedBy } from './quarantine.ts'
import type { createRunReader } from './runs.ts'

/** Reads of the run log and of what runs refused. */
interface RefusalReads {
  readonly runs: ReturnType<typeof createRunReader>
  readonly quarantine: ReturnType<typeof createQuarantineReader>
}

/**
 * Returns the rejected change that upstream still offered when a run of a source last compared it, whatever failed since; null:
 * there is none.
 */
export function findRejected({ runs, quarantine }: RefusalReads, source: SourceName) {
  for (const run of [runs.readLatestJudged(source), ...runs.readResults(source)]) {
    if (run === null) continue
    const refusal = run.state === 'quarantined' ? quarantine.readRefusal(refusedBy(run)) : null
    if (refusal?.decision === 'rejected') return refusal
  }
  return null
}

/** Returns the message of a run with what was decided since, in the place of the request to decide. */
export function messageNow({ quarantine }: Pick<RefusalReads, 'quarantine'>, message: string | null): string | null {
  if (message === null) return null
  return message.replace(/approve or reject run (\d+)(?: first)?/g, (request, run: string) => {
    const decision = quarantine.readRefusal(Number(run))?.decision ?? null
    if (decision === 'superseded') return `a later run replaced what run ${run} refused`
    return decision === null ? request : `${decision} since (run ${run})`
  })
}

/** Returns the newest run of the last 24 hours that published what should not be believed; null: there is none. */
export function findDoubtful({ runs }: Pick<RefusalReads, 'runs'>, source: SourceName, now: number) {
  return runs.readLatestDoubtful(source, now - 24 * 3_600_000)
}

/**
 * Returns why a newer state of a source is not published that upstream offers: it waits for a decision, or was rejected and is
 * still offered, here or at the mirror that made the last bundle; null: nothing of that is known.
 */
export function whyWithheld(reads: RefusalReads, source: SourceName): string | null {
  if (reads.quarantine.countOpen(source) > 0)
    return 'a newer state is quarantined: "patchmirror approve" or "reject" decides'
  const rejected = findRejected(reads, source)
  if (rejected !== null) return `a newer state is rejected (run ${rejected.runId}): ${heldBack(rejected)}`
  return isWithheldAbove(reads, source) ? WITHHELD_ABOVE : null
}

/** What is said of a source whose last bundle lacks a newer state. */
export const WITHHELD_ABOVE = 'a newer state is quarantined or rejected at the mirror that made the bundle'

/** Reports whether the last run that decided about a source imported a bundle of a mirror that withheld a newer state of it. */
export function isWithheldAbove({ runs }: Pick<RefusalReads, 'runs'>, source: SourceName): boolean {
  const last = runs.readLatestJudged(source)
  return last?.kind === 'import' && last.facts['withheld'] === 1
}

/** Says what a rejected change holds back; of the feeds that is one document alone. */
export function heldBack({ source, path }: Pick<Refusal, 'source' | 'path'>): string {
  const what = source === 'feeds' ? `nothing newer of ${path}` : 'nothing newer'
  return `${what} is published until upstream corrects it, or the settings of its scope change`
}
