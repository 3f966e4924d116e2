import { RESOURCES, TAGS } from '../../base/domain/resources.ts'
import { copiedDigests, digestsInTag } from '../../base/json/forms/tag-digests.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Fields } from '../../base/json/objects.ts'
import { requestedPath } from '../../server/catalog/not-found.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { counted } from '../../base/text.ts'
import { closing } from '../../base/closing.ts'
import type { Config } from '../../config/schema.ts'
import { sbomDigestsOf } from '../../documents/sboms/mirrored.ts'
import type { Reads } from '../../store/reads.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { createFreshness } from '../lookup/freshness.ts'
import { openLookup } from '../lookup/open.ts'
import { sincePlace } from '../lookup/since.ts'
import type { CatalogImage } from './formats.ts'

const ITEM = RESOURCES.find(({ name }) => name === 'tags')?.item ?? ''
const NAMELESS = 'without repository or digest'

/** An image of the catalog, and whether an SBOM of it is mirrored. */
export interface ListedImage extends CatalogImage {
  readonly hasSbom: boolean
}

/** What the tags of a catalog come to. */
interface Tags {
  readonly images: ListedImage[]
  /** Tags of which the catalog names no digest or no repository: they are in no list. */
  readonly unnamed: string[]
  /** Listed tags of which it is not known whether they changed: nothing but their entry in the list is mirrored. */
  readonly untracked: string[]
}

/** Which tags are wanted: those that are new or changed, or all, and why. */
interface Wanted {
  readonly changed: ChangedTags | null
  readonly notes: readonly string[]
}

/** The images of one snapshot of the catalog. */
export interface ListedImages extends Readonly<Tags> {
  readonly snapshot: string
  readonly asOf: string
  /** The snapshot since which the tags of these images are new or changed; null: all are listed. */
  readonly since: string | null
  /** What is known to be missing, or not known to be complete; a line each. */
  readonly doubts: readonly string[]
  /** Why more is listed than was asked for; a line each. */
  readonly notes: readonly string[]
}

/**
 * Reads the images of the mirrored catalog: all, or those of the tags that are new or changed. Throws `not_ready` without a
 * catalog, `stale` where the settings refuse its age, and as `changedSince`. `now` in Unix milliseconds.
 */
export function listImages(config: Config, since: string | undefined, now: number): ListedImages {
  const shortReads = openLookup(config)
  return closing(shortReads, () =>
    shortReads.during(() => {
      const { reads } = shortReads
      const freshness = createFreshness(config, reads, now)
      const refusal = freshness.use('catalog')
      if (refusal !== null) throw refusal
      const [used] = freshness.used()
      const { changed, notes } = wantedSince(reads, since, now)
      const tags = readTags(reads, changed)
      const { snapshot = '', asOf = '' } = used ?? {}
      const doubts = [...freshness.warnings(), ...doubtsOf(reads, tags)]
      const listed = { snapshot, asOf, since: changed?.snapshot ?? null, ...tags, doubts }
      return { ...listed, notes: [...notes, ...untrackedNotes(tags)] }
    }),
  )
}

/** Reads all images of the mirrored catalog, without a judgement of its age; and why they may not be all, without names of tags. */
export function readImages(reads: Reads): { images: readonly ListedImage[]; incomplete: string | null } {
  const { images, unnamed } = readTags(reads, null)
  const nameless = unnamed.length === 0 ? null : `${counted(unnamed.length, 'tag')} named ${NAMELESS}`
  return { images, incomplete: reads.catalog.whyIncomplete(TAGS)?.reason ?? nameless }
}

function wantedSince(reads: Reads, since: string | undefined, now: number): Wanted {
  if (since === undefined) return { changed: null, notes: [] }
  const changed = changedSince(reads, since, now)
  if (changed !== null) return { changed, notes: [] }
  return { changed, notes: [`the catalog here is younger than --since ${since}: all of it is listed`] }
}

function untrackedNotes({ untracked }: Tags): string[] {
  if (untracked.length === 0) return []
  const what = counted(untracked.length, 'listed tag')
  return [
    `${what} may not have changed: nothing but the entry in the list is mirrored ("patchmirror show IMAGE:TAG" says why)`,
  ]
}

/** Which tags are not as they were in an earlier snapshot of the catalog. */
interface ChangedTags {
  /** The earlier snapshot, hex. */
  readonly snapshot: string
  /** Whether the details of a tag are others than they were, or new. */
  hasChanged(id: string): boolean
}

/**
 * Reads the log of changes. Null where nothing of the catalog was stored then: all of it is new. Throws as `sincePlace`, and
 * `not_ready` where the log does not name what changed.
 */
function changedSince(reads: Reads, since: string, now: number): ChangedTags | null {
  const place = sincePlace(reads, 'catalog', since, now, 'list all of it, without --since')
  if (place.firstStored !== null) return null
  const span = { ...place, until: reads.changes.readLatestLogged('catalog')?.id ?? place.after }
  const names = reads.changes.countNames(span)
  if (names === null)
    throw new MirrorError(
      'not_ready',
      `what changed in the catalog since ${since} is not logged by name: list all of it, without --since`,
    )
  const changed = new Set(reads.changes.listChanged(span, '', names).map(({ name }) => name))
  return { snapshot: place.snapshot, hasChanged: (id) => changed.has(requestedPath(ITEM, { id })) }
}

function readTags(reads: Reads, changed: ChangedTags | null): Tags {
  const tags: Tags = { images: [], unnamed: [], untracked: [] }
  const list = reads.catalog.readList(TAGS)
  for (const { id, body } of list === null ? [] : reads.catalog.eachEntry(list.id)) {
    const { repository, tag, listed, detailed } = readTag(reads, id, JSON.parse(body.toString('utf8')) as Fields)
    const isMoved = detailed !== null && listed.some((digest) => !detailed.all.has(digest))
    const digests = isMoved ? [...new Set([...listed, ...detailed.copied])] : listed
    if (repository === null || digests.length === 0) {
      tags.unnamed.push(tag ?? id)
      continue
    }
    if (changed !== null && detailed === null) tags.untracked.push(tag ?? id)
    if (changed !== null && detailed !== null && !isMoved && !changed.hasChanged(id)) continue
    const hasSbom = sbomDigestsOf(reads, id).length > 0
    tags.images.push(...digests.map((digest) => ({ repository, tag, digest, hasSbom })))
  }
  return tags
}

/** The names of a tag; its digests by its entry in the list, and by its details: it may have moved between the two requests. */
function readTag(reads: Reads, id: string, entry: Fields) {
  const { repository, tag } = namesOfTag(entry)
  return { repository, tag, listed: copiedDigests(fieldsOfItem(entry, 'tags')), detailed: digestsInDetails(reads, id) }
}

/** Returns the digests that the details of a tag name, and those of them to copy; null: they name none, or cannot be read. */
function digestsInDetails(reads: Reads, id: string): { all: Set<string>; copied: string[] } | null {
  const { body = null, size = 0 } = reads.catalog.readAnswer(requestedPath(ITEM, { id })) ?? {}
  if (body === null) return null
  try {
    const item = fieldsOfItem(JSON.parse(contentOf(body, size).toString('utf8')) as Fields, 'tags')
    const all = new Set(digestsInTag(item).map(({ digest }) => digest))
    return all.size === 0 ? null : { all, copied: copiedDigests(item) }
  } catch {
    return null // damaged: a check of the data names it
  }
}

function doubtsOf(reads: Reads, { unnamed }: Tags): string[] {
  const cut = reads.catalog.whyIncomplete(TAGS)
  const incomplete = cut === null ? [] : [`the list of tags is not known to be complete: ${cut.reason}`]
  if (unnamed.length === 0) return incomplete
  const some = unnamed.slice(0, 3).join(', ')
  const what = counted(unnamed.length, 'tag')
  return [...incomplete, `${what} of the catalog named ${NAMELESS}, not listed: ${some}`]
}
