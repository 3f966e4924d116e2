import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { RegistryReference } from '../../../config/kinds/oci-reference.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { makeFolder } from '../../../base/files.ts'
import { fetchArtifact } from '../oci/artifacts.ts'
import { digestOfName, openRepository } from '../oci/registry.ts'
import { OWN_FOLDERS } from './inbox-files.ts'

/** Shortest pause between two questions to the registry, milliseconds; up to a quarter more, so that mirrors do not ask at once. */
const PAUSE_MS = 60_000

/** Bundles that wait in the folder, such as for their base: a source that never sends it would fill the disk. */
const MOST_WAITING = 30

/** What a watch needs beside its settings. */
interface WatchOptions {
  /** Milliseconds that elapsed; those of this process when not given. */
  readonly elapsed?: () => number
  /** Whether the daemon stops: a download is then given up. */
  readonly isEnding?: () => boolean
}

/**
 * Returns what follows a tag: it puts each artifact that the tag names into the inbox's folder, named by its digest, once; the one
 * that it names at first, again: keys or data may be others since it was settled. The folders of what is settled keep the newest file
 * alone, the folder itself the newest `MOST_WAITING`. Throws as the calls of a registry do, and `aborted`; then the next call asks
 * again.
 */
export function createTagWatch(
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  tag: RegistryReference,
  folder: string,
  { elapsed = () => performance.now(), isEnding = () => false }: WatchOptions = {},
): (arriving: (name: string) => void) => Promise<void> {
  let next = 0
  let last: Promise<void> = Promise.resolve()
  let isFirst = true
  return (arriving) => {
    if (elapsed() < next) return last // with its error, if it had one
    next = elapsed() + PAUSE_MS * (1 + Math.random() / 4)
    last = bring(config, tag, { folder, isFirst, arriving, isEnding }).then(() => void (isFirst = false))
    return last
  }
}

interface Place {
  readonly folder: string
  readonly isFirst: boolean
  readonly arriving: (name: string) => void
  readonly isEnding: () => boolean
}

async function bring(
  config: Pick<Config, 'data' | 'upstream' | 'network'>,
  tag: RegistryReference,
  { folder, isFirst, arriving, isEnding }: Place,
): Promise<void> {
  makeFolder(folder) // it is the mirror's own
  const repository = openRepository(config, tag, 'pull')
  const digest = await digestOfName(repository).finally(() => repository.session.close())
  const name = `${digest.slice('sha256:'.length)}.zip`
  if (existsSync(join(folder, name))) return
  const settled = settledIn(folder).find((one) => existsSync(join(one, name)))
  if (settled !== undefined) {
    if (isFirst) putBack(settled, name, folder)
    return
  }
  arriving(name)
  const fetched = await fetchArtifact({ ...tag, name: digest }, config, () => {
    if (isEnding()) throw new MirrorError('aborted', 'the daemon stops')
  })
  try {
    renameSync(fetched.path, join(folder, name))
  } finally {
    fetched.close()
  }
  for (const one of settledIn(folder)) sweep(one)
  for (const old of bundlesIn(folder).slice(0, -MOST_WAITING)) rmSync(old, { force: true })
}

/** Returns the files of bundles in a folder, the oldest first. */
function bundlesIn(folder: string): string[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.zip'))
  const dated = files.map((name) => ({ path: join(folder, name), at: statSync(join(folder, name)).mtimeMs }))
  return dated.sort((one, other) => one.at - other.at).map(({ path }) => path)
}

function settledIn(folder: string): string[] {
  return OWN_FOLDERS.map((name) => join(folder, name))
}

/** Has what was settled settled again. */
function putBack(settled: string, name: string, folder: string): void {
  rmSync(join(settled, `${name}.txt`), { force: true })
  renameSync(join(settled, name), join(folder, name))
}

/** Removes what was settled before: the tag names another artifact now. */
function sweep(folder: string): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { force: true })
}
