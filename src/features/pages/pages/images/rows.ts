import { canonicalPath } from '../../../../base/domain/path-templates.ts'
import { plainRepository } from '../../../../base/domain/image-reference.ts'
import { fieldsOfItem } from '../../../../base/json/forms/item-fields.ts'
import { copiedDigests } from '../../../../base/json/forms/tag-digests.ts'
import type { Fields } from '../../../../base/json/objects.ts'
import { grouped } from '../../../lookup/answers/cells.ts'
import { describeIncomplete } from '../../../../store/catalog/completeness.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { repositoryOfImage } from '../../../lookup/reads/tag-names.ts'
import type { TagFindings } from '../../../../store/findings/reads.ts'
import { NOT_JUDGED, whyNoTags } from '../../../../store/findings/words.ts'
import { namesOfTag } from '../../../../sync/catalog/new-tags.ts'
import { changedAt } from '../../../lookup/list-answers.ts'
import type { PageCall } from '../../page.ts'
import { readTagFindings } from '../tags/log.ts'

/** Tags that are listed, at most. */
const MOST_TAGS = 50_000

/** A tag of the catalog, or an image of which no tag is stored. */
export interface ImageRow {
  /** The repository; '' where it is not named. */
  readonly image: string
  /** The tag's name and id; null: an image of which no tag is stored. */
  readonly tag: { readonly name: string; readonly id: string } | null
  readonly digest: string | null
  /** Of all images that are copied for the tag. */
  readonly digests: readonly string[]
  /** When it changed last, as the service writes it; '' where it does not say so. */
  readonly changed: string
  /** What records say about it; null: it is not judged. */
  readonly findings: TagFindings | null
}

/** The tags of the mirrored lists with their findings. */
interface ImageRows {
  readonly rows: readonly ImageRow[]
  /** Why no findings are known; null: they are. */
  readonly unknown: string | null
  /** Why tags or images may be missing; null: the lists are whole by all evidence. */
  readonly incomplete: string | null
}

/** Reads all tags with their findings; what was read is remembered as long as neither changes. */
export function readImageRows(call: PageCall): ImageRows {
  const { reads, remember } = call
  const found = findingsOf(call)
  const catalog = reads.snapshots.readSnapshot('catalog')?.id ?? ''
  const { rows, isCut } = remember(`images ${catalog} ${found.state}`, () => {
    const judged = new Map(found.tags().map((one) => [one.owner, one]))
    const tags = tagRows(reads, judged)
    const shown = tags.slice(0, MOST_TAGS)
    const known = new Set(shown.map(({ image }) => image))
    const bare = imageRows(reads).filter(({ image }) => !known.has(image))
    return { rows: [...shown, ...bare], isCut: tags.length > shown.length }
  })
  return { rows, unknown: found.unknown, incomplete: isCut ? CUT : whyIncomplete(reads) }
}

const CUT = `the first ${grouped(MOST_TAGS)} tags of the lists are looked at`

function whyIncomplete({ catalog }: PageCall['reads']): string | null {
  const found = [ALL_TAGS, ALL_IMAGES].map((path) => describeIncomplete(catalog.whyIncomplete(path)))
  return found.find((one) => one !== null) ?? null
}

/** Returns the findings of all tags, or why they are not known. */
function findingsOf(call: PageCall): { unknown: string | null; state: string; tags: () => readonly TagFindings[] } {
  const none = (unknown: string) => ({ unknown, state: unknown, tags: () => [] })
  try {
    const read = readTagFindings(call, (reads) => {
      const { instance = '', judgedAt = null, generation = '', catalog = null } = reads.readState() ?? {}
      return `${instance} ${judgedAt} ${generation} ${catalog}`
    })
    if (read === null) return none(whyNoTags(call.config) ?? NOT_JUDGED)
    return {
      unknown: null,
      state: read,
      tags: () => readTagFindings(call, (reads) => reads.listTags('', '', MOST_TAGS)) ?? [],
    }
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'stale') return none(error.message)
    throw error
  }
}

/** Reads the tags of the list of all tags and of those of images, each once; one more than are listed, where there are more. */
function tagRows(reads: PageCall['reads'], judged: ReadonlyMap<string, TagFindings>): ImageRow[] {
  const rows = new Map<string, ImageRow>()
  for (const { id: list, path } of reads.catalog.listLists()) {
    const [, repository = null] = OF_IMAGE.exec(path) ?? []
    if (path !== ALL_TAGS && repository === null) continue
    for (const { id, body } of reads.catalog.eachEntry(list)) {
      if (!rows.has(id)) rows.set(id, tagRow(id, body, { repository, findings: judged.get(id) ?? null }))
      if (rows.size > MOST_TAGS) return [...rows.values()]
    }
  }
  return [...rows.values()]
}

const ALL_TAGS = canonicalPath('/v1/tags/') ?? ''
const ALL_IMAGES = canonicalPath('/v1/images/') ?? ''
/** The list of the tags of an image. */
const OF_IMAGE = /^\/v1\/images\/(.+)\/tags$/

/** `repository`: that of the list that it is in; null: of all. */
function tagRow(id: string, body: Buffer, of: { repository: string | null; findings: TagFindings | null }): ImageRow {
  const item = JSON.parse(body.toString('utf8')) as Fields
  const { repository, tag, digest } = namesOfTag(item)
  return {
    image: plainRepository(repository ?? of.repository ?? ''),
    tag: { name: tag ?? id, id },
    digest,
    digests: copiedDigests(fieldsOfItem(item, 'tags')),
    changed: changedAt(item, 'tags'),
    findings: of.findings,
  }
}

function imageRows(reads: PageCall['reads']): ImageRow[] {
  const list = reads.catalog.readList(ALL_IMAGES)
  const items = list === null ? [] : [...reads.catalog.eachEntry(list.id)].slice(0, MOST_TAGS)
  return items.map(({ id, body }) => {
    const item = JSON.parse(body.toString('utf8')) as Fields
    const image = plainRepository(repositoryOfImage(item) ?? id)
    return { image, tag: null, digest: null, digests: [], changed: changedAt(item, 'images'), findings: null }
  })
}
