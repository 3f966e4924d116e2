import { MirrorError } from '../base/errors.ts'
import { readMirroredSboms, sbomPathOf } from '../documents/sboms/mirrored.ts'
import { writeDescribed } from '../documents/vex/described.ts'
import { type CatalogReads, imageNames, readListedImage } from '../documents/vex/images.ts'
import type { FetchedArtifact } from '../store/catalog/answer-writes.ts'
import type { Reads } from '../store/reads.ts'

/** What is read to find the tags whose images are named otherwise. */
interface RenamedInput {
  readonly store: { readonly catalog: Reads['catalog'] }
  /** The catalog as it would be published. */
  readonly catalogNow: CatalogReads
  /** Bytes of SBOMs that are read: those of others are taken for unreadable. */
  readonly maxBytes: number
}

/** By what VEX would know the images of a tag. */
export interface RenamedImages {
  /** For each SBOM what it describes, and the package URLs in it; null: the SBOMs are as they were. */
  readonly sboms: readonly NamedSbom[] | null
  /** The further names of what an SBOM describes. */
  readonly namesOf: (subjects: readonly string[]) => ReturnType<typeof imageNames>
}

interface NamedSbom {
  readonly described: readonly string[]
  readonly purls: ReadonlySet<string>
}

/**
 * Returns the tags whose SBOMs changed or of which the catalog names other images: by these VEX may newly rule out what is as it
 * was. `fetched`: the SBOMs that were fetched, as they are for each tag that the list has otherwise.
 */
export function renamedTags(input: RenamedInput, fetched: readonly FetchedArtifact[]): Map<string, RenamedImages> {
  const { store, catalogNow } = input
  const renamed = new Map<string, RenamedImages>()
  let left = input.maxBytes
  const read = (digest: string, tag: string): NamedSbom[] => {
    left -= store.catalog.readDocument(digest)?.size ?? 0
    return left < 0 ? UNREAD : sbomsIn(store, digest, tag)
  }
  for (const { path, owner, before, now } of fetched) {
    const tag = owner.slice(owner.indexOf('/') + 1)
    if (before === null || path !== sbomPathOf(tag)) continue
    const isSame = now.length === before.length && now.every((digest, at) => digest === before[at])
    if (isSame && storedImages(store.catalog, tag) === imagesIn(catalogNow, tag)) continue
    renamed.set(tag, {
      sboms: isSame ? null : now.flatMap((digest) => read(digest, tag)),
      namesOf: (subjects) => imageNames(catalogNow, subjects, { tag, isUnsure: false }),
    })
  }
  return renamed
}

function imagesIn(catalog: CatalogReads, tag: string): string {
  return JSON.stringify(readListedImage(catalog, tag))
}

/** The images of a tag before the run; null: its stored item is damaged, so they may have been others. */
function storedImages(catalog: CatalogReads, tag: string): string | null {
  try {
    return imagesIn(catalog, tag)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return null
  }
}

const UNREAD: NamedSbom[] = [{ described: [], purls: new Set() }]

function sbomsIn(store: RenamedInput['store'], digest: string, tag: string): NamedSbom[] {
  try {
    return readMirroredSboms(store, digest, tag).map((sbom) => {
      const purls = sbom.components.flatMap(({ purl }) => purl ?? [])
      return { described: writeDescribed(sbom), purls: new Set(purls) }
    })
  } catch {
    return UNREAD // what is missing there is counted as lost
  }
}
