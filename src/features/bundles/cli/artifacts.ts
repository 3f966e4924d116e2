import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { FetchedBundle } from '../oci/artifacts.ts'
import { readReference } from '../oci/reference.ts'
import type { KeyTrust } from '../format/keys.ts'
import { isThin } from '../thin/format.ts'
import { wholeOf } from '../thin/whole.ts'
import { createBundleProgress } from '../../../cli/progress.ts'

/** Returns a text with the names of the command line in place of those of downloaded files. */
export type NameFiles = (text: string) => string

/**
 * Calls `use` with the files that a command line names; artifacts (`oci:…`) and, with `thinTrust`, thin bundles are whole files
 * meanwhile, which are removed at the end. Errors name what the command line names.
 */
export async function withBundleFiles<T>(
  given: readonly string[],
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  { json = false, thinTrust = null }: { readonly json?: boolean; readonly thinTrust?: KeyTrust | null },
  use: (files: readonly string[], named: NameFiles) => Promise<T>,
): Promise<T> {
  const fetched: FetchedBundle[] = []
  const names = new Map<string, string>()
  const named: NameFiles = (text) => [...names].reduce((all, [path, name]) => all.replaceAll(path, name), text)
  try {
    const files: string[] = []
    for (const one of given) {
      const reference = readReference(one)
      if (reference === null && thinTrust !== null && isThin(one)) {
        const whole = wholeOf(one, config.data.dir, thinTrust)
        if (whole === null) continue
        fetched.push(whole)
        names.set(whole.path, one)
        files.push(whole.path)
        continue
      }
      if (reference === null) {
        files.push(one)
        continue
      }
      const { fetchArtifact } = await import('../oci/artifacts.ts') // it has network code, and files need none
      const display = createBundleProgress(json)
      const bundle = await fetchArtifact(reference, config, display.show).finally(() => display.finish())
      fetched.push(bundle)
      names.set(bundle.path, one)
      files.push(bundle.path)
    }
    return await use(files, named)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    throw new MirrorError(error.code, named(error.message), { cause: error })
  } finally {
    for (const { close } of fetched) close()
  }
}
