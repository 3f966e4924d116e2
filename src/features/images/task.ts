import type { Config } from '../../config/schema.ts'
import { DAY_MS, toIso } from '../../base/time.ts'
import type { RegistryStatus } from '../../base/reports/transfer.ts'
import { type RegistryNote, readRegistryNote, sumOf, writeRegistryNote } from '../../store/catalog/in-registry.ts'
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
}

/** What a check came to. */
export interface RegistryReport {
  readonly sum: Omit<RegistryStatus, 'checking'>
  /** Why one is not known; null: it answered for all. */
  readonly why: string | null
}

type Kept = RegistryNote['images'][string]

/** What was answered is kept at least so often during a check, milliseconds: one that is ended goes on from there. */
const KEEP_MS = 10_000

/**
 * Asks the registry for the images of the catalog, and keeps what it answers: each that is missing or not known, and those that are there
 * once a day. Null without a catalog. Throws `config` where Docker's settings cannot be read, and `storage`.
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
    if (!isFresh(kept, image, now())) due.set(key, image)
  }
  const keep = (more: Partial<RegistryNote>): RegistryNote => {
    const note = { ...before, ...more, images: Object.fromEntries(known) }
    writeRegistryNote(dataDir, note)
    return note
  }
  keep({})
  let next = now() + KEEP_MS
  const answers = await checkImages(config, registry, [...due.values()], (image, presence) => {
    known.set(keyOf(image), { ...presence, at: now() })
    if (now() < next) return
    keep({})
    next = now() + KEEP_MS
  })
  const unknown = [...answers.values()].filter((one) => one.is === 'not known')
  const isAnswered = unknown.every(({ code }) => code !== null && code !== 'upstream_unreachable')
  const note = keep({ snapshot: catalog.snapshot, ...(isAnswered && { checkedAt: toIso(now()) }) })
  return { sum: sumOf(note), why: unknown[0]?.why ?? null }
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
        const snapshot = shortReads.reads.snapshots.readSnapshot('catalog')?.id
        if (snapshot === undefined) return null
        return { snapshot, images: readImages(shortReads.reads) }
      }, served) ?? null
    )
  } finally {
    shortReads?.close()
  }
}

/** Whether an image was there within a day: a little less of it for each digest, so that not all are asked for again at once. */
function isFresh({ is, at }: Kept, { digest }: CatalogImage, now: number): boolean {
  const share = parseInt(digest.slice(-4), 16) / 0xffff
  const age = now - at
  return is === 'there' && age >= 0 && age < DAY_MS * (1 - share / 4)
}
