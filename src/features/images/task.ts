import type { Config } from '../../config/schema.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { DAY_MS, toIso } from '../../base/time.ts'
import type { RegistryStatus } from '../../base/reports/transfer.ts'
import {
  type Presence,
  type RegistryNote,
  readRegistryNote,
  sumOf,
  writeRegistryNote,
} from '../../store/catalog/in-registry.ts'
import { openShortReads } from '../../store/reads.ts'
import { checkImages } from './check.ts'
import { type CatalogImage, pinned, withoutRegistry } from './formats.ts'
import { readImages } from './listed.ts'

/** What a check of a registry is made from; it is passed to a thread. */
export interface RegistryTask {
  readonly config: Pick<Config, 'upstream' | 'network'>
  readonly dataDir: string
  /** `images.registry`. */
  readonly registry: string
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
  /** Whether all images are asked for; else those that were not there within a day. */
  readonly all: boolean
}

/** What a check came to. */
export interface RegistryReport {
  readonly sum: Omit<RegistryStatus, 'checking'>
  /** Why one is not known; null: it answered for all. */
  readonly why: string | null
}

type Kept = RegistryNote['images'][string]

/** What was answered is kept at least so often during a check, milliseconds: the pages show it. */
const KEEP_MS = 10_000

/**
 * Asks the registry for images of the catalog, and keeps what it answers. Null without a catalog. Throws `config` where Docker's settings
 * cannot be read, and `storage` where the mirror's own disk fails.
 */
export async function performRegistryCheck(task: RegistryTask, now = Date.now): Promise<RegistryReport | null> {
  const { dataDir, registry, config } = task
  const catalog = readCatalog(task)
  if (catalog === null) return null
  const before = readRegistryNote(dataDir, registry)
  const known = new Map<string, Kept>()
  const due = new Map<string, CatalogImage>()
  for (const image of catalog.images) {
    const key = keyOf(image)
    const kept = before.images[key] ?? NOT_ASKED
    known.set(key, kept)
    if (task.all || !isFresh(kept, now())) due.set(key, image)
  }
  const keep = (more: Partial<RegistryNote>): RegistryNote => {
    const note = { ...before, incomplete: catalog.incomplete, ...more, images: Object.fromEntries(known) }
    writeRegistryNote(dataDir, note)
    return note
  }
  keep({})
  let next = now() + KEEP_MS
  const onAnswer = (image: CatalogImage, presence: Presence): void => {
    known.set(keyOf(image), { ...presence, at: now() })
    if (now() < next) return
    keep({})
    next = now() + KEEP_MS
  }
  const answers = await checkImages(config, registry, [...due.values()], { onAnswer })
  const unknown = [...answers.values()].filter((one) => one.is === 'not known')
  const note = keep(due.size === known.size ? checkedBy([...answers.values()], toIso(now())) : {})
  return { sum: sumOf(note), why: unknown[0]?.why ?? null }
}

/** Codes of answers of a registry, of whatever status. */
const ANSWERED: ReadonlySet<ErrorCode | null> = new Set([
  'upstream_status',
  'upstream_not_found',
  'upstream_auth',
  'upstream_shape',
  'upstream_too_large',
])

/** Returns when all images were asked for, where a registry answered each request; null again where there is none to ask for. */
function checkedBy(answers: readonly Presence[], at: string): Partial<RegistryNote> {
  const asked = answers.filter((one) => one.is !== 'not known' || one.code !== 'usage') // no registry has such a name
  if (asked.length === 0) return { checkedAt: null }
  return asked.every((one) => one.is !== 'not known' || ANSWERED.has(one.code)) ? { checkedAt: at } : {}
}

/** Names an image as it is below the registry: two of other registries may be one there. */
function keyOf(image: CatalogImage): string {
  return pinned(withoutRegistry(image))
}

const NOT_ASKED: Kept = { is: 'not known', why: 'it was not asked for yet', code: null, at: 0 }

/** Reads the images of the served catalog; null: there is none. */
function readCatalog({ dataDir, served }: RegistryTask) {
  const shortReads = openShortReads(dataDir)
  try {
    return (
      shortReads?.during(() => {
        const { reads } = shortReads
        return reads.snapshots.readSnapshot('catalog') === null ? null : readImages(reads)
      }, served) ?? null
    )
  } finally {
    shortReads?.close()
  }
}

/** Whether an image was there within a day. */
function isFresh({ is, at }: Kept, now: number): boolean {
  return is === 'there' && at <= now && now - at < DAY_MS
}
