import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { sha256Hex } from '../../../../base/digest.ts'
import { DAY_MS, toIso } from '../../../../base/time.ts'
import type { Config } from '../../../../config/schema.ts'
import { SOURCES } from '../../../../base/domain/sources.ts'
import type { KeyTrust, SigningKey } from '../../../bundles/format/keys.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { countChanges, packChangeRows } from '../format/change-rows.ts'
import {
  type ChainLink,
  confirmLink,
  findNewest,
  linkOf,
  readGeneration,
  readNext,
  refuseHole,
  writeHint,
} from '../chain.ts'
import { sealGeneration } from '../format/envelope.ts'
import { type Exporter, type OwnState, createExporter } from './exporter.ts'
import { type ExportedBundles, exportBundles } from './export-bundles.ts'
import {
  AHEAD_MS,
  GENERATION_FORMAT,
  type Generation,
  type KnownGeneration,
  type NamedObject,
} from '../format/generation.ts'
import { changesKey, generationKey } from '../format/object-names.ts'
import { refuseGeneration } from '../format/refusals.ts'
import { readFleetId } from '../format/fleet-id.ts'
import { readPosition } from '../position.ts'
import { isUnreleased } from '../rollback-state.ts'
import { storeDecided, storeOnce } from '../uploads.ts'
import { chooseBundles } from '../follow/bundles.ts'
import { delayOf } from '../../look/notify.ts'
import type { Takeover } from '../../look/message.ts'
import { digestsOf } from '../../../bundles/format/manifest.ts'

/** What a publication needs. */
export interface PublishDeps {
  readonly store: ObjectStore
  readonly dataDir: string
  readonly config: Pick<Config, 'bundle' | 'catalog' | 'fleet'>
  readonly keys: readonly SigningKey[]
  /** Also trusts `keys`. */
  readonly trust: KeyTrust
  /** The epoch of the lease. */
  readonly epoch: number
  /** Name and version of this program. */
  readonly program: string
  readonly now: () => number
  /** Given: the data folder was set to the content of an older generation. */
  readonly reason?: 'rollback'
  /** Notifies all other mirrors of the next generation; returns how they took over the last ones, null: not all were notified. */
  readonly notify?: (generation: number) => Promise<readonly Takeover[] | null>
  /** As for `exportBundles`. */
  readonly canTakeThin?: () => Promise<boolean>
  /** Reports whether a mirror could not begin with the newest generation, as far as a look at that is due. */
  readonly isUnusable?: (generation: Generation) => Promise<boolean>
  /** Another source of bundles than the data folder. */
  readonly exporter?: Exporter
}

/** The result of a publication. */
export interface PublishResult {
  /**
   * `unchanged`: the newest generation has this content already, or `isPaused`. `fenced`: the newest
   * generation is not one on which the stored data builds, or has a later epoch: follow it first.
   */
  readonly outcome: 'published' | 'unchanged' | 'fenced'
  /** The newest generation; null: there is none. */
  readonly generation: KnownGeneration | null
  /** Whether a rollback was begun or not released: nothing is to be synced, and nothing is published. */
  readonly isPaused: boolean
}

/**
 * Publishes the stored data as the next generation, if it differs from the newest one, or is confirmed at a later date, or a mirror could
 * not begin with that one.
 * The only effect that counts is the creation of `gen/<N>.json`: at most one publisher succeeds. A crash before leaves
 * objects that nothing names. Throws `fleet`, and as `exportBundle`.
 */
export async function publishGeneration(deps: PublishDeps): Promise<PublishResult> {
  const exporter = deps.exporter ?? createExporter(deps)
  const newest = await readNewest(deps, exporter)
  const fenced = { outcome: 'fenced', generation: newest?.known ?? null, isPaused: false } as const
  const state = exporter.readState()
  if (state === null) return { ...fenced, outcome: 'unchanged' }
  if (newest !== null) {
    const { generation } = newest.known
    if (generation.epoch > deps.epoch) return fenced
    if (!newest.isOwn && (generation.mirror !== state.mirror || !exporter.knows(generation.sources))) return fenced
  }
  const before = newest?.known ?? null
  if (await isPaused(deps, exporter, before)) return { ...fenced, outcome: 'unchanged', isPaused: true }
  const reason = deps.reason ?? (await reasonToPublish(deps, before?.generation ?? null, state))
  if (reason === null) {
    if (newest?.isOwn === true) await rememberBase(exporter, newest.known.generation)
    return { ...fenced, outcome: 'unchanged' }
  }
  const counts = countsSince(exporter, before, state)
  const bundles = await exportBundles({ ...deps, exporter, before, reason, counts })
  try {
    return await commit(deps, exporter, before, { ...bundles, reason, state })
  } finally {
    for (const file of bundles.files) exporter.discard(file)
  }
}

/** Counts the names in which what is stored differs from a generation; null: everything may. */
function countsSince(
  exporter: Exporter,
  before: KnownGeneration | null,
  { snapshots }: OwnState,
): Generation['counts'] {
  const last = before?.generation
  if (last === undefined || SOURCES.some((source) => source in last.sources !== source in snapshots)) return null
  const ids = Object.entries(snapshots).map(([source, snapshot]) => [source, { snapshot }] as const)
  return countChanges(exporter.readRows(last.log, Object.fromEntries(ids)))
}

/** Reports whether a rollback was begun, or was not released. */
async function isPaused(
  { store, reason }: PublishDeps,
  exporter: Exporter,
  newest: KnownGeneration | null,
): Promise<boolean> {
  if (reason === 'rollback') return false
  if (exporter.isRollingBack()) return true
  return newest !== null && (await isUnreleased(store, newest.generation))
}

/**
 * Remembers the newest generation, which is what is stored, as a base of deltas: a new leader did not export it, and its
 * followers continue from there.
 */
async function rememberBase(exporter: Exporter, newest: Generation): Promise<void> {
  if (exporter.findBase(newest.digest) !== null) return
  const full = exporter.findBase(newest.full.digest)
  await exporter.remember(full === null ? [] : [full])
}

/** The newest generation; `isOwn`: this folder published or applied exactly it. */
interface Newest {
  readonly known: KnownGeneration
  readonly isOwn: boolean
}

/** Reads what is built on from the store, also where it is known: the store may have lost it since. */
async function readNewest({ store, trust }: PublishDeps, exporter: Exporter): Promise<Newest | null> {
  const position = readPosition(exporter, trust)
  const newest = await findNewest(store, position?.generation ?? 0)
  if (newest === 0) return null
  const known =
    position === null ? await readFirst(store, newest, trust) : await readUpTo(store, position, newest, trust)
  if (!isPublishedHere(exporter, known)) await refuseHole(store, newest)
  return { known, isOwn: newest === position?.generation }
}

function isPublishedHere(exporter: Exporter, { sha256 }: KnownGeneration): boolean {
  const object = exporter.readPublished()
  return object !== null && sha256Hex(object) === sha256
}

async function readFirst(store: ObjectStore, newest: number, trust: KeyTrust): Promise<KnownGeneration> {
  const found = await readGeneration(store, newest, trust)
  if (found !== null) return found
  throw refuseGeneration('backwards', `generation ${newest} on ${store.url} was deleted while it was read`)
}

/** Reads a generation over all those behind `from`, each verified. */
async function readUpTo(store: ObjectStore, from: ChainLink, to: number, trust: KeyTrust): Promise<KnownGeneration> {
  if (from.generation === to) return confirmLink(store, from, trust)
  let known = await readNext(store, from, to, trust)
  while (known.generation.generation < to) known = await readNext(store, linkOf(known), to, trust)
  return known
}

/** Shortest age of the newest generation before its content alone is published again, milliseconds. */
const DATE_MS = 10 * 60_000

async function reasonToPublish(
  { isUnusable, config, now }: PublishDeps,
  newest: Generation | null,
  { asOf, withheldAt, snapshots }: OwnState,
): Promise<'publish' | 'date' | null> {
  if (newest === null) return 'publish'
  const differs = SOURCES.some((source) => newest.sources[source]?.snapshot !== snapshots[source])
  if (differs) return 'publish'
  if (Date.parse(newest.publishedAt) > now() + AHEAD_MS) return 'date' // by a clock that was ahead: others refuse it
  const isWithheldSince = withheldAt > Date.parse(newest.publishedAt) && withheldAt <= now()
  if (isWithheldSince) return 'date' // its bundle says so
  const due = Math.max(DATE_MS, config.fleet.maxLagSeconds * 500)
  const confirmed = SOURCES.some(
    (source) => (asOf[source] ?? 0) - Date.parse(newest.sources[source]?.asOf ?? '') >= due,
  )
  if (confirmed) return 'date'
  // A store that loses what was just written is not filled without end.
  const isDue = now() - Date.parse(newest.publishedAt) >= DATE_MS
  return isDue && (await isUnusable?.(newest)) === true ? 'date' : null
}

async function commit(
  deps: PublishDeps,
  exporter: Exporter,
  before: KnownGeneration | null,
  bundles: ExportedBundles & Pick<Generation, 'reason'> & { readonly state: OwnState },
): Promise<PublishResult> {
  const { store, config, keys, epoch, now } = deps
  const { reason, state } = bundles
  const fleet = before?.generation.fleet ?? (await readFleetId(store, randomBytes(16)))
  const begun = performance.now()
  for (const { key, body } of bundles.files) await storeOnce(store, key, body)
  const storedMs = performance.now() - begun
  const number = (before?.generation.generation ?? 0) + 1
  const last = before?.generation.log ?? 0
  const rows = exporter.readRows(last, bundles.sources)
  const changes = rows.length === 0 ? null : await storeRows(store, number, rows)
  // Without rows the log does not say what changed.
  const counts = rows.length === 0 && reason !== 'date' ? null : countChanges(rows)
  // Where everything may have changed, earlier takeovers say nothing.
  const took = before === null || counts === null ? null : ((await deps.notify?.(number)) ?? null)
  const publishedAt = now()
  const delay = before === null ? 0 : delayAfter(before.generation, bundles, { took, storedMs, publishedAt, config })
  const sealed = sealGeneration(
    {
      format: GENERATION_FORMAT,
      fleet,
      generation: number,
      epoch,
      reason,
      previous: before?.sha256 ?? null,
      mirror: bundles.mirror,
      digest: bundles.digest,
      name: config.fleet.ownName ?? hostname(),
      sources: bundles.sources,
      full: bundles.full,
      delta: bundles.delta,
      ...(bundles.thin.length > 0 && { thin: [...bundles.thin] }),
      contentDigest: isExported(state, bundles.sources) ? state.contentDigest : null,
      changes,
      log: rows.at(-1)?.id ?? last,
      counts,
      publishedAt: toIso(publishedAt),
      activateAt: toIso(publishedAt + delay),
      expiresAt: expiry(config, publishedAt),
    },
    keys,
  )
  if (!(await storeDecided(store, generationKey(number), sealed.bytes)))
    return {
      outcome: 'fenced',
      generation: await readGeneration(store, number, deps.trust),
      isPaused: false,
    }
  exporter.recordPublished(sealed.bytes)
  await writeHint(store, linkOf(sealed))
  return { outcome: 'published', generation: sealed, isPaused: reason === 'rollback' }
}

/** Returns how long after its publication a generation is activated, milliseconds; never before the one before it. */
function delayAfter(
  before: Generation,
  bundles: Pick<ExportedBundles, 'sources' | 'full' | 'delta' | 'thin' | 'digest'>,
  {
    took,
    storedMs,
    publishedAt,
    config,
  }: Pick<PublishDeps, 'config'> & {
    readonly took: readonly Takeover[] | null
    readonly storedMs: number
    readonly publishedAt: number
  },
): number {
  const chosen = chooseBundles(digestsOf(before.sources), bundles)
  const bytes = chosen.reduce((sum, { size }) => sum + size, 0)
  const longest = 2 * config.fleet.pollSeconds * 1000
  const earliest = Math.min(longest, Date.parse(before.activateAt) - publishedAt)
  return Math.max(earliest, delayOf({ took, bytes, storedMs, longest }))
}

/** Whether what was exported is the state that was read before: a sync may have committed meanwhile. */
function isExported({ snapshots }: OwnState, sources: Generation['sources']): boolean {
  return SOURCES.every((source) => sources[source]?.snapshot === snapshots[source])
}

function expiry({ bundle }: Pick<Config, 'bundle'>, publishedAt: number): string | null {
  return bundle.expireDays === 0 ? null : toIso(publishedAt + bundle.expireDays * DAY_MS)
}

async function storeRows(
  store: ObjectStore,
  number: number,
  rows: Parameters<typeof packChangeRows>[0],
): Promise<NamedObject> {
  const { bytes, sha256, size } = await packChangeRows(rows)
  const key = changesKey(number, sha256)
  await storeOnce(store, key, bytes)
  return { key, sha256, size }
}
