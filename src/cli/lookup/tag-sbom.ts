import { MirrorError } from '../../core/errors.ts'
import { canonicalPath, fillPath } from '../../domain/path-templates.ts'
import { RESOURCES } from '../../domain/resources.ts'
import { readInputSbom } from '../../match/read.ts'
import { type InputSbom, SBOM_BOUNDS } from '../../match/sbom.ts'
import { wholeContent } from '../../store/catalog/whole-content.ts'
import type { LookupCall } from './snapshot.ts'
import { findTags } from './tag.ts'

const [{ path: SBOM_PATH } = { path: '' }] =
  RESOURCES.find(({ name }) => name === 'tags')?.artifacts.filter(
    ({ document }) => document === 'sbom',
  ) ?? []

/**
 * Reads the mirrored SBOMs of the tag that a name, digest or id names. Throws `not_found` where it names none or several,
 * `not_ready` where no SBOM of it is stored, or it cannot be read.
 */
export function sbomsOfTag(stored: LookupCall, name: string): InputSbom[] {
  const refusal = stored.use('catalog')
  if (refusal !== null) throw refusal
  const [tag, another] = findTags(stored, name)
  if (tag === undefined)
    throw new MirrorError('not_found', `not found: no mirrored tag is named ${name}`)
  if (another !== undefined)
    throw new MirrorError(
      'not_found',
      `not found: ${name} names several tags: "patchmirror show ${name}" lists them with their ids`,
    )
  const { catalog } = stored.reads
  const filled = fillPath(SBOM_PATH, { id: tag.id })
  const links = catalog.readAnswer(canonicalPath(filled) ?? filled)?.links ?? []
  if (links.length === 0)
    throw new MirrorError(
      'not_ready',
      `no SBOM of ${name} is stored here: "patchmirror show ${tag.id}" says why`,
    )
  return links.map(({ digest }) => readStored(stored, name, digest))
}

function readStored({ reads }: LookupCall, name: string, digest: string): InputSbom {
  const content = wholeContent(reads.catalog, digest, SBOM_BOUNDS.bytes)
  const what = `the SBOM ${digest.slice(0, 12)} of ${name}`
  if (typeof content === 'string')
    throw new MirrorError('not_ready', `${what} cannot be read: it is ${content}`)
  try {
    return readInputSbom(content)
  } catch (cause) {
    if (cause instanceof MirrorError)
      throw new MirrorError('not_ready', `${what}: ${cause.message}`, { cause })
    throw cause
  }
}
