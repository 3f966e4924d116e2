import { setImmediate as nextTurn } from 'node:timers/promises'
import { MirrorError } from '../../../base/errors.ts'
import { namesOfText } from '../../../base/domain/image-reference.ts'
import { canonicalPath, fillPath } from '../../../base/domain/path-templates.ts'
import { RESOURCES, TAGS } from '../../../base/domain/resources.ts'
import { isNone } from '../../../store/catalog/answers.ts'
import { incompleteFields, requireWhole } from '../../../store/catalog/completeness.ts'
import type { Reads } from '../../../store/reads.ts'
import { type VexDocument, tagsBelieving } from '../../../store/catalog/vex.ts'
import { imageDocument } from '../vex/image-document.ts'
import { type AskedImage, imagesNamed, leadsTo, statementsAbout } from '../vex/image-statements.ts'
import { readListedImage, tagsOfDigest } from '../../../documents/vex/images.ts'
import { hasLink, isVexDamaged, readVexStatements } from '../../../documents/vex/read.ts'
import type { Statement } from '../../../documents/vex/statement.ts'
import { NOT_NAMED } from '../../../server/lookup/named.ts'

const VEX_PATH =
  RESOURCES.find(({ name }) => name === 'tags')?.artifacts.find(({ document }) => document === 'vex')?.path ?? ''

/** Which image is asked about. */
interface ImageQuestion {
  readonly digest: string
  /** Further repositories under which it is scanned. */
  readonly names: readonly string[]
  /** Whether the components are named as products as well; absent: they are not. */
  readonly withComponents?: boolean
  /** Unix milliseconds. */
  readonly now: number
}

/** The VEX of an image. */
interface ImageVex {
  readonly document: object
  /** Why statements may be missing; null: nothing is known to be. */
  readonly incomplete: string | null
}

/** Milliseconds after which others have their turn, and documents of which it is remembered which images they name. */
const TURN_MS = 5
const REMEMBERED = 100_000
/** Names that a client may add, and the characters of each. */
const MOST_NAMES = 20
const REPOSITORY = /^[\w.-]+(?::\d+)?(?:\/[\w.-]+)*$/

/**
 * Creates the reader. Which images a document names is remembered, because a document never changes; not where it links to SBOMs, which
 * come later. One that is not believed is read without what it rules out.
 */
export function createImageVexReader() {
  const named = new Map<string, readonly string[]>()
  return {
    /** Throws `bad_request` for what is no digest, `not_found`, and `not_ready` where VEX of the image is missing. */
    async read(
      reads: Pick<Reads, 'catalog' | 'vex'>,
      { digest: text, names, now, withComponents = false }: ImageQuestion,
    ): Promise<ImageVex> {
      const digest = digestIn(text)
      const image: AskedImage = { digest, tags: tagsOfDigest(reads.catalog, digest) }
      const own = new Set(image.tags.map(({ id }) => id))
      const leading = leadsTo(image)
      const found: (readonly [VexDocument, readonly Statement[]])[] = []
      const unread: string[] = []
      let until = performance.now() + TURN_MS
      for (const document of reads.vex.listVexDocuments()) {
        if (performance.now() > until) {
          await nextTurn()
          until = performance.now() + TURN_MS
        }
        const isOwn = (document.tags ?? []).some((tag) => own.has(tag))
        const key = `${document.digest} ${tagsBelieving(document) === null ? 'open' : 'all'}`
        const before = named.get(key)
        if (!isOwn && before !== undefined && !before.some((one) => leading.has(one))) continue
        const statements = readVexStatements(reads.vex, document)
        // One that is damaged may name the image, whosever document it is.
        if (statements === null && (isOwn || isVexDamaged(reads.vex, document))) unread.push(document.digest)
        if (statements === null) continue
        const digests = before ?? [...new Set(statements.flatMap(imagesNamed))]
        if (named.size >= REMEMBERED) named.clear()
        if (!statements.some(hasLink)) named.set(key, digests)
        if (!isOwn && !digests.some((one) => leading.has(one))) continue
        found.push([document, statements])
      }
      const all = statementsAbout(image, found, now)
      const gaps = gapsOf(reads.catalog, image, unread)
      if (all.length === 0) refuse(reads.catalog, image, found.length > 0, gaps)
      const [incomplete = null] = gaps
      return { document: imageDocument(image, all, { repositories: names, withComponents, incomplete }), incomplete }
    },
  }
}

/** Returns the digest of the image that a listed tag names, that of its index where it names one; null: it names none. */
export function imageDigestOf(catalog: Reads['catalog'], id: string): string | null {
  const images = readListedImage(catalog, id)?.images ?? []
  const [first] = [...images.filter(({ isPlatform }) => !isPlatform), ...images]
  return first?.digest ?? null
}

/** Returns the repositories in a parameter, separated by commas: without tags and digests. Throws `bad_request`. */
export function repositoriesIn(text: string | null): string[] {
  const given = (text ?? '').split(',').filter((one) => one.trim() !== '')
  if (given.length > MOST_NAMES)
    throw new MirrorError('bad_request', `name=… takes at most ${MOST_NAMES} names, not ${given.length}`)
  return given.map((one) => {
    const name = one
      .trim()
      .replace(/@.*$/s, '')
      .replace(/:[\w.-]*$/, '')
    if (REPOSITORY.test(name)) return name
    throw new MirrorError(
      'bad_request',
      `name=… takes repositories such as registry.example.com/team/app, not ${one.slice(0, 100)}`,
    )
  })
}

function digestIn(text: string): string {
  const { digest } = namesOfText(text)
  const plain = (digest ?? text).toLowerCase()
  if (/^[\da-f]{64}$/.test(plain)) return `sha256:${plain}`
  if (/^sha\d{3}:[\da-f]{64,}$/.test(plain)) return plain
  throw new MirrorError(
    'bad_request',
    `${text.slice(0, 100)} is no digest of an image: sha256: and 64 hexadecimal digits`,
  )
}

/** What a gap of a document begins with. */
const UNREAD = 'the document '

/** Said of what a sync asks for. */
const TRIED = '; every sync tries again'
/** Said of a tag of which nothing was asked for. */
const NOT_ASKED = 'nothing of this tag is mirrored: it is not in scope (catalog.scope), or no sync has asked for it yet'

/** Returns what is known to be missing of the VEX of an image. */
function gapsOf(catalog: Reads['catalog'], { tags }: AskedImage, unread: readonly string[]): string[] {
  const gaps = unread.map((digest) => `${UNREAD}${digest.slice(0, 12)}, which cannot be read, may name it`)
  for (const { id } of tags) {
    const filled = fillPath(VEX_PATH, { id })
    const path = canonicalPath(filled) ?? filled
    const missing = catalog.readMissingPath(path)
    const answer = catalog.readAnswer(path)
    if (missing !== null)
      gaps.push(`${path} could not be fetched${missing.reason === null ? '' : `: ${missing.reason}`}${TRIED}`)
    else if (answer === null)
      gaps.push(catalog.hasAnswers(`tags/${id}`) ? `${path} is not fetched yet${TRIED}` : `${path}: ${NOT_ASKED}`)
    else if (!isNone(answer) && answer.links.some(({ digest }) => catalog.readDocument(digest) === null))
      gaps.push(`a document of ${path} is not stored${TRIED}`)
  }
  const [, list] = incompleteFields(catalog.whyIncomplete(TAGS))
  return list === undefined ? gaps : [...gaps, `the list of tags may lack some: ${list}`]
}

/** Throws why there is nothing: what the mirror lacks is no evidence that there is none. */
function refuse(
  catalog: Reads['catalog'],
  { digest, tags }: AskedImage,
  isStated: boolean,
  gaps: readonly string[],
): void {
  if (tags.length === 0) {
    requireWhole(catalog.whyIncomplete(TAGS), `no mirrored tag has the digest ${digest}: ${NOT_NAMED}`)
    const damaged = gaps.find((one) => one.startsWith(UNREAD))
    if (damaged !== undefined)
      throw new MirrorError(
        'not_ready',
        `no mirrored tag has the digest ${digest}, and whether VEX names it is not known: ${damaged}`,
      )
    throw new MirrorError(
      'not_found',
      `no mirrored tag has the digest ${digest}, and no mirrored VEX document names it`,
    )
  }
  const [gap] = gaps
  if (gap !== undefined) throw new MirrorError('not_ready', `the VEX of ${digest} is not mirrored: ${gap}`)
  if (!isStated) throw new MirrorError('not_found', `the service has no VEX of ${digest}, as of the last sync`)
}
