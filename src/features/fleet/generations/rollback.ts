import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { KeyTrust, SigningKey } from '../../bundles/format/keys.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { readGeneration } from './chain.ts'
import { chooseBundles } from './follow/bundles.ts'
import { type Follower, createFollower } from './follow/follow.ts'
import { createImporter } from './follow/importer.ts'
import { type LogPart, readLogPart } from './follow/log-part.ts'
import { type Generation, type KnownGeneration, bundlesOf, sourcesOf } from './format/generation.ts'
import { refuseGeneration, whyGenerationRefused } from './format/refusals.ts'
import { beginRollback, endRollback } from './rollback-state.ts'
import { positionOf } from './position.ts'
import { type PublishResult, publishGeneration } from './publish/publish.ts'
import { isStored } from './uploads.ts'

/** What a rollback needs. */
interface RollbackDeps {
  readonly store: ObjectStore
  readonly config: Pick<Config, 'bundle' | 'catalog' | 'data' | 'fleet'>
  readonly keys: readonly SigningKey[]
  readonly trust: KeyTrust
  readonly program: string
  readonly now: () => number
}

/**
 * Sets this data folder to the content of an older generation and publishes that as the next one, with the reason
 * `rollback`. Nodes sync nothing until it is released. After a crash the same call goes on. Throws `usage` for a
 * generation to which nothing can go back, `fleet`, `locked`, and as an import and an export.
 */
export async function rollBackTo(deps: RollbackDeps, to: number): Promise<PublishResult> {
  const { store, config, trust, now } = deps
  const dataDir = config.data.dir
  const waitUntil = (): Promise<void> => Promise.resolve()
  const follower = createFollower({ store, config, trust, now, waitUntil })
  const { newest: last, isCurrent, refusal } = await follower.look()
  if (refusal !== null) throw refuseGeneration(refusal.reason, refusal.message)
  const number = last?.generation.generation ?? 0
  const target = to < number ? await readGeneration(store, to, trust) : null
  if (last === null || target === null)
    throw new MirrorError(
      'not_found',
      `${to} is not an older generation of ${store.url}: the newest is ${number} ("patchmirror fleet status --log" lists them)`,
    )
  await refuseUnavailable(store, target.generation, last.generation)
  beginRollback(dataDir, to)
  await applyOlder(deps, target, last, isCurrent ? null : await takeLog(deps, follower, last))
  const { epoch } = last.generation
  const result = await publishGeneration({ ...deps, dataDir, epoch, reason: 'rollback', now })
  if (result.outcome === 'published') endRollback(dataDir)
  return result
}

/**
 * Stores the newest generation: what is published next continues its change log. Where it has a thin bundle that cannot be used here, only
 * that log is returned, since no other mirror may be left to publish a whole one.
 */
async function takeLog(
  { store, config, trust, now }: RollbackDeps,
  follower: Follower,
  last: KnownGeneration,
): Promise<LogPart | null> {
  try {
    await follower.commit(await follower.prepare(last), { atOnce: true })
    return null
  } catch (error) {
    if (whyGenerationRefused(error) !== 'thin') throw error
    return readLogPart(store, null, [], last, { trust, now: now(), days: config.fleet.keepDays })
  }
}

async function refuseUnavailable(store: ObjectStore, target: Generation, last: Generation): Promise<void> {
  const names = (sources: Generation['sources']): string =>
    sourcesOf(sources)
      .map(([name]) => name)
      .join(', ')
  if (names(target.sources) !== names(last.sources))
    throw new MirrorError(
      'usage',
      `generation ${target.generation} has ${names(target.sources)}, and the newest ${names(last.sources)}: a rollback ` +
        'cannot add or remove a source',
    )
  for (const one of bundlesOf(target))
    if (!(await isStored(store, one)))
      throw new MirrorError(
        'usage',
        `the bundle ${one.key} of generation ${target.generation} is not on ${store.url} with its ${one.size} bytes: it was ` +
          'collected after fleet.keepDays, or lost. Restore it, or go back to another generation',
      )
}

/** Applies an older generation to the data folder, which stays recorded as following the newest; `log`: of that, where it is not stored. */
async function applyOlder(
  { store, config, trust, now }: RollbackDeps,
  target: KnownGeneration,
  last: KnownGeneration,
  log: LogPart | null,
): Promise<void> {
  const dataDir = config.data.dir
  const importer = createImporter({ dataDir, config, trust, now })
  const chosen = chooseBundles(importer.readDigests(), target.generation)
  const bundles = await importer.download(store, chosen)
  await importer.stage(bundles)
  await importer.apply(bundles, {
    position: positionOf(last),
    rollback: true,
    goesBack: true,
    log,
    beforeCommit: () => Promise.resolve(),
  })
  for (const { path } of bundles) importer.discard(path)
}
