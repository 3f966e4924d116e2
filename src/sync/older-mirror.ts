import { MirrorError } from '../base/errors.ts'
import { readHttpDate, toIso } from '../base/time.ts'
import { type Meta, type Validators, ageOf, mirrorDate } from '../upstream/http/response.ts'
import type { SyncContext } from './context.ts'

type Dated = Pick<SyncContext, 'store' | 'source' | 'now'>

/** By how much a cache in front of the service may be behind another one, milliseconds: few keep an answer for longer. */
const CACHES_APART_MS = 3_600_000

/**
 * Returns why what upstream answers must not replace what is stored: it is a mirror and older, as after a restore of a backup, or the
 * answer is an older one from a cache (`Age`). Null for the service itself, and for what is as new.
 */
export function whyOlder({ store, source, now }: Dated, meta: Pick<Meta, 'headers' | 'date'>): string | null {
  const ofMirror = mirrorDate(meta.headers)
  const at = ofMirror ?? (ageOf(meta.headers) > 0 ? meta.date + CACHES_APART_MS : null)
  const snapshot = at === null ? null : store.snapshots.readSnapshot(source)
  if (at === null || snapshot === null) return null
  const stored = Math.min(store.runs.readAsOf(source, snapshot), now())
  if (at >= stored) return null
  const who = ofMirror === null ? 'a cache answered for upstream' : 'upstream is a mirror'
  const date = toIso(ofMirror ?? meta.date)
  return (
    `${who}, and its data of ${date} is older than what is stored here, of ${toIso(stored)}: that ` +
    'stays until upstream has newer data'
  )
}

/** Throws `upstream_shape` with that reason. */
export function refuseOlder(context: Dated, path: string, meta: Pick<Meta, 'headers' | 'date'>): void {
  const why = whyOlder(context, meta)
  if (why !== null) throw new MirrorError('upstream_shape', `${path}: ${why}`)
}

/**
 * Returns what makes a document older than the last one, in words, as a copy of the service has it that is behind; null: it is not.
 * A last date that is still to come says nothing: the clock of the service was wrong.
 */
export function olderThanLast(
  { now }: Pick<SyncContext, 'now'>,
  { lastModified }: Pick<Validators, 'lastModified'>,
  last: Pick<Validators, 'lastModified'> | null,
): string | null {
  const at = readHttpDate(lastModified)
  const before = readHttpDate(last?.lastModified)
  if (at === null || before === null || at >= before || before > now()) return null
  return `of ${toIso(at)} is older than the last one, of ${toIso(before)}`
}
