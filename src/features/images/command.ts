import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { type GlobalOptions, note, print, printJson, settings, warn } from '../../cli/context.ts'
import { table, visibleLines } from '../../cli/output.ts'
import { isRegistryPlace } from '../../config/kinds/oci-reference.ts'
import { UNKNOWN, refuseLookup } from '../lookup/open.ts'
import { describeRegistry } from '../../cli/mirror/status/lines.ts'
import type { Config } from '../../config/schema.ts'
import { type Presence, readRegistryNote, sumOf } from '../../store/catalog/in-registry.ts'
import { checkImages } from './check.ts'
import { IMAGE_FORMATS, type WriteImages, pinned } from './formats.ts'
import { type ListedImage, type ListedImages, listImages } from './listed.ts'

/** Options of `patchmirror images`. */
interface ImagesOptions extends GlobalOptions {
  since?: string
  format?: string
  rewrite?: string
  /** HOST/PREFIX; true: the registry of the settings. */
  check?: string | true
  json?: boolean
}

/**
 * `patchmirror images`: exits with 0 when the catalog here is complete and, with --check, the registry has all of its images; otherwise
 * with 3.
 */
export async function imagesCommand(options: ImagesOptions): Promise<number> {
  const { format = 'text' } = options
  const write = Object.hasOwn(IMAGE_FORMATS, format) ? IMAGE_FORMATS[format] : undefined
  if (write === undefined)
    throw new MirrorError('usage', `--format takes one of: ${Object.keys(IMAGE_FORMATS).join(', ')}, not ${format}`)
  const { config } = settings(options, false, [])
  const check = placeToCheck(options.check, config)
  const isJson = options.json === true
  let listed: ListedImages
  try {
    listed = rewritten(listImages(config, options.since, Date.now()), options.rewrite)
  } catch (error) {
    return refuseLookup(error, isJson, null)
  }
  for (const line of isJson ? [] : [...listed.doubts, ...listed.notes]) note(visibleLines(line))
  const isWhole = listed.doubts.length === 0
  if (check === null) {
    if (isJson) printJson(listed)
    else for (const line of [headOf(listed), ...write(listed.images, listed.snapshot)]) print(line)
    return isWhole ? 0 : UNKNOWN
  }
  const found = await checkImages(config, check, listed.images, { onWait: createWaitNote(check) })
  const states = listed.images.map((image) => ({ image, presence: presenceOf(found, image) }))
  if (isJson) printJson({ ...listed, images: states.map(stateJson) })
  else if (options.format === undefined) for (const line of checkLines(states, listed)) print(visibleLines(line))
  else printRest(states, listed, write)
  return isWhole && states.every(({ presence }) => presence.is === 'there') ? 0 : UNKNOWN
}

/** Returns what is kept of the registry of the settings, where no daemon answers. */
export function describeKept(config: Config): string[] {
  const { registry } = config.images
  if (registry === null) return []
  return describeRegistry(config, {
    registry: { ...sumOf(readRegistryNote(config.data.dir, registry)), checking: false },
  })
}

/** Writes for a tool what a registry is not known to have. */
function printRest(states: readonly ImageState[], listed: ListedImages, write: WriteImages): void {
  const rest = states.filter(({ presence }) => presence.is !== 'there')
  for (const [why, of] of unknownByReason(rest))
    warn(`of ${counted(of.length, 'image')} it is not known whether the registry has them: they are listed (${why})`)
  const images = rest.map(({ image }) => image)
  for (const line of [`${headOf(listed)}, without those in the registry`, ...write(images, listed.snapshot)])
    print(line)
}

/** Names the snapshot, in a line that the tools take as a comment. */
function headOf({ snapshot, asOf, since }: ListedImages): string {
  const head = `# catalog ${snapshot}, as of ${asOf}`
  return since === null ? head : `${head}: tags that are new or changed since catalog ${since}`
}

/** Returns what tells once that a registry wants to be asked later. */
function createWaitNote(place: string): (ms: number) => void {
  let isTold = false
  return (ms) => {
    if (!isTold) note(`${place} asks to wait, ${Math.ceil(ms / 1000)} s at first: the check goes on by itself`)
    isTold = true
  }
}

/** Returns the registry that is asked: the named one, or that of the settings; null: none is. Throws `usage`. */
function placeToCheck(asked: ImagesOptions['check'], { images }: Config): string | null {
  if (asked === undefined) return null
  if (asked === true) {
    if (images.registry !== null) return images.registry
    throw new MirrorError(
      'usage',
      '--check names no registry, and images.registry is not set: set it, or name HOST/PREFIX',
    )
  }
  if (isRegistryPlace(asked)) return asked
  throw new MirrorError('usage', `--check takes HOST or HOST/PREFIX, such as registry.example.com/mirror, not ${asked}`)
}

/** Returns the images with names that begin with TO in place of FROM. Throws `usage`. */
function rewritten(listed: ListedImages, rule: string | undefined): ListedImages {
  if (rule === undefined) return listed
  const [from = '', to, ...more] = rule.split('=')
  if (to === undefined || more.length > 0)
    throw new MirrorError('usage', `--rewrite takes FROM=TO, such as =registry.example.com/, not ${rule}`)
  const { images: all } = listed
  if (all.length > 0 && !all.some(({ repository }) => repository.startsWith(from)))
    warn(`--rewrite changes nothing: no listed name begins with ${from}`)
  const images = all.map((one) => {
    if (!one.repository.startsWith(from)) return one
    return { ...one, repository: to + one.repository.slice(from.length) }
  })
  return { ...listed, images }
}

function checkLines(states: readonly ImageState[], { snapshot, since }: ListedImages): string[] {
  const of = (is: Presence['is']): ImageState[] => states.filter(({ presence }) => presence.is === is)
  const there = of('there')
  const missing = of('missing')
  const which = since === null ? '' : ` of tags new or changed since ${since.slice(0, 12)}`
  const sum = [`${there.length} in the registry`, `${missing.length} missing`, `${of('not known').length} not known`]
  const bare = there.filter(({ image }) => !image.hasSbom).length
  const notJudged = `${bare} of those in the registry without an SBOM in the mirror: they are not judged`
  return [
    `catalog ${snapshot.slice(0, 12)}: ${counted(states.length, 'image')}${which}: ${sum.join(', ')}`,
    ...(bare === 0 ? [] : [notJudged]),
    ...(missing.length === 0 ? [] : [table(['missing'], missing.map(nameCell))]),
    ...[...unknownByReason(states)].map(([why, of]) => `not known for ${counted(of.length, 'image')}: ${why}`),
  ]
}

function unknownByReason(states: readonly ImageState[]): ReadonlyMap<string, ImageState[]> {
  const unknown = states.filter(({ presence }) => presence.is === 'not known')
  return Map.groupBy(unknown, ({ presence }) => (presence.is === 'not known' ? presence.why : ''))
}

interface ImageState {
  readonly image: ListedImage
  readonly presence: Presence
}

function presenceOf(found: ReadonlyMap<string, Presence>, image: ListedImage): Presence {
  return found.get(pinned(image)) ?? { is: 'not known', why: 'it was not asked for', code: null }
}

function nameCell({ image }: ImageState): string[] {
  return [image.tag === null ? pinned(image) : `${image.repository}:${image.tag}@${image.digest}`]
}

function stateJson({ image, presence }: ImageState): object {
  return { ...image, ...presence }
}
