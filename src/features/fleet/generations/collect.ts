import { toIso, DAY_MS, HOUR_MS } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import type { KeyTrust } from '../../bundles/format/keys.ts'
import { date, integerField, listField, shape, textField } from '../../../base/json/shapes.ts'
import { type ObjectInfo, type ObjectStore, FleetError, readObject } from '../objects/object-store.ts'
import { findNewest, readGeneration } from './chain.ts'
import { bundlesOf } from './format/generation.ts'
import {
  BUNDLE_FOLDER,
  CHANGE_FOLDER,
  GENERATION_FOLDER,
  PLAN_FOLDER,
  READER_FOLDER,
  generationKey,
  isCollectable,
  numberInKey,
} from './format/object-names.ts'
import { refuseGeneration } from './format/refusals.ts'

/** What a garbage collection needs. */
interface CollectDeps {
  readonly store: ObjectStore
  readonly config: Pick<Config, 'fleet'>
  readonly trust: KeyTrust
  readonly now: () => number
  /** Only report. */
  readonly dryRun: boolean
}

/** An object that can be deleted. */
interface Unneeded {
  key: string
  size: number
  /** Unix milliseconds, the store's clock. */
  modifiedAt: number
}

/** The result of a garbage collection. */
interface Collected {
  /** Objects that were deleted, or with `dryRun` would be. */
  readonly deleted: readonly Unneeded[]
  /** Objects that a later run deletes. */
  readonly planned: readonly Unneeded[]
  /** Number of bundles, changes and reports of mirrors that stay. */
  readonly kept: number
}

interface Plan {
  at: string
  objects: Unneeded[]
}

/** A later run deletes what a plan of this age names, milliseconds. */
const PLAN_AGE_MS = HOUR_MS
const PLAN_BYTES = 64 * 2 ** 20

/** How old an object is at least when it is deleted, milliseconds: longer than any download takes. */
const GRACE_MS = DAY_MS

/**
 * Deletes bundles and changes that no generation of the last `fleet.keepDays` days and not the newest one names, and that
 * are older than a day and than the newest generation: others may belong to a publication that has not ended.
 * A publication that was suspended, for however long, cannot name what is deleted: the number that it wants exists. Also
 * deletes the reports of mirrors that were not written again for `fleet.keepDays` days. An object is planned in one run and
 * deleted in a later one, if all that is still true. When a generation cannot be read, nothing is deleted. Throws `fleet`.
 */
export async function collectGarbage(deps: CollectDeps): Promise<Collected> {
  const { store, config, now, dryRun } = deps
  const plans = await readPlans(store)
  const newest = await findLast(store)
  const created = await createdAt(store, newest)
  // Both clocks have to say that days have passed: one that is ahead deletes nothing early.
  const since = Math.min(now(), created) - config.fleet.keepDays * DAY_MS
  const named = await readNamed(deps, newest, since)
  const before = Math.min(now() - GRACE_MS, created)
  const ends = [
    [BUNDLE_FOLDER, before],
    [CHANGE_FOLDER, before],
    [READER_FOLDER, since],
  ] as const
  const planned = new Map(
    plans
      .filter(({ plan }) => Date.parse(plan.at) <= now() - PLAN_AGE_MS)
      .flatMap(({ plan }) => plan.objects.map((one) => [one.key, one.modifiedAt] as const)),
  )
  const unneeded: Unneeded[] = []
  let kept = 0
  for (const [folder, end] of ends)
    for await (const { key, size, ...info } of store.list(folder)) {
      const modifiedAt = Math.floor(info.modifiedAt)
      if (named.has(key) || modifiedAt >= end || !isCollectable(key)) kept++
      else unneeded.push({ key, size, modifiedAt })
    }
  const isDue = ({ key, modifiedAt }: Unneeded): boolean => planned.get(key) === modifiedAt
  const deleted = unneeded.filter(isDue)
  const rest = unneeded.filter((one) => !isDue(one))
  if (dryRun) return { deleted, planned: rest, kept }
  for (const one of deleted) await deleteUnchanged(store, one)
  await replacePlans(store, plans, { at: toIso(now()), objects: rest })
  return { deleted, planned: rest, kept }
}

/** Reads which objects the generations name that were published since a time, and the newest one. Throws if one cannot be read. */
async function readNamed({ store, trust }: CollectDeps, newest: number, since: number): Promise<Set<string>> {
  const named = new Set<string>()
  let previous: string | null = null
  for (let number = newest; number > 0; number--) {
    const known = await readGeneration(store, number, trust, previous)
    if (known === null || (previous !== null && known.sha256 !== previous))
      throw refuseGeneration(
        known === null ? 'hole' : 'fork',
        `generation ${number} on ${store.url} is missing or was replaced: nothing is deleted`,
      )
    const { changes, publishedAt } = known.generation
    for (const one of bundlesOf(known.generation)) named.add(one.key)
    if (changes !== null) named.add(changes.key)
    if (Date.parse(publishedAt) < since) break
    previous = known.generation.previous
  }
  return named
}

/** Returns the number of the last generation. Throws if there is none, or if one before a listed one is missing. */
async function findLast(store: ObjectStore): Promise<number> {
  const newest = await findNewest(store, 0)
  let listed = 0
  for await (const { key } of store.list(GENERATION_FOLDER)) listed = Math.max(listed, numberInKey(key) ?? 0)
  if (newest > 0 && newest >= listed) return newest
  throw refuseGeneration(
    newest === 0 ? 'backwards' : 'hole',
    newest === 0
      ? `${store.url} has no generation: nothing is deleted`
      : `generation ${newest + 1} is missing on ${store.url}, and ${listed} exists: nothing is deleted`,
  )
}

/** Returns when a generation was created, by the store's clock, as the dates of other objects. */
async function createdAt(store: ObjectStore, generation: number): Promise<number> {
  const found = await store.head(generationKey(generation))
  if (found === null)
    throw refuseGeneration('hole', `generation ${generation} on ${store.url} is missing: nothing is deleted`)
  return Math.floor(found.modifiedAt)
}

/** Deletes an object unless it was written again since it was listed. */
async function deleteUnchanged(store: ObjectStore, { key, modifiedAt }: Unneeded): Promise<void> {
  const found: ObjectInfo | null = await store.head(key)
  if (found !== null && Math.floor(found.modifiedAt) === modifiedAt) await store.delete(key)
}

const readPlan = shape<Plan>({
  at: date,
  objects: listField(
    shape<Unneeded>({
      key: textField(/^(?:bundles|changes|readers)\/[\w.-]{1,200}$/, 'a key that can be collected'),
      size: integerField(0),
      modifiedAt: integerField(0),
    }),
    1_000_000,
  ),
})

interface StoredPlan {
  readonly key: string
  readonly plan: Plan
}

async function readPlans(store: ObjectStore): Promise<StoredPlan[]> {
  const plans: StoredPlan[] = []
  for await (const { key } of store.list(PLAN_FOLDER)) {
    const found = await readObject(store, key, PLAN_BYTES)
    if (found === null) continue
    try {
      plans.push({ key, plan: readPlan(JSON.parse(found.bytes.toString('utf8')), key) })
    } catch {
      plans.push({ key, plan: { at: toIso(0), objects: [] } }) // an invalid plan is replaced
    }
  }
  return plans
}

async function replacePlans(store: ObjectStore, old: readonly StoredPlan[], plan: Plan): Promise<void> {
  const recent = old.filter((one) => Date.parse(one.plan.at) > Date.parse(plan.at) - PLAN_AGE_MS)
  if (plan.objects.length > 0 && recent.length === 0) {
    const key = `${PLAN_FOLDER}${plan.at.replace(/[:.]/g, '-')}.json`
    if ((await store.putIfAbsent(key, Buffer.from(`${JSON.stringify(plan)}\n`))) === null)
      throw new FleetError('refused', `${key} exists on ${store.url}: run it again`)
  }
  for (const { key } of old) if (!recent.some((one) => one.key === key)) await store.delete(key)
}
