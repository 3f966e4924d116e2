import type { Reads } from '../../../../store/reads.ts'
import { openViews } from '../../store/reads.ts'
import { type BuildReport, buildViews } from './build.ts'
import { changedAfter, makeGeneration } from '../generation.ts'
import { osvViewsName } from '../osv-name.ts'

/** What the bucket's views are made from. */
interface OsvViewsOptions {
  readonly dataDir: string
  /** Reads of one snapshot. */
  readonly reads: Reads
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: readonly string[]
  readonly rebuild?: boolean
  /** Called now and then; may throw to end the work. */
  readonly pause: () => Promise<void>
}

/** Makes the views of the OSV records; null when they are made already, or there is nothing yet. Throws as `makeGeneration`. */
export async function makeOsvViews(options: OsvViewsOptions): Promise<BuildReport | null> {
  const { dataDir, reads, vendors, rebuild = false, pause } = options
  const name = osvViewsName(reads, vendors)
  const snapshot = reads.snapshots.readSnapshot('osv')
  const archive = reads.osv.readArchive()
  if (name === null || snapshot === null || archive === null) return null
  const make = (folder: string, before: string | null) => {
    const dating = { newest: archive.changed, floor: reads.feeds.readDateFloor(), readChanged: changedIn }
    const changed = changedAfter(before, name, dating)
    return buildViews({
      dataDir,
      reads: reads.osv,
      listChanged: (since) => changedSince(reads, since),
      archive,
      changed,
      snapshot,
      folder,
      before,
      vendors,
      pause,
    })
  }
  const { id, asOf } = snapshot
  return makeGeneration({ dataDir, kind: 'osv', name, snapshot: id, asOf, rebuild, make })
}

/** Most changed records that are taken from the change log: with more of them, all are compared. */
const MOST_NAMED = 10_000

/** Returns the ids of the records that differ from an earlier snapshot; null when the change log does not say which. */
function changedSince({ snapshots, changes }: Reads, since: string): string[] | null {
  const place = changes.findInLog(since).find(({ source }) => source === 'osv')
  const latest = changes.readLatestLogged('osv')
  if (place === undefined || latest?.snapshot !== snapshots.readSnapshot('osv')?.id) return null
  const span = { ...place, until: latest?.id ?? 0 }
  const names = changes.countNames(span)
  if (names === null || names > MOST_NAMED) return null
  return changes.listChanged(span, '', MOST_NAMED).map(({ name }) => name)
}

function changedIn(folder: string): number {
  const views = openViews(folder)
  try {
    return views.info.changed
  } finally {
    views.close()
  }
}
