import type { Config } from '../../config/schema.ts'
import { canonicalPath } from '../../base/domain/path-templates.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import type { Fields } from '../../base/json/objects.ts'
import { sbomDigestsOf } from '../../documents/sboms/mirrored.ts'
import { closing } from '../../cli/store-access.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { createFreshness } from '../lookup/freshness.ts'
import { readReference } from '../bundles/oci/reference.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { type GlobalOptions, print, printJson, settings } from '../../cli/context.ts'
import { table, visibleLines } from '../../cli/output.ts'
import { UNKNOWN, openLookup, refuseLookup } from '../lookup/open.ts'
import { type Presence, checkImages } from './check.ts'
import { type CatalogImage, IMAGE_FORMATS, pinned } from './formats.ts'

const TAGS = canonicalPath(RESOURCES.find(({ name }) => name === 'tags')?.list?.path ?? '') ?? ''

/** An image of the catalog, and whether an SBOM of it is mirrored. */
interface ListedImage extends CatalogImage {
  readonly hasSbom: boolean
}

/** The images of one snapshot of the catalog. */
interface ListedImages {
  readonly snapshot: string
  readonly asOf: string
  readonly images: readonly ListedImage[]
  /** Tags of which the catalog names no digest or no repository: they are in no list. */
  readonly unnamed: readonly string[]
  /** What is known to be missing, or not known to be complete; a line each. */
  readonly doubts: readonly string[]
}

/** Reads all images of the mirrored catalog. Throws `not_ready` without one, and `stale` where the settings refuse its age. */
function listImages(config: Config, now: number): ListedImages {
  const shortReads = openLookup(config)
  return closing(shortReads, () =>
    shortReads.during(() => {
      const { reads } = shortReads
      const freshness = createFreshness(config, reads, now)
      const refusal = freshness.use('catalog')
      if (refusal !== null) throw refusal
      const [used] = freshness.used()
      const images: ListedImage[] = []
      const unnamed: string[] = []
      const list = reads.catalog.readList(TAGS)
      for (const { id, body } of list === null ? [] : reads.catalog.eachEntry(list.id)) {
        const { repository, tag, digest } = namesOfTag(
          JSON.parse(body.toString('utf8')) as Fields & Record<string, unknown>,
        )
        if (repository === null || digest === null) unnamed.push(tag ?? id)
        else images.push({ repository, tag, digest, hasSbom: sbomDigestsOf(reads, id).length > 0 })
      }
      const cut = reads.catalog.whyIncomplete(TAGS)
      const incomplete = cut === null ? [] : [`the list of tags is not known to be complete: ${cut.reason}`]
      const doubts = [...freshness.warnings(), ...incomplete]
      return { snapshot: used?.snapshot ?? '', asOf: used?.asOf ?? '', images, unnamed, doubts }
    }),
  )
}

/** Options of `patchmirror images`. */
interface ImagesOptions extends GlobalOptions {
  format?: string
  rewrite?: string
  check?: string
  json?: boolean
}

/**
 * `patchmirror images`: exits with 0 when the catalog here is complete and, with --check, the registry has all of its images; otherwise
 * with 3.
 */
export async function imagesCommand(options: ImagesOptions): Promise<number> {
  const { format = 'text', check } = options
  const write = Object.hasOwn(IMAGE_FORMATS, format) ? IMAGE_FORMATS[format] : undefined
  if (write === undefined)
    throw new MirrorError('usage', `--format takes one of: ${Object.keys(IMAGE_FORMATS).join(', ')}, not ${format}`)
  if (check !== undefined) refuseOtherPlace(check)
  const { config } = settings(options, false, [])
  let listed: ListedImages
  try {
    listed = rewritten(listImages(config, Date.now()), options.rewrite)
  } catch (error) {
    return refuseLookup(error, options.json === true, null)
  }
  const doubts = doubtsOf(listed)
  for (const line of options.json === true ? [] : doubts) process.stderr.write(`patchmirror: ${visibleLines(line)}\n`)
  if (check !== undefined) {
    const found = await checkImages(config, check, listed.images)
    return printCheck({ ...listed, doubts }, found, options.json === true) && doubts.length === 0 ? 0 : UNKNOWN
  }
  if (options.json === true) printJson({ ...listed, doubts })
  else
    for (const line of [`# catalog ${listed.snapshot}, as of ${listed.asOf}`, ...write(listed.images, listed.snapshot)])
      print(line)
  return doubts.length === 0 ? 0 : UNKNOWN
}

function refuseOtherPlace(place: string): void {
  const reference = readReference(`oci://${place.replace(/\/$/, '')}/a`)
  if (reference?.kind !== 'registry') throw new MirrorError('usage', `--check takes HOST/PREFIX, not ${place}`)
}

/** Returns the images with names that begin with TO in place of FROM. Throws `usage`. */
function rewritten(listed: ListedImages, rule: string | undefined): ListedImages {
  if (rule === undefined) return listed
  const [from = '', to, ...more] = rule.split('=')
  if (to === undefined || more.length > 0)
    throw new MirrorError('usage', `--rewrite takes FROM=TO, such as =registry.example.com/, not ${rule}`)
  const images = listed.images.map((one) => {
    if (!one.repository.startsWith(from)) return one
    return { ...one, repository: to + one.repository.slice(from.length) }
  })
  return { ...listed, images }
}

function doubtsOf({ doubts, unnamed }: ListedImages): string[] {
  if (unnamed.length === 0) return [...doubts]
  const some = unnamed.slice(0, 3).join(', ')
  return [
    ...doubts,
    `${counted(unnamed.length, 'tag')} of the catalog named without repository or digest, not listed: ${some}`,
  ]
}

/** Prints what a registry has. Returns whether it has everything. */
function printCheck(listed: ListedImages, found: ReadonlyMap<string, Presence>, isJson: boolean): boolean {
  const states = listed.images.map((image) => ({ image, presence: presenceOf(found, image) }))
  const isComplete = states.every(({ presence }) => presence.is === 'there')
  const { snapshot, asOf, unnamed, doubts } = listed
  if (isJson) printJson({ snapshot, asOf, images: states.map(stateJson), unnamed, doubts })
  else for (const line of checkLines(states, snapshot)) print(visibleLines(line))
  return isComplete
}

function checkLines(states: readonly ImageState[], snapshot: string): string[] {
  const of = (is: Presence['is']): ImageState[] => states.filter(({ presence }) => presence.is === is)
  const there = of('there')
  const missing = of('missing')
  const unknown = Map.groupBy(of('not known'), ({ presence }) => (presence.is === 'not known' ? presence.why : ''))
  const sum = [`${there.length} in the registry`, `${missing.length} missing`, `${of('not known').length} not known`]
  const bare = there.filter(({ image }) => !image.hasSbom).length
  const notJudged = `${bare} of those in the registry without an SBOM in the mirror: they are not judged`
  return [
    `catalog ${snapshot.slice(0, 12)}: ${counted(states.length, 'image')}: ${sum.join(', ')}`,
    ...(bare === 0 ? [] : [notJudged]),
    ...(missing.length === 0 ? [] : [table(['missing'], missing.map(nameCell))]),
    ...[...unknown].map(([why, of]) => `not known for ${counted(of.length, 'image')}: ${why}`),
  ]
}

interface ImageState {
  readonly image: ListedImage
  readonly presence: Presence
}

function presenceOf(found: ReadonlyMap<string, Presence>, image: ListedImage): Presence {
  return found.get(pinned(image)) ?? { is: 'not known', why: 'it was not asked for' }
}

function nameCell({ image }: ImageState): string[] {
  return [image.tag === null ? pinned(image) : `${image.repository}:${image.tag}@${image.digest}`]
}

function stateJson({ image, presence }: ImageState): object {
  return { ...image, ...presence }
}
