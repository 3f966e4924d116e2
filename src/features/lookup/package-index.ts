import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { type Reads, withReads } from '../../store/reads.ts'
import { readCurrentViews, readNamedViews } from '../scanners/store/generations.ts'
import { derivedVendors } from '../scanners/views/osv/ecosystems.ts'
import { isServed, note } from '../../cli/context.ts'
import { makeViews, openSound } from '../scanners/cli/export-db.ts'

/** A lookup needs the index of packages, and it is to be built first. */
class IndexNeeded extends Error {}

/** What was done for the index of packages before a lookup. */
export interface TriedIndex {
  /** Why there is no index and none can be built; null: nothing is known against it. */
  readonly missing: string | null
  /** Whether it was tried to build it: what is there now is read. */
  readonly isTried: boolean
}

/** Ends a lookup where the index of packages is to be built first, which `withPackageIndex` then does. */
export function needPackageIndex(config: Config, reads: Pick<Reads, 'snapshots'>, { isTried }: TriedIndex): void {
  if (!isTried && isToBuild(config, reads)) throw new IndexNeeded('the index of packages is to be built')
}

/** Calls a lookup; where it needs an index of packages that is not there, or an old one, builds it and calls the lookup again. */
export async function withPackageIndex<T>(config: Config, lookup: (index: TriedIndex) => T): Promise<T> {
  try {
    return lookup({ missing: null, isTried: false })
  } catch (error) {
    if (!(error instanceof IndexNeeded)) throw error
    return lookup({ missing: await buildPackageIndex(config), isTried: true })
  }
}

/**
 * Builds the index of packages where no daemon has built one yet, or none runs that would build that of the newest snapshot.
 * Returns why there is none, with what to do; null: there is one.
 */
export async function buildPackageIndex(config: Config): Promise<string | null> {
  const { views, data } = config
  if (isOff(config)) return 'this mirror has no index of packages: views.serve has neither bucket nor query'
  if (withReads(data.dir, (reads) => isToBuild(config, reads)) === false) return null
  const isUnread = readNamedViews(data.dir, 'osv') !== null && !isReadable(config)
  const isFirst = !isUnread && readCurrentViews(data.dir, 'osv') === null
  note(`building the index of packages, ${whyBuilt(isFirst, isUnread)}`)
  try {
    await makeViews(data.dir, derivedVendors(views), isUnread)
  } catch (error) {
    if (!isFirst && !isUnread) return null // the one that is there says of which snapshot it is
    return `the index of packages is not built yet, and cannot be built here: ${messageOf(error)}; a running daemon (patchmirror serve) builds it`
  }
  if (readCurrentViews(data.dir, 'osv') !== null) return null
  return 'the index of packages is not built yet: no OSV records are mirrored; run "patchmirror sync osv" or import a bundle'
}

function whyBuilt(isFirst: boolean, isUnread: boolean): string {
  if (isUnread) return 'again: the one that is there cannot be read'
  return isFirst ? 'once: no daemon has built it yet' : 'that of the newest snapshot: no daemon runs that builds it'
}

/** Whether the index that is there can be read, and is not damaged. */
function isReadable({ data }: Config): boolean {
  const views = openSound(data.dir)
  views?.close()
  return views !== null
}

function isOff({ views }: Pick<Config, 'views'>): boolean {
  return !views.bucket && !views.query
}

/** Whether there is no index, or an old or damaged one that no daemon replaces. */
function isToBuild(config: Config, { snapshots }: Pick<Reads, 'snapshots'>): boolean {
  const current = readCurrentViews(config.data.dir, 'osv')
  if (current === null || isOff(config)) return true
  if (isServed(config.data.dir)) return false
  return current.snapshot !== snapshots.readSnapshot('osv')?.id || !isReadable(config)
}
