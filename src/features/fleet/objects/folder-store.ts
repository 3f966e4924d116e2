import { createHash, randomBytes } from 'node:crypto'
import { type BigIntStats, constants, createReadStream, renameSync } from 'node:fs'
import { type FileHandle, chmod, link, lstat, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Readable } from 'node:stream'
import { messageOf, systemCode } from '../../../base/errors.ts'
import { PRIVATE_FILE, syncFolder } from '../../../base/files.ts'
import { DAY_MS } from '../../../base/time.ts'
import { sha256Hex } from '../../../base/digest.ts'
import { createFolderLock } from './folder-lock.ts'
import {
  FleetError,
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  OversizedError,
  checkKey,
} from './object-store.ts'

/** Folder of files that are being written. No key begins with a dot, so it is no object. */
const DRAFTS = '.drafts'
/** File of the lock, which is no object either. */
const LOCK = '.lock'
/** A draft that did not change for so long, milliseconds, was left by a process that ended. */
const DRAFT_AGE_MS = DAY_MS

/** Writes content to a draft, which `commit` gives its name; false of it: the object is not to be written. */
type Write = (
  key: string,
  body: ObjectBody,
  commit: (draft: string, path: string) => Promise<boolean>,
) => Promise<ObjectInfo | null>

/** Returns the path of an object, which is within the folder. */
function pathIn(root: string, key: string): string {
  checkKey(key)
  return join(root, key)
}

function createWriter(root: string, elapsed: () => number): Write {
  const sweep = createDraftSweep(join(root, DRAFTS), elapsed)
  let prepared: Promise<number> | null = null
  const prepare = (): Promise<number> =>
    (prepared ??= prepareRoot(root).catch((error: unknown) => {
      prepared = null
      throw error
    }))
  return (key, body, commit) =>
    attempt(root, `write ${key}`, async () => {
      const path = pathIn(root, key)
      const mode = await prepare()
      await sweep()
      const draft = join(root, DRAFTS, randomBytes(12).toString('hex'))
      try {
        const info = await writeDraft(draft, key, body, mode)
        await makeParents(root, key, mode)
        await refuseLinks(root, key)
        if (!(await commit(draft, path))) return null
        syncFolder(dirname(path))
        return info
      } finally {
        await rm(draft, { force: true })
      }
    })
}

/**
 * Creates a store in a folder that exists, local or shared, such as NFS. A new object appears by link(2), which fails when
 * another has its name; a replacement by rename(2), under a lock of the operating system. Content is synced before. `elapsed`:
 * milliseconds that passed, whatever the clocks of this machine and of the folder show.
 */
export function createFolderStore(url: string, elapsed = (): number => performance.now()): ObjectStore {
  const root = fileURLToPath(url)
  const lock = createFolderLock(join(root, LOCK))
  const write = createWriter(root, elapsed)
  const replace = (draft: string, path: string, etag: string | null): Promise<boolean> =>
    lock.run(async () => {
      if (etag !== null && (await infoOf(path, ''))?.etag !== etag) return false
      renameSync(draft, path)
      return true
    })
  /** Reads an object. In a folder that is not there, a missing file says nothing. */
  const read = <T>(key: string, action: (path: string) => Promise<T | null>): Promise<T | null> =>
    attempt(root, `read ${key}`, async () => {
      const path = pathIn(root, key)
      await refuseLinks(root, key)
      const found = await action(path)
      if (found === null) await stat(root)
      return found
    })
  return {
    url,
    get: (key, options = {}) => read(key, (path) => readFrom(path, key, options)),
    head: (key) => read(key, (path) => infoOf(path, key)),
    async put(key, body) {
      const info = await write(key, body, (draft, path) => replace(draft, path, null))
      if (info === null) throw new FleetError('unknown', `${key} was not written`)
      return info
    },
    putIfAbsent: (key, body) => write(key, body, linkDraft),
    putIfMatch: (key, body, etag) => write(key, body, (draft, path) => replace(draft, path, etag)),
    list: (prefix) => listFolder(root, prefix),
    delete: (key) =>
      attempt(root, `delete ${key}`, async () => {
        const path = pathIn(root, key)
        await stat(root)
        await refuseLinks(root, key)
        await lock.run(() => rm(path, { force: true }))
        syncFolder(dirname(path))
      }),
    close: () => lock.close(),
  }
}

/**
 * Throws when a folder of a key, below the root, is a symbolic link: who may write to the store would have objects read,
 * written and deleted elsewhere, with the rights of this process.
 */
async function refuseLinks(root: string, key: string): Promise<void> {
  const parts = key.split('/').slice(0, -1)
  for (const [at] of parts.entries()) {
    const path = join(root, ...parts.slice(0, at + 1))
    const found = await lstat(path).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return null
      throw error
    })
    if (found?.isSymbolicLink() !== true) continue
    throw new FleetError('refused', `fleet.url: ${path} is a symbolic link: replace it by a folder`)
  }
}

const REFUSED: ReadonlySet<string> = new Set([
  ...['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENAMETOOLONG', 'ELOOP'],
  ...['ENOENT', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY', 'EXDEV', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP'],
  ...['SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_PERM'],
])

/** Runs a call; a system error becomes a `FleetError` that names the folder. */
async function attempt<T>(root: string, what: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (cause) {
    if (cause instanceof FleetError) throw cause
    throw await failure(root, what, cause)
  }
}

async function failure(root: string, what: string, cause: unknown): Promise<FleetError> {
  const code = systemCode(cause) ?? ''
  const place = `fleet.url: cannot ${what} in ${root}`
  const isThere = await stat(root).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isThere)
    return new FleetError(
      'refused',
      `${place}: there is no such folder. Mount it, or create it where it is to be shared`,
      { cause },
    )
  return new FleetError(REFUSED.has(code) ? 'refused' : 'unknown', `${place} (${code || messageOf(cause)})`, { cause })
}

/**
 * Creates the removal of drafts that processes left: those that it found as they are at its last look, which was a day ago. No date of
 * a file tells that: it is of another machine's clock.
 */
function createDraftSweep(folder: string, elapsed: () => number): () => Promise<void> {
  let seen: ReadonlyMap<string, string> = new Map()
  let lookedAt = -Infinity
  return async () => {
    if (elapsed() - lookedAt < DRAFT_AGE_MS) return
    lookedAt = elapsed()
    const found = new Map<string, string>()
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      const file = await stat(path).catch(() => null)
      if (file === null) continue
      const state = `${file.ino} ${file.size} ${file.mtimeMs}`
      if (seen.get(name) === state) await rm(path, { force: true })
      else found.set(name, state)
    }
    seen = found
  }
}

/**
 * Creates the folder of drafts. Returns the mode of the root, which all in it gets: an
 * operator who shares it by a group shares its objects. The root itself is not created: it may be a mount.
 */
async function prepareRoot(root: string): Promise<number> {
  const folder = join(root, DRAFTS)
  const mode = (await stat(root)).mode & 0o7777
  await makeOne(folder, mode)
  await refuseLinks(root, `${DRAFTS}/`)
  await makeLockFile(join(root, LOCK), mode)
  return mode
}

async function makeLockFile(path: string, mode: number): Promise<void> {
  try {
    const file = await open(path, 'wx', PRIVATE_FILE)
    await file.chmod(mode & 0o666)
    await file.close()
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

async function makeOne(folder: string, mode: number): Promise<void> {
  try {
    await mkdir(folder)
    await chmod(folder, mode)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

async function makeParents(root: string, key: string, mode: number): Promise<void> {
  const parts = key.split('/').slice(0, -1)
  for (const [at] of parts.entries()) await makeOne(join(root, ...parts.slice(0, at + 1)), mode)
}

async function* listFolder(root: string, prefix: string): AsyncGenerator<ObjectInfo> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  const names = await attempt(root, `list ${prefix}`, async () => {
    await stat(root)
    await refuseLinks(root, folder)
    return readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return []
      throw error
    })
  })
  for (const entry of names) {
    const key = `${folder}${entry.name}`
    if (!key.startsWith(prefix) || entry.name.startsWith('.')) continue
    if (entry.isDirectory()) yield* listFolder(root, `${key}/`)
    else {
      const info = await attempt(root, `list ${key}`, () => infoOf(join(root, key), key))
      if (info !== null) yield info
    }
  }
}

/** Largest object, bytes, whose etag is the SHA-256 of its content; that of a larger one names its file and version. */
const DIGEST_BYTES = 1 << 20

/** Gives a draft its name unless another object has it. Over NFS the answer may be lost; the number of links says what was done. */
async function linkDraft(draft: string, path: string): Promise<boolean> {
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
async function writeDraft(draft: string, key: string, body: ObjectBody, folderMode: number): Promise<ObjectInfo> {
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
async function infoOf(path: string, key: string): Promise<ObjectInfo | null> {
  const opened = await openWithInfo(path, key)
  await opened?.file.close()
  return opened?.info ?? null
}

/** Opens an object's content; null: there is no such file. */
async function readFrom(
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
