import { duration, toIso } from '../../../base/time.ts'
import { ageSecondsOf } from '../../../base/domain/sources.ts'
import { FLEET_PAUSED } from '../../../base/domain/status.ts'
import { readGeneration } from '../generations/chain.ts'
import type { KnownGeneration } from '../generations/format/generation.ts'
import { inspectStore } from '../generations/inspect.ts'
import { isUnreleased } from '../generations/rollback-state.ts'
import { type StoredLease, endOf, fetchLease } from '../lease/lease.ts'
import { type ReaderReport, listReaders } from '../readers.ts'
import { type GlobalOptions, print, printJson, warn } from '../../../cli/context.ts'
import { table } from '../../../cli/output.ts'
import { mirrorName, withFleetStore } from './fleet-store.ts'

/**
 * `patchmirror fleet status`: the newest generation, the lease, and what each mirror of the fleet said last. Exits with 1 when the store
 * lost what this data folder followed, or the newest generation names.
 */
export async function fleetStatusCommand(options: GlobalOptions & { json?: boolean }): Promise<number> {
  return withFleetStore(options, async ({ config, store, trust }) => {
    const { newest, doubts } = await inspectStore(store, trust, config.data.dir)
    const stored = await fetchLease(store)
    const { lease } = stored
    const paused = newest !== null && (await isUnreleased(store, newest.generation))
    const mirrors = await withLags(await listReaders(store), newest, (missed) => readGeneration(store, missed, trust))
    const { generation, publishedAt, epoch, mirror, name = null, sources = {} } = newest?.generation ?? {}
    if (options.json === true) {
      const shown = newest && { generation, publishedAt, epoch, mirror, name, sources }
      const { token: _token, ...leader } = lease ?? { token: null }
      printJson({ store: store.url, newest: shown, doubts, paused, lease: lease && leader, mirrors })
      return doubts.length === 0 ? 0 : 1
    }
    if (newest === null) print(`${store.url} has no generation`)
    else {
      const counts = Object.entries(sources).map(([name, { records }]) => `${name} ${records}`)
      print(
        `generation ${generation}  published ${publishedAt} by ${mirrorName(newest.generation)} (epoch ${epoch})  ${counts.join('  ')}`,
      )
    }
    if (paused) print(FLEET_PAUSED)
    print(describeLease(stored, Date.now()))
    if (mirrors.length > 0) print(tableOf(mirrors, stored))
    for (const doubt of doubts) warn(doubt)
    return doubts.length === 0 ? 0 : 1
  })
}

function tableOf(mirrors: readonly ReaderReport[], lease: StoredLease): string {
  const now = Date.now()
  const rows = mirrors.map((mirror) => {
    const { name, site, generation, lagSeconds, version, leads, stopped, at } = mirror
    const role = stopped ? `${mirror.role}, stopped` : mirror.role
    const lag = lagSeconds === null ? '-' : `${lagSeconds} s`
    const part = leads ? leaderOrFormer(mirror, lease, now) : role
    return [name, site ?? '-', String(generation), lag, version, part, agoOf(at)]
  })
  return table(['mirror', 'site', 'generation', 'lag', 'version', 'role', 'last report'], rows)
}

function agoOf(at: string): string {
  const seconds = ageSecondsOf(Date.parse(at), Date.now())
  return seconds === null ? `${at}, later than this clock` : `${duration(seconds)} ago`
}

/** Returns the line on the lease: a mirror leads while it is neither given back nor over. */
export function describeLease(stored: StoredLease, now: number): string {
  const { lease, writtenAt } = stored
  if (lease === null) return 'lease: none'
  const { name, epoch, released } = lease
  if (released) return `lease: given back by ${name} (epoch ${epoch}); no mirror leads`
  const end = toIso(endOf(lease, writtenAt))
  if (!isHeld(stored, now))
    return `lease: that of ${name} (epoch ${epoch}) ended at ${end} and was not renewed; no mirror leads, unless the clock here (${toIso(now)}) is ahead`
  return `lease: ${name}, epoch ${epoch}, until ${end}`
}

function isHeld({ lease, writtenAt }: StoredLease, now: number): boolean {
  return lease !== null && !lease.released && endOf(lease, writtenAt) > now
}

/** Reports of mirrors that change nothing are written each ten minutes; a sole writer without one for longer may have ended. */
const SILENT_MS = 2 * 600_000

/** A mirror that was killed while it led still says so in its last report: the lease says who leads. */
export function leaderOrFormer({ id, at }: Pick<ReaderReport, 'id' | 'at'>, stored: StoredLease, now: number): string {
  const leads =
    stored.lease === null
      ? now - Date.parse(at) < SILENT_MS // a sole writer: there is no lease
      : stored.lease.owner === id && isHeld(stored, now)
  return leads ? 'leader' : 'former leader'
}

/**
 * Returns the reports of the mirrors with their lag behind the newest generation, seconds: since the activation of the first one that
 * a mirror does not serve. What it reported itself is what it knew then. Null: it serves none, or that one cannot be read.
 */
export async function withLags(
  mirrors: readonly ReaderReport[],
  newest: KnownGeneration | null,
  read: (generation: number) => Promise<KnownGeneration | null>,
  now = Date.now(),
): Promise<ReaderReport[]> {
  const found = new Map<number, Promise<KnownGeneration | null>>()
  const missed = (number: number): Promise<KnownGeneration | null> => {
    const known = found.get(number) ?? read(number).catch(() => null) // a hole, or one that is refused
    found.set(number, known)
    return known
  }
  const lagOf = async ({ generation }: ReaderReport): Promise<number | null> => {
    if (newest === null || generation === 0) return null
    if (generation >= newest.generation.generation) return 0
    const isNext = generation + 1 === newest.generation.generation
    const first = isNext ? newest : await missed(generation + 1)
    if (first === null) return null
    return Math.max(0, Math.round((now - Date.parse(first.generation.activateAt)) / 1000))
  }
  return Promise.all(mirrors.map(async (mirror) => ({ ...mirror, lagSeconds: await lagOf(mirror) })))
}
