import { toIso } from '../../base/time.ts'
import { noteVerification, readLastVerification } from '../../store/notes.ts'
import type { VerifyReport } from './verify.ts'

/** What of the damage is noted in words. */
const NAMED = 20

/** Returns everything that is damaged by a report, in words. */
export function damageIn(report: VerifyReport): string[] {
  const { structure, damagedRecords, damagedVersions, damagedDocuments, disagreements } = report
  const { answers, lists, documents } = report.catalog
  return [
    ...structure.map((line) => `database: ${line}`),
    ...damagedRecords.map((id) => `record ${id}`),
    ...damagedVersions.map(({ id, log }) => `superseded version of record ${id} (entry ${log})`),
    ...[...damagedDocuments, ...answers, ...lists],
    ...documents.map((digest) => `document ${digest}`),
    ...disagreements,
  ]
}

/** Notes that everything stored was verified, and what is damaged; `healed`: what was damaged before and is sound now. */
export function noteVerified(
  dataDir: string,
  damaged: readonly string[],
  now: number,
  healed: string | null = null,
): void {
  const endedAt = toIso(now)
  noteVerification(dataDir, {
    endedAt,
    since: readLastVerification(dataDir)?.since ?? endedAt,
    damaged: damaged.slice(0, NAMED),
    damagedCount: damaged.length,
    healed,
  })
}
