import { readdirSync, renameSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MirrorError } from '../base/errors.ts'
import { derivedDir } from '../store/database/open.ts'
import type { OsvReader } from '../store/osv/reads.ts'
import { faultOfArchive } from './check.ts'
import { type BuiltArchive, type Meanwhile, createDraft, dropUnfinished } from './draft.ts'
import { isLost } from './lost.ts'

/**
 * Builds `all.zip` from the stored streams, members in id order: the same records give the same bytes on any mirror. The
 * file is named by its digest, so readers of the previous archive are not disturbed. Throws `proof` for a record that is
 * not `expected`.
 */
export async function buildArchive(
  store: Pick<OsvReader, 'eachContent'>,
  dir: string,
  expected: (id: string) => boolean,
  meanwhile?: Meanwhile,
): Promise<BuiltArchive> {
  const draft = createDraft(store, dir, expected)
  try {
    draft.begin('')
    draft.addStored('', null)
    draft.end()
    return await draft.finish(meanwhile)
  } finally {
    draft.close()
  }
}

/** Deletes derived archives except those in `keep`: the current one and the one that readers may still be opening. */
export function sweepArchives(dir: string, keep: readonly string[]): void {
  for (const name of archivesBut(dir, keep)) rmSync(join(dir, name), { force: true })
}

/** Beginning of the name of an archive that is being deleted. */
const DROPPED = 'dropped-'

/**
 * Does the same beside other work: the system takes tens of milliseconds to free a large file. Each gets another name first, since
 * meanwhile an archive with the same content, and so with its name, may be published. Throws the system's error.
 */
export async function dropArchives(dir: string, keep: readonly string[]): Promise<void> {
  const dropped = archivesBut(dir, keep).map((name) => {
    if (name.startsWith(DROPPED)) return join(dir, name) // a killed process left it
    const path = join(dir, DROPPED + name)
    renameSync(join(dir, name), path)
    return path
  })
  await Promise.all(dropped.map((path) => rm(path, { force: true })))
}

/** An archive, also one that is being deleted. */
const ARCHIVE = /^(?:dropped-)?osv-.*\.zip$/

function archivesBut(dir: string, keep: readonly string[]): string[] {
  return readdirSync(dir).filter((name) => ARCHIVE.test(name) && !keep.includes(name))
}

/**
 * Rebuilds the derived archive when its file is missing or truncated (power loss, a cleaned folder), or with `thorough`
 * when any of its bytes is wrong. The archive is derived from the database alone, so the rebuilt file is identical to
 * the byte. Returns whether it was rebuilt; throws `corrupt` when the stored records no longer give the published
 * archive.
 */
export async function rebuildLostArchive(store: OsvReader, dataDir: string, thorough = false): Promise<boolean> {
  const info = store.readArchive()
  const dir = derivedDir(dataDir)
  dropUnfinished(dir)
  if (info === null) return false
  const parts = store.listParts()
  const path = join(dir, info.file)
  const sound = thorough ? (await faultOfArchive(path, info, parts)) === null : !isLost(path, info.size)
  if (sound) return false
  const built = await buildArchive(store, dir, () => true)
  if (parts.length > 0 && built.sha256 === info.sha256) return true
  rmSync(join(dir, built.file), { force: true })
  throw new MirrorError(
    'corrupt',
    'the stored records do not make up the published archive any more: run "patchmirror doctor --data --repair"',
  )
}
