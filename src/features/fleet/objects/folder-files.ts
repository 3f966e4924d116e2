import { createHash } from 'node:crypto'
import { type BigIntStats, constants, createReadStream } from 'node:fs'
import { type FileHandle, link, open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { sha256Hex } from '../../../base/digest.ts'
import { systemCode } from '../../../base/errors.ts'
import { PRIVATE_FILE } from '../../../base/files.ts'
import { type ObjectBody, type ObjectInfo, FleetError, OversizedError } from './object-store.ts'

/** Largest object, bytes, whose etag is the SHA-256 of its content; that of a larger one names its file and version. */
const DIGEST_BYTES = 1 << 20

/** Gives a draft its name unless another object has it. Over NFS the answer may be lost; the number of links says what was done. */
export async function linkDraft(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((await stat(draft)).nlink === 2) return true
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

/** Writes and syncs a draft, with the permissions of its folder to read and write. Refuses a file that is not the one described. */
export async function writeDraft(
  draft: string,
  key: string,
  body: ObjectBody,
  folderMode: number,
): Promise<ObjectInfo> {
  const file = await open(draft, 'wx', PRIVATE_FILE)
  try {
    await file.chmod(folderMode & 0o666)
    const digest = createHash('sha256')
    let size = 0
    const pieces = Buffer.isBuffer(body) ? [body] : createReadStream(body.file)
    for await (const piece of pieces as AsyncIterable<Buffer>) {
      digest.update(piece)
      size += piece.length
      await file.appendFile(piece)
    }
    const sha256 = digest.digest('hex')
    if (!Buffer.isBuffer(body) && (size !== body.size || sha256 !== body.sha256))
      throw new FleetError('refused', `${body.file} changed while it was copied to ${key}`)
    await file.sync()
    return describe(key, await file.stat({ bigint: true }), sha256)
  } finally {
    await file.close()
  }
}

/** `sha256` is used for a small object alone. */
function describe(key: string, found: BigIntStats, sha256: string): ObjectInfo {
  const { size, mtimeNs, ino } = found
  const etag = size <= DIGEST_BYTES ? sha256 : `${size}-${mtimeNs}-${ino}`
  return { key, size: Number(size), etag, modifiedAt: Number(found.mtimeMs) }
}

/** Opens an object's file; null: there is none. A symbolic link is not followed, and a named pipe not waited for. */
async function openObject(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const code = systemCode(error) ?? ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}

interface OpenObject {
  readonly info: ObjectInfo
  readonly file: FileHandle
  /** Content of a small object, which was read for its etag. */
  readonly content: Buffer | null
}

/** Opens an object's file and describes it; null: there is no such file. The caller closes it. */
async function openWithInfo(path: string, key: string): Promise<OpenObject | null> {
  const file = await openObject(path)
  if (file === null) return null
  try {
    const found = await file.stat({ bigint: true })
    if (!found.isFile()) {
      await file.close()
      return null
    }
    const content = found.size <= DIGEST_BYTES ? await file.readFile() : null
    const info = describe(key, found, content === null ? '' : sha256Hex(content))
    return { info, file, content }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Describes an object; null: there is no such file. */
export async function infoOf(path: string, key: string): Promise<ObjectInfo | null> {
  const opened = await openWithInfo(path, key)
  await opened?.file.close()
  return opened?.info ?? null
}

/** Opens an object's content; null: there is no such file. */
export async function readFrom(
  path: string,
  key: string,
  { from = 0, maxBytes = Infinity }: { from?: number; maxBytes?: number },
): Promise<{ info: ObjectInfo; body: Readable } | null> {
  const opened = await openWithInfo(path, key)
  if (opened === null) return null
  const { info, file, content } = opened
  if (content !== null || info.size - from > maxBytes || from >= info.size) await file.close()
  if (info.size - from > maxBytes) throw new OversizedError(key, info.size, from + maxBytes)
  if (content !== null) return { info, body: Readable.from([content.subarray(from)]) }
  if (from >= info.size) return { info, body: Readable.from([]) }
  return { info, body: file.createReadStream({ start: from }) }
}
