import { MirrorError } from '../../../base/errors.ts'
import type { FetchedBundle, ArtifactSettings } from '../oci/artifacts.ts'
import { readReference } from '../../../config/kinds/oci-reference.ts'
import { createBundleProgress } from '../../../cli/progress.ts'

/** Returns a text with the names of the command line in place of those of downloaded files. */
export type NameFiles = (text: string) => string

/** Has a file that is made of another one called by that one's name from then on. */
export type CallAs = (path: string, file: string) => void

interface FileOptions {
  readonly json?: boolean
}

/**
 * Calls `use` with the files that a command line names; artifacts (`oci:…`) are files meanwhile, which are removed at the end.
 * Errors name what the command line names.
 */
export async function withBundleFiles<T>(
  given: readonly string[],
  config: ArtifactSettings,
  options: FileOptions,
  use: (files: readonly string[], named: NameFiles, callAs: CallAs) => Promise<T>,
): Promise<T> {
  const made: FetchedBundle[] = []
  const names = new Map<string, string>()
  const named: NameFiles = (text) => [...names].reduce((all, [path, name]) => all.replaceAll(path, name), text)
  try {
    for (const one of given) {
      const file = await fileFor(one, config, options)
      made.push(file)
      if (file.path !== one) names.set(file.path, one)
    }
    return await use(
      made.map(({ path }) => path),
      named,
      (path, file) => void names.set(path, named(file)),
    )
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    throw new MirrorError(error.code, named(error.message), { cause: error })
  } finally {
    for (const { close } of made) close()
  }
}

/** Returns the file that a name of a command line stands for. */
async function fileFor(one: string, config: ArtifactSettings, { json = false }: FileOptions): Promise<FetchedBundle> {
  const reference = readReference(one)
  if (reference === null) return { path: one, close: () => undefined }
  const { fetchArtifact } = await import('../oci/artifacts.ts') // it has network code, and files need none
  const display = createBundleProgress(json)
  return fetchArtifact(reference, config, display.show).finally(() => display.finish())
}
