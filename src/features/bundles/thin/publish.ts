import { rmSync, statSync } from 'node:fs'
import { MirrorError } from '../../../base/errors.ts'
import type { Reads } from '../../../store/reads.ts'
import type { Base } from '../export/delta-base.ts'
import { type TargetOptions, createTarget, digestOfFile } from '../export/output-file.ts'
import type { Blob } from '../export/rows.ts'
import { memberOf } from '../export/self-check.ts'
import { inspectBundle } from '../import/open.ts'
import { contentsOfExport } from './base.ts'
import { decodeThin } from './decode.ts'
import { createCompressor, createMemory, encodeThin } from './encode.ts'

/** Where a thin bundle is to be. */
type ThinTarget = Omit<TargetOptions, 'split'> & { readonly path: string }

/**
 * Prepares a thin bundle on a base that this mirror exported. Its whole bundle is written to `whole` first. Throws `usage` without
 * such a base.
 */
export function prepareThin(reads: Reads, base: Base | null, { path, force, staging }: ThinTarget) {
  const sequence = base?.base.sequence ?? null
  const exported = sequence === null ? null : reads.ledger.readExport(sequence)
  if (base === null || exported === null)
    throw new MirrorError(
      'usage',
      '--thin needs a state that this mirror exported, which the target mirror has now: give it by --since or --for, or export without --thin',
    )
  const exact = contentsOfExport(reads, exported)
  const remembered = createMemory()
  const contents = { ...exact, document: (path: string) => remembered(path, () => exact.document(path)) }
  return {
    whole: `${path}.whole`,
    /** Makes the thin bundle of the whole one, makes that again of it, and gives it its name. Throws as `encodeThin`. */
    async publish(drafts: readonly string[], blobs: readonly Blob[]) {
      const [draft = ''] = drafts
      const target = createTarget(path, { split: null, force, ...(staging === undefined ? {} : { staging }) })
      const byMember = new Map(blobs.map((blob) => [memberOf(blob), blob]))
      const bundle = await inspectBundle([draft])
      try {
        const compress = createCompressor()
        await encodeThin({ bundle, base: contents, digests: base.base.sources, blobs: byMember, compress }, target)
        const [thin = ''] = await target.settle()
        const again = `${thin}.again`
        decodeThin(thin, contents, again, compress)
        if ((await digestOfFile(again)) !== (await digestOfFile(draft)))
          throw new MirrorError('internal', 'the thin bundle does not become the bundle that it was made of')
        rmSync(again)
        const { size } = statSync(thin)
        return { files: await target.publish(), bytes: size }
      } catch (error) {
        await target.discard()
        throw error
      } finally {
        await bundle.close()
      }
    },
  }
}
