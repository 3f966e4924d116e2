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

/** What the files of a command line need to become files on this disk. */
type Settings = Pick<Config, 'data' | 'upstream' | 'network'>

/** `thinTrust`: whose thin bundles are made whole; null: they stay as they are. */
interface FileOptions {
  readonly json?: boolean
  readonly thinTrust?: KeyTrust | null
}

/**
 * Calls `use` with the files that a command line names; artifacts (`oci:…`) and, with `thinTrust`, thin bundles are whole files
 * meanwhile, which are removed at the end. Errors name what the command line names.
 */
export async function withBundleFiles<T>(
  given: readonly string[],
  config: Settings,
  options: FileOptions,
  use: (files: readonly string[], named: NameFiles) => Promise<T>,
): Promise<T> {
  const made: FetchedBundle[] = []
  const names = new Map<string, string>()
  const named: NameFiles = (text) => [...names].reduce((all, [path, name]) => all.replaceAll(path, name), text)
  try {
    for (const one of given) {
      const file = await fileFor(one, config, options)
      if (file === null) continue
      made.push(file)
      if (file.path !== one) names.set(file.path, one)
    }
    return await use(
      made.map(({ path }) => path),
      named,
    )
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    throw new MirrorError(error.code, named(error.message), { cause: error })
  } finally {
    for (const { close } of made) close()
  }
}

/** Returns the file that a name of a command line stands for; null: a thin bundle whose state is stored already. */
async function fileFor(one: string, config: Settings, options: FileOptions): Promise<FetchedBundle | null> {
  const { json = false, thinTrust = null } = options
  const reference = readReference(one)
  if (reference !== null) {
    const { fetchArtifact } = await import('../oci/artifacts.ts') // it has network code, and files need none
    const display = createBundleProgress(json)
    return fetchArtifact(reference, config, display.show).finally(() => display.finish())
  }
  if (thinTrust !== null && isThin(one)) return wholeOf(one, config.data.dir, thinTrust)
  return { path: one, close: () => undefined }
}
