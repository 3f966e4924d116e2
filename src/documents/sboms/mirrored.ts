import { MirrorError } from '../../base/errors.ts'
import { canonicalPath, fillPath } from '../../base/domain/path-templates.ts'
import { RESOURCES, TAGS } from '../../base/domain/resources.ts'
import { wholeUnpacked } from '../../store/catalog/whole-content.ts'
import type { Reads } from '../../store/reads.ts'
import { readSboms } from './read.ts'
import { type InputSbom, SBOM_BOUNDS, unreadable } from './sbom.ts'

const [{ path: SBOM_PATH } = { path: '' }] =
  RESOURCES.find(({ name }) => name === 'tags')?.artifacts.filter(({ document }) => document === 'sbom') ?? []

/** Returns the path of a tag's SBOM, as the store knows it. */
export function sbomPathOf(id: string): string {
  const filled = fillPath(SBOM_PATH, { id })
  return canonicalPath(filled) ?? filled
}

/** Returns the SHA-256 of the mirrored SBOMs of the tag with an id, hex; none where none is stored. */
export function sbomDigestsOf({ catalog }: Pick<Reads, 'catalog'>, id: string): string[] {
  return catalog.readAnswer(sbomPathOf(id))?.links.map(({ digest }) => digest) ?? []
}

/** Returns why the stored SBOM of a tag may be of an earlier image than the tag names now; null: it is not, or none is stored. */
export function whySbomOld({ catalog }: Pick<Reads, 'catalog'>, id: string): string | null {
  const path = sbomPathOf(id)
  const answer = catalog.readAnswer(path)
  if (answer === null || answer.links.length === 0) return null
  const list = catalog.readList(TAGS)
  const entry = list === null ? null : catalog.readEntry(list.id, id)
  const missing = catalog.readMissingPath(path)
  if (missing === null && (entry === null || answer.ownerSha.equals(entry.sha))) return null
  return `the SBOM was not fetched since the tag changed, and may be of an earlier image${missing?.reason ? `: ${missing.reason}` : ''}`
}

/** Creates what does the same for many tags: it reads once which of them have such an SBOM. */
export function createWhySbomOld(reads: Pick<Reads, 'catalog'>): (id: string) => string | null {
  let old: ReadonlySet<string> | null = null
  return (id) => {
    old ??= new Set(reads.catalog.listTagsWithOldSbom())
    return old.has(id) ? whySbomOld(reads, id) : null
  }
}

/** Reads a mirrored document of SBOMs, which has at least one. Throws `not_ready` where it cannot be read, with a cause where that is its content; `of`: what it is of. */
export function readMirroredSboms(
  { catalog }: Pick<Reads, 'catalog'>,
  digest: string,
  of: string,
  maxBytes: number = SBOM_BOUNDS.bytes,
): InputSbom[] {
  const content = wholeUnpacked(catalog, digest, maxBytes)
  const what = `the SBOM ${digest.slice(0, 12)} of ${of}`
  if (content === 'too large')
    throw new MirrorError('not_ready', `${what} cannot be read: it is ${content}`, { cause: unreadable(content) })
  if (typeof content === 'string') throw new MirrorError('not_ready', `${what} cannot be read: it is ${content}`)
  try {
    return readSboms(content).map((one) => ({ ...one, digest }))
  } catch (cause) {
    if (cause instanceof MirrorError) throw new MirrorError('not_ready', `${what}: ${cause.message}`, { cause })
    throw cause
  }
}
