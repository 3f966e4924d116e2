import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode, whyUnreadable } from '../../base/errors.ts'
import { PRIVATE_FILE, writeAll } from '../../base/files.ts'
import { counted } from '../../base/text.ts'
import { DATABASES } from '../../store/database/open.ts'
import { isKnown, whyUnknown } from '../../store/database/schema/schema.ts'
import { type ArchiveFile, openArchive } from '../../archive/zip/reader.ts'
import {
  type BackupFile,
  type BackupManifest,
  MANIFEST,
  PIECE_BYTES,
  notABackup,
  parseBackupManifest,
  pieceName,
} from './format.ts'

/** Bytes of all members' names and positions: enough for databases of a terabyte. */
const MAX_DIRECTORY = 64 * 2 ** 20

/** Opens a backup. Throws `corrupt` for any other file, `schema` for one of a newer program, `usage` when there is none. */
export async function openBackup(path: string) {
  const fail = (why: string, cause?: unknown): MirrorError => notABackup(path, why, cause)
  const limits = { maxMemberBytes: PIECE_BYTES, maxDirectoryBytes: MAX_DIRECTORY }
  const archive = await openArchive(path, limits).catch((error: unknown) => {
    if (error instanceof MirrorError) throw fail(`it is no archive, or a damaged one (${error.message})`, error)
    if (systemCode(error) === undefined) throw error
    throw new MirrorError('usage', `${path} cannot be read: ${whyUnreadable(error)}`)
  })
  try {
    const manifest = parseBackupManifest(await readManifest(archive, fail), fail)
    refuseOtherSchema(manifest, path)
    checkMembers(archive, manifest, fail)
    const extract = (folder: string | null): Promise<void> => extractFiles(archive, manifest, folder, fail)
    return {
      manifest,
      /** Reads and verifies every byte; writes the files into a folder, synced, unless it is null. Throws `corrupt`. */
      extract,
      close: (): Promise<void> => archive.close(),
    }
  } catch (error) {
    await archive.close()
    throw error
  }
}

type Fail = (why: string, cause?: unknown) => MirrorError

async function readManifest(archive: ArchiveFile, fail: Fail): Promise<string> {
  const found: string[] = []
  await archive.readMembers(
    ({ name }) => name === MANIFEST,
    (_, member) => {
      if ('refused' in member) throw fail(`its ${MANIFEST} is damaged: ${member.refused}`)
      found.push(member.content.toString('utf8'))
    },
  )
  const [text] = found
  if (text === undefined || found.length > 1) throw fail('it is not a backup of Patchmirror')
  return text
}

function refuseOtherSchema({ files, program }: BackupManifest, path: string): void {
  for (const { name, schema } of files) {
    const own = DATABASES.find((kind) => kind.name === name)?.schema
    if (schema === null || own === undefined || isKnown(schema, own)) continue
    const why = `its ${name} ${whyUnknown(schema, own)}. Restore it with the version that wrote it`
    throw new MirrorError('schema', `${path} was written by ${program}: ${why}`)
  }
}

/** Exactly the members that the manifest names, in its order. */
function checkMembers({ directory }: ArchiveFile, { files }: BackupManifest, fail: Fail): void {
  const pieces = files.reduce((sum, file) => sum + file.pieces, 0)
  if (directory.count !== pieces + 1)
    throw fail(`it has ${counted(directory.count, 'member')}, and its manifest names ${pieces + 1}`)
  let at = 0
  for (const file of files)
    for (let number = 0; number < file.pieces; number++, at++) {
      const { name } = directory.entry(at)
      if (name !== pieceName(file.name, number))
        throw fail(`it has a member that does not belong there: ${JSON.stringify(name)}`)
    }
}

async function extractFiles(
  archive: ArchiveFile,
  { files }: BackupManifest,
  folder: string | null,
  fail: Fail,
): Promise<void> {
  for (const file of files) {
    const target = folder === null ? null : openSync(join(folder, file.name), 'wx', PRIVATE_FILE)
    try {
      await extractFile(archive, file, target, fail)
      if (target !== null) fsyncSync(target)
    } finally {
      if (target !== null) closeSync(target)
    }
  }
}

async function extractFile(archive: ArchiveFile, file: BackupFile, target: number | null, fail: Fail): Promise<void> {
  const hash = createHash('sha256')
  let bytes = 0
  await archive.readMembers(
    ({ name }) => name.startsWith(`${file.name}/`),
    ({ name }, member) => {
      if ('refused' in member) throw fail(`its member ${name} is damaged: ${member.refused}`)
      const { content } = member
      hash.update(content)
      bytes += content.length
      if (bytes > file.bytes) throw fail(`its ${file.name} is larger than its manifest says`)
      if (target !== null) writeAll(target, content)
    },
  )
  if (bytes !== file.bytes || hash.digest('hex') !== file.sha256)
    throw fail(`its ${file.name} is not the one that its manifest describes`)
}
