import { MirrorError, messageOf } from '../../core/errors.ts'
import { contentOf, documentMember, sizeOf } from '../../store/database/gzip.ts'
import { OSV_INDEX } from '../../domain/feed-paths.ts'
import { fetchIndex } from '../../upstream/osv.ts'
import { deflate } from '../../zip/member.ts'
import type { SyncContext, SyncResult } from '../context.ts'
import { parseIndex } from './index-parser.ts'
import type { ListedIndex } from './publish.ts'

/** Fetches the index conditionally. Null: upstream has nothing new, and everything listed is stored. */
export async function listOsv(context: SyncContext): Promise<ListedIndex | null> {
  const { store, session, config, full } = context
  const snapshot = store.snapshots.readSnapshot('osv')
  const state = snapshot === null ? null : store.feeds.readUpstreamState(OSV_INDEX)
  const answer = await fetchIndex(session, full ? null : state, config.upstream.maxJsonBytes)
  context.facts['asOf'] = answer.meta.date
  if (answer.status === 200) {
    const { etag, lastModified, date } = answer.meta
    const index = parseIndex(answer.body)
    const gzip = documentMember(answer.body, answer.gzip, deflate)
    return { index, stored: false, gzip, etag, lastModified, asOf: date }
  }
  if (answer.status !== 304)
    throw new MirrorError('upstream_shape', `${OSV_INDEX}: upstream sent a partial response (206)`)
  const isComplete = snapshot?.whole === true && store.osv.listSuspectIds().length === 0
  if (isComplete && context.kind !== 'reconcile') return null
  return { ...storedIndex(context), asOf: answer.meta.date }
}

/** Returns upstream's last index from the store. */
function storedIndex({ store }: SyncContext): Omit<ListedIndex, 'asOf'> {
  const state = store.feeds.readUpstreamState(OSV_INDEX)
  const document = store.feeds.readDocument(OSV_INDEX)
  const body = state?.body ?? document?.body ?? null
  const { etag, lastModified } = state ?? { etag: null, lastModified: null }
  try {
    if (body === null) throw new Error('there is none')
    const index = parseIndex(contentOf(body, sizeOf(body)))
    return { index, stored: true, gzip: body, etag, lastModified }
  } catch (error) {
    const why = `upstream confirmed the stored index, but the stored index cannot be read (${messageOf(error)})`
    throw new MirrorError('proof', `${why}: run "patchmirror verify --repair"`, { cause: error })
  }
}

/** Stores the refused index for `approve`, once, even if upstream repeats it. */
export async function quarantine(
  context: SyncContext,
  listed: ListedIndex,
  reason: string,
): Promise<SyncResult> {
  const { store, runId, dryRun } = context
  const { sha256 } = listed.index
  const known = store.quarantine.findQuarantine(OSV_INDEX, sha256)
  if (known === null && !dryRun) {
    const { gzip, etag, lastModified, asOf } = listed
    const kept = { runId, source: 'osv', path: OSV_INDEX, reason, sha256, body: gzip } as const
    await store.exclusive(() =>
      store.quarantine.keepQuarantine({ ...kept, etag, lastModified, asOf }),
    )
  }
  const run = known?.runId ?? runId
  context.facts['quarantine'] = run
  if (dryRun && known === null)
    return { outcome: 'quarantined', asOf: null, message: `dry run: ${reason}` }
  const decision =
    known?.decision === 'rejected' ? `rejected before (run ${run})` : `approve or reject run ${run}`
  return { outcome: 'quarantined', asOf: null, message: `${reason}; ${decision}` }
}
