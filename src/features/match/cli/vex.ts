import { createImageVexReader, imageDigestOf, repositoriesIn } from '../../scanners/routes/image-vex.ts'
import { MirrorError } from '../../../base/errors.ts'
import { print, settings, warn } from '../../../cli/context.ts'
import { closing } from '../../../base/closing.ts'
import { createFreshness } from '../../lookup/freshness.ts'
import { type LookupOptions, openLookup, refuseLookup } from '../../lookup/open.ts'
import { idOfTag } from '../../lookup/tag-sbom.ts'

/** Options of `patchmirror vex`. */
interface VexOptions extends LookupOptions {
  name?: string
  components?: boolean
}

/**
 * `patchmirror vex IMAGE`: what counts of the mirrored VEX about one image, as an OpenVEX document. `--json` is about errors: the
 * document is JSON anyway.
 */
export async function vexCommand(image: string, options: VexOptions): Promise<number> {
  const names = repositoriesIn(options.name ?? null)
  const { config } = settings(options, false, [])
  try {
    const shortReads = openLookup(config)
    const { document, incomplete } = await closing(shortReads, async () => {
      const { reads } = shortReads
      const refusal = createFreshness(config, reads, Date.now()).use('catalog')
      if (refusal !== null) throw refusal
      const digest = isDigest(image) ? image : digestNamed({ reads }, image)
      const withComponents = options.components === true
      return createImageVexReader().read(reads, { digest, names, withComponents, now: Date.now() })
    })
    print(JSON.stringify(document, null, 1))
    if (incomplete !== null) warn(`statements about ${image} may be missing: ${incomplete}`)
    return 0
  } catch (error) {
    return refuseLookup(error, options.json === true, null)
  }
}

function isDigest(text: string): boolean {
  return /(?:^|@)(?:sha\d{3}:)?[\da-f]{64,}$/i.test(text)
}

/** Returns the digest of the image that a tag names. Throws `not_found` where it names none. */
function digestNamed(stored: Parameters<typeof idOfTag>[0], name: string): string {
  const digest = imageDigestOf(stored.reads.catalog, idOfTag(stored, name))
  if (digest !== null) return digest
  throw new MirrorError(
    'not_found',
    `not found: the service's list of tags names no digest of ${name}: give that of the image`,
  )
}
