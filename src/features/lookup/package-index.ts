import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { readCurrentViews } from '../scanners/store/generations.ts'
import { derivedVendors } from '../scanners/views/osv/ecosystems.ts'
import { note } from '../../cli/context.ts'
import { makeViews } from '../scanners/cli/export-db.ts'

/** A lookup needs the index of packages, and none is built yet. */
class IndexNeeded extends Error {}

/** Ends a lookup that needs the index of packages, which `withPackageIndex` then builds. */
export function needPackageIndex(): never {
  throw new IndexNeeded('the index of packages is not built yet')
}

/**
 * Calls a lookup; where it needs the index of packages, builds it and calls the lookup again. `missing`: why there is no index and
 * none can be built; null: nothing is known against it.
 */
export async function withPackageIndex<T>(config: Config, lookup: (missing: string | null) => T): Promise<T> {
  try {
    return lookup(null)
  } catch (error) {
    if (!(error instanceof IndexNeeded)) throw error
    return lookup(await buildPackageIndex(config))
  }
}

/** Builds the index of packages where no daemon has built one yet. Returns why there is none, with what to do; null: there is one. */
export async function buildPackageIndex({ views, data }: Config): Promise<string | null> {
  if (!views.bucket && !views.query)
    return 'this mirror has no index of packages: views.serve has neither bucket nor query'
  if (readCurrentViews(data.dir, 'osv') !== null) return null
  note('building the index of packages, once: no daemon has built it yet')
  try {
    await makeViews(data.dir, derivedVendors(views), false)
  } catch (error) {
    return `the index of packages is not built yet, and cannot be built here: ${messageOf(error)}; a running daemon (patchmirror serve) builds it`
  }
  if (readCurrentViews(data.dir, 'osv') !== null) return null
  return 'the index of packages is not built yet: no OSV records are mirrored; run "patchmirror sync osv" or import a bundle'
}
