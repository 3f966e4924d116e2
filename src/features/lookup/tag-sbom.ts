import { TAGS } from '../../base/domain/resources.ts'
import { NOT_NAMED, findTags } from '../../server/lookup/named.ts'
import { MirrorError } from '../../base/errors.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { readMirroredSbom, sbomDigestsOf, whySbomOld } from '../../documents/sboms/mirrored.ts'
import { requireWhole } from '../../store/catalog/completeness.ts'
import type { LookupCall } from './snapshot.ts'

/**
 * Reads the mirrored SBOMs of the tag that a name, digest or id names. Throws `not_found` where it names none or several,
 * `not_ready` where no SBOM of it is stored, or it cannot be read.
 */
export function sbomsOfTag(stored: Pick<LookupCall, 'reads' | 'use'>, name: string): InputSbom[] {
  const refusal = stored.use('catalog')
  if (refusal !== null) throw refusal
  const id = idOfTag(stored, name)
  const digests = sbomDigestsOf(stored.reads, id)
  if (digests.length === 0)
    throw new MirrorError('not_ready', `no SBOM of ${name} is stored here: "patchmirror show ${id}" says why`)
  const outdated = whySbomOld(stored.reads, id)
  const more = { tag: id, ...(outdated !== null && { outdated }) }
  return digests.map((digest) => ({ ...readMirroredSbom(stored.reads, digest, name), ...more }))
}

/** Returns the id of the tag that a name, digest or id names. Throws `not_found` where it names none or several. */
export function idOfTag(stored: Pick<LookupCall, 'reads'>, name: string): string {
  const [tag, another] = findTags(stored.reads.catalog, name)
  if (tag === undefined) {
    const { catalog } = stored.reads
    requireWhole(catalog.whyIncomplete(TAGS), `no mirrored tag is named ${name}: ${NOT_NAMED}`)
    throw new MirrorError(
      'not_found',
      `not found: no mirrored tag is named ${name}: "patchmirror list tags" has all of them`,
    )
  }
  if (another === undefined) return tag.id
  const message = `not found: ${name} names several tags: "patchmirror show ${name}" lists them with their ids`
  throw new MirrorError('not_found', message)
}
