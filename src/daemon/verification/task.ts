import { MirrorError, messageOf } from '../../base/errors.ts'
import { inspectOthers, describeDamage } from '../../store/database/inspect.ts'
import { nameStorageError } from '../../store/database/faults.ts'
import { openReader } from '../../store/database/open.ts'
import { snapshotStamp } from '../../store/pin.ts'
import { createReads } from '../../store/reads.ts'
import { type VerifyReport, damageIn, isSoundVerdict, reportOfUnread } from '../../sync/verify/report.ts'
import { verifyStore } from '../../sync/verify/verify.ts'
import { checkDerived } from '../derived.ts'
import type { DerivedData, DerivedSettings } from '../feature.ts'

/** What is verified. */
export interface ScrubTask {
  readonly settings: DerivedSettings
}

/** What a verification found; null: nothing is mirrored yet. */
export type ScrubReport = {
  readonly report: VerifyReport
  /** Everything that is damaged now, in words. */
  readonly damaged: readonly string[]
  /** Views that were damaged and are made again, in words. */
  readonly remade: readonly string[]
} | null

/** Verifications of a state that a run replaces meanwhile, at most. */
const MOST_TRIES = 3

/**
 * Reads all that is stored once, in one read transaction, and checks it against its digests. Makes damaged data again that is
 * derived from the store.
 */
export async function performScrub({ settings }: ScrubTask, derived: readonly DerivedData[]): Promise<ScrubReport> {
  const dataDir = settings.data.dir
  const report = await verifyOneState(dataDir)
  if (report === null) return null
  const remade: string[] = []
  const lost: string[] = []
  for (const { name, fault, makeAgain } of checkDerived(derived, dataDir)) {
    const failure = await failureOf(makeAgain(settings))
    const what = `${name}: ${fault}`
    if (failure === null) remade.push(what)
    else lost.push(`${what}; it could not be made again: ${failure}`)
  }
  const others = inspectOthers(dataDir).filter(({ faults }) => faults.length > 0)
  return {
    report,
    damaged: [...damageIn(report), ...lost, ...others.map(describeDamage)],
    remade,
  }
}

/** A run may replace the archive beside the database while it is read: what is found then is looked at again. */
async function verifyOneState(dataDir: string): Promise<VerifyReport | null> {
  for (let tries = 1; ; tries++) {
    const db = openReader(dataDir)
    if (db === null) return null
    try {
      const stamp = (): string => snapshotStamp(createReads(db))
      db.exec('BEGIN')
      const before = stamp()
      const report = await verifyStore(db, dataDir)
      db.exec('COMMIT')
      if (isSoundVerdict(report) || stamp() === before || tries === MOST_TRIES) return report
    } catch (error) {
      return reportOfUnread(nameStorageError(error, dataDir))
    } finally {
      db.close()
    }
  }
}

/** Returns why something could not be made again; null: it was. */
async function failureOf(made: Promise<unknown>): Promise<string | null> {
  try {
    await made
    return null
  } catch (error) {
    const isBusy = error instanceof MirrorError && error.code === 'locked'
    return isBusy ? 'they are being made' : messageOf(error)
  }
}
