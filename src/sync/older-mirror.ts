import { MirrorError } from '../base/errors.ts'
import { toIso } from '../base/time.ts'
import { type Meta, mirrorDate } from '../upstream/http/response.ts'
import type { SyncContext } from './context.ts'

type Dated = Pick<SyncContext, 'store' | 'source' | 'now'>

/**
 * Returns why what a mirror that is upstream serves must not replace what is stored: it is older, as after a restore of a backup.
 * Null for the service, and for a mirror that is as new.
 */
export function whyOlder({ store, source, now }: Dated, meta: Pick<Meta, 'headers'>): string | null {
  const at = mirrorDate(meta.headers)
  const snapshot = at === null ? null : store.snapshots.readSnapshot(source)
  if (at === null || snapshot === null) return null
  const stored = Math.min(store.runs.readAsOf(source, snapshot), now())
  if (at >= stored) return null
  return (
    `upstream is a mirror, and its data of ${toIso(at)} is older than what is stored here, of ${toIso(stored)}: that ` +
    'stays until upstream has newer data'
  )
}

/** Throws `upstream_shape` with that reason. */
export function refuseOlder(context: Dated, path: string, meta: Pick<Meta, 'headers'>): void {
  const why = whyOlder(context, meta)
  if (why !== null) throw new MirrorError('upstream_shape', `${path}: ${why}`)
}
