import { readSigningKeys } from '../../bundles/format/keys.ts'
import { shownBytes } from '../../../base/disk-space.ts'
import { MirrorError } from '../../../base/errors.ts'
import { wholeNumber } from '../../../base/text.ts'
import { VERSION } from '../../../base/version.ts'
import { findNewest, readGeneration, readHistory } from '../generations/chain.ts'
import { collectGarbage } from '../generations/collect.ts'
import { type Generation, type KnownGeneration, bundlesOf } from '../generations/format/generation.ts'
import { endRollback, isRollingBack, isUnreleased, releaseRollback } from '../generations/rollback-state.ts'
import { rollBackTo } from '../generations/rollback.ts'
import { type GlobalOptions, print, printJson } from '../../../cli/context.ts'
import { table } from '../../../cli/output.ts'
import { mirrorName, withFleetStore } from './fleet-store.ts'

/** Options of the commands about generations. */
interface GenerationOptions extends GlobalOptions {
  limit?: string
  dryRun?: boolean
  json?: boolean
}

const MOST_SHOWN = 1000

/** `patchmirror fleet status --log`: the newest generations, each verified. */
export async function fleetLogCommand(options: GenerationOptions): Promise<number> {
  const limit = numberUpTo(options.limit ?? '10', '--limit', MOST_SHOWN)
  return withFleetStore(options, async ({ store, trust }) => {
    const number = await findNewest(store, 0)
    const newest = number === 0 ? null : await readGeneration(store, number, trust)
    const older = newest === null ? [] : await readHistory(store, newest, { since: 0, most: limit - 1, trust })
    const shown = newest === null ? [] : [newest, ...older]
    if (options.json === true) printJson({ generations: shown.map(describe) })
    else if (newest === null) print(`${store.url} has no generation`)
    else print(table(COLUMNS, shown.map(cellsOf)))
    return 0
  })
}

function describe({ generation, sha256 }: KnownGeneration): object {
  const { keys, mirror, name, epoch, publishedAt, activateAt, reason, counts, digest } = generation
  const { full, delta, thin = [], changes, sources } = generation
  return {
    generation: generation.generation,
    reason,
    kind: kindOf(generation),
    publishedAt,
    activateAt,
    expiresAt: generation.expiresAt,
    epoch,
    mirror,
    name: name ?? null,
    keys,
    counts,
    digest,
    sources,
    full,
    delta: delta && { key: delta.key, sha256: delta.sha256, size: delta.size },
    thin,
    changes,
    sha256,
  }
}

function kindOf({ reason, delta, thin }: Generation): string {
  if (reason !== 'publish') return reason
  if (thin !== undefined) return 'thin'
  return delta === null ? 'full' : 'delta'
}

/** Differences are of names, records and paths, to the generation before. */
const COLUMNS = ['generation', 'published', 'kind', 'names that differ', 'size', 'by']

function cellsOf({ generation }: KnownGeneration): string[] {
  const { counts, epoch, publishedAt } = generation
  const changed = counts === null ? 'everything' : `+${counts.added} -${counts.removed} ~${counts.changed}`
  const size = shownBytes(bundlesOf(generation).at(-1)?.size ?? 0)
  const number = String(generation.generation)
  const by = `${mirrorName(generation)} (epoch ${epoch})`
  return [number, publishedAt, kindOf(generation), changed, size, by]
}

/** `patchmirror fleet rollback N`: the content of generation N becomes the next generation; nothing is synced until `fleet rollback --end`. */
export async function fleetRollbackCommand(to: string | undefined, options: GenerationOptions): Promise<number> {
  if (to === undefined)
    throw new MirrorError('usage', 'name the generation ("patchmirror fleet status --log" lists them), or give --end')
  const number = numberUpTo(to, 'the generation', Number.MAX_SAFE_INTEGER)
  return withFleetStore(options, async ({ config, store, trust }) => {
    const keys = readSigningKeys(config.bundle.signingKeys)
    if (keys.length === 0)
      throw new MirrorError(
        'config',
        'bundle.signingKeys: there is no key to sign the generation with. Run this on a node that may publish',
      )
    const program = `patchmirror/${VERSION}`
    const deps = { config, store, trust, keys, program, now: Date.now }
    const { outcome, generation } = await rollBackTo(deps, number)
    if (outcome !== 'published' || generation === null)
      throw new MirrorError('fleet', 'another node published a generation meanwhile: run the same command again')
    const published = generation.generation.generation
    if (options.json === true) printJson({ to: number, ...describe(generation) })
    else
      print(
        `generation ${published} has the content of ${number}. No node syncs until "patchmirror fleet rollback --end"`,
      )
    return 0
  })
}

/** `patchmirror fleet rollback --end`: nodes sync again after a rollback. */
export async function fleetReleaseCommand(options: GenerationOptions): Promise<number> {
  return withFleetStore(options, async ({ config, store, trust }) => {
    const isGivenUp = isRollingBack(config.data.dir)
    endRollback(config.data.dir)
    const number = await findNewest(store, 0)
    const newest = number === 0 ? null : await readGeneration(store, number, trust)
    const isNeeded = newest !== null && (await isUnreleased(store, newest.generation))
    if (isNeeded) await releaseRollback(store, number)
    if (options.json === true) {
      printJson({ generation: number, released: isNeeded })
      return 0
    }
    if (isGivenUp) print('the rollback that was begun here, and is not published, is given up')
    if (isNeeded) print(`syncs run again; generation ${number} is replaced by the next one`)
    else if (number === 0) print(`${store.url} has no generation: nothing was changed`)
    else if (!isGivenUp) print(`generation ${number} is no rollback that is waiting: nothing was changed`)
    return 0
  })
}

/** `patchmirror fleet check --gc`: deletes bundles and changes that no generation needs. */
export async function fleetGcCommand(options: GenerationOptions): Promise<number> {
  return withFleetStore(options, async ({ config, store, trust }) => {
    const dryRun = options.dryRun === true
    const done = await collectGarbage({ config, store, trust, dryRun, now: Date.now })
    if (options.json === true) {
      printJson({ dryRun, ...done })
      return 0
    }
    const bytes = (objects: typeof done.deleted): string =>
      `${objects.length} (${shownBytes(objects.reduce((sum, { size }) => sum + size, 0))})`
    print(`${dryRun ? 'would delete' : 'deleted'}: ${bytes(done.deleted)}`)
    print(`a run an hour or more later deletes: ${bytes(done.planned)}`)
    print(`stay: ${done.kept}`)
    if (dryRun) for (const { key } of [...done.deleted, ...done.planned]) print(`  ${key}`)
    return 0
  })
}

function numberUpTo(text: string, name: string, most: number): number {
  const number = wholeNumber(text)
  if (number !== null && number <= most) return number
  throw new MirrorError('usage', `${name} must be a whole number from 1 to ${most}, not ${text}`)
}
