import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { FetchedBundle } from '../oci/artifacts.ts'
import { readReference } from '../oci/reference.ts'
import { createBundleProgress } from '../../../cli/progress.ts'

/** Returns a text with the names of the command line in place of those of downloaded files. */
export type NameFiles = (text: string) => string

/** Has a file that is made of another one called by that one's name from then on. */
export type CallAs = (path: string, file: string) => void

/**
 * Calls `use` with the files that a command line names; artifacts (`oci:…`) are files meanwhile, which are removed at the end.
 * Errors name what the command line names.
 */
export async function withBundleFiles<T>(
  given: readonly string[],
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  { json = false }: { readonly json?: boolean },
  use: (files: readonly string[], named: NameFiles, callAs: CallAs) => Promise<T>,
): Promise<T> {
  const fetched: FetchedBundle[] = []
  const names = new Map<string, string>()
  const named: NameFiles = (text) => [...names].reduce((all, [path, name]) => all.replaceAll(path, name), text)
  try {
    const files: string[] = []
    for (const one of given) {
      const reference = readReference(one)
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
    return await use(files, named, (path, file) => void names.set(path, named(file)))
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    throw new MirrorError(error.code, named(error.message), { cause: error })
  } finally {
    for (const { close } of fetched) close()
  }
}
