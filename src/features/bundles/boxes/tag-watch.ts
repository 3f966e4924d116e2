import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RegistryReference } from '../../../config/kinds/oci-reference.ts'
import type { Config } from '../../../config/schema.ts'
import { fetchArtifact } from '../oci/artifacts.ts'
import { digestOfName, openRepository } from '../oci/registry.ts'
import { OWN_FOLDERS } from './inbox-files.ts'

/** Shortest pause between two questions to the registry, milliseconds; up to a quarter more, so that mirrors do not ask at once. */
const PAUSE_MS = 60_000

/**
 * Returns what follows a tag: it puts each artifact that the tag names into the inbox's folder, named by its digest, once. The
 * folders of what is settled keep the newest file alone. Throws as the calls of a registry do; then the next call asks again.
 */
export function createTagWatch(
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  tag: RegistryReference,
  folder: string,
  elapsed = (): number => performance.now(),
): () => Promise<void> {
  let next = 0
  let last: Promise<void> = Promise.resolve()
  return () => {
    if (elapsed() < next) return last // with its error, if it had one
    next = elapsed() + PAUSE_MS * (1 + Math.random() / 4)
    last = bring(config, tag, folder)
    return last
  }
}

async function bring(
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  tag: RegistryReference,
  folder: string,
): Promise<void> {
  const repository = openRepository(config, tag, 'pull')
  const digest = await digestOfName(repository).finally(() => repository.session.close())
  const name = `${digest.slice('sha256:'.length)}.zip`
  if ([folder, ...settledIn(folder)].some((one) => existsSync(join(one, name)))) return
  const fetched = await fetchArtifact({ ...tag, name: digest }, config, () => undefined)
  for (const one of settledIn(folder)) sweep(one)
  renameSync(fetched.path, join(folder, name))
  fetched.close()
}

function settledIn(folder: string): string[] {
  return OWN_FOLDERS.map((name) => join(folder, name))
}

/** Removes what was settled before: the tag names another artifact now. */
function sweep(folder: string): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { force: true })
}
