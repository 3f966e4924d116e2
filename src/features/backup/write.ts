import { createHash } from 'node:crypto'
import { closeSync, copyFileSync, existsSync, fsyncSync, openSync, readSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { crc32, deflateRawSync } from 'node:zlib'
import { refuseFullDisk, reserveFor } from '../../base/disk-space.ts'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { PRIVATE_FILE, publishFile, writeAll } from '../../base/files.ts'
import { toIso } from '../../base/time.ts'
import { whyUnread } from '../../store/database/unread.ts'
import { checkCopy, copyDatabase, copyPrivateTables } from './copies.ts'
import { DATABASES, databasePath, inboxPath, openInboxReader, openReader } from '../../store/database/open.ts'
import { newestOf } from '../../store/database/schema/schema.ts'
import { isUnreadable, nameStorageError } from '../../store/database/faults.ts'
import { databaseOf } from '../../store/located.ts'
import { noteBackup } from '../../store/notes.ts'
import { createCarriedReader } from '../../store/replication/reader.ts'
import { createLedgerReader } from '../../store/replication/ledger.ts'
import { type Temporary, makeTemporary } from '../../store/temporary.ts'
import { createZipWriter } from '../../archive/zip/writer.ts'
import { type BackupFile, type BackupManifest, FILE_NAMES, MANIFEST, PIECE_BYTES, pieceName } from './format.ts'
import { openBackup } from './read.ts'
import { closing } from '../../base/closing.ts'

/** What is backed up, and where to. */
export interface BackupOptions {
  readonly dataDir: string
  readonly path: string
  /** Whether a file of this name may be replaced. */
  readonly force: boolean
  /** Only what bundles do not carry. */
  readonly isPrivate: boolean
  /** Path of the file of webhook secrets, wherever it is. */
  readonly secretFile: string
  readonly program: string
  readonly now: () => number
}

/** What was written. */
interface BackupReport {
  readonly file: string
  readonly bytes: number
  readonly manifest: BackupManifest
}

/**
 * Writes a backup beside running processes: copies both databases, checks the copies (SQLite's own check, and the state
 * digest against the mirror's), packs them, and reads the file back before it gets its name. Throws `usage` when the
 * name exists, `not_ready` when there is no database, `storage` when the disk is full, `corrupt` for a damaged database.
 */
export async function writeBackup(options: BackupOptions): Promise<BackupReport> {
  const { dataDir, path, force } = options
  if (existsSync(path) && !force) throw new MirrorError('usage', `${path} exists already; --force replaces it`)
  let temporary: Temporary | null = null
  try {
    const beside = dirname(resolve(path))
    const { folder: staging } = (temporary = makeTemporary(beside))
    await refuseFullDisk(beside, neededBytes(options), 'Free some space and run it again')
    const draft = join(staging, 'backup.zip')
    const manifest = await pack(draft, staging, await copyAll(options, staging))
    const packed = await openBackup(draft)
    await packed.extract(null).finally(() => packed.close())
    const { size } = statSync(draft)
    if (existsSync(path) && !force) throw new MirrorError('usage', `${path} was created by another process meanwhile`)
    publishFile(draft, path)
    if (!options.isPrivate) noteBackup(dataDir, resolve(path), manifest.createdAt)
    return { file: path, bytes: size, manifest }
  } catch (error) {
    if (error instanceof MirrorError || systemCode(error) === undefined) throw error
    const mayBeTarget = isUnnamedFault(error)
    if (isUnreadable(error) && !mayBeTarget) throw nameStorageError(error, dataDir)
    const why = mayBeTarget ? `${messageOf(error)}. ${EITHER_DISK}` : messageOf(error)
    const text = `the backup of ${dataDir} cannot be written to ${path}: ${why}`
    throw new MirrorError('storage', text, { cause: error })
  } finally {
    temporary?.remove()
  }
}

const EITHER_DISK =
  'One of the two disks fails, or the one of the backup takes no file as large as the database: FAT takes 4 GB'

/** Reports whether an error is one of copying, of which SQLite does not say whether it read or wrote. */
function isUnnamedFault(error: unknown): boolean {
  return systemCode(error)?.startsWith('SQLITE_IOERR') === true && databaseOf(error) === null
}

/** The copies and the archive exist at the same time; the archive is no larger than the copies, but for its headers. */
function neededBytes({ dataDir, isPrivate }: BackupOptions): number {
  const sizes = [inboxPath(dataDir), ...(isPrivate ? [] : [databasePath(dataDir)])]
    .flatMap((path) => [path, `${path}-wal`])
    .map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  const bytes = 2 * sizes.reduce((sum, size) => sum + size, 0)
  return bytes + reserveFor(bytes, 4 * 2 ** 20, 2 ** 30)
}

type Described = Omit<BackupManifest, 'files'>

/** Copies everything into the staging folder and checks it. */
async function copyAll(options: BackupOptions, staging: string): Promise<Described> {
  const { dataDir, isPrivate, secretFile, program, now } = options
  const inbox = openInboxReader(dataDir)
  if (inbox !== null) await closing(inbox, () => copyDatabase(inbox, inboxPath(staging)))
  const local = join(dataDir, 'local.key')
  if (existsSync(local)) copyFileSync(local, join(staging, 'local.key'))
  if (existsSync(secretFile)) copyFileSync(secretFile, join(staging, 'webhook-secrets.json'))
  const state = await copyMirror(dataDir, staging, isPrivate)
  const kind = 'patchmirror-backup'
  return { kind, format: 1, program, createdAt: toIso(now()), private: isPrivate, ...state }
}

type State = Pick<BackupManifest, 'identity' | 'digest' | 'sources'>

async function copyMirror(dataDir: string, staging: string, isPrivate: boolean): Promise<State> {
  const db = openReader(dataDir)
  if (db === null) throw whyUnread(dataDir, `there is nothing to back up: ${dataDir} has no database`)
  return closing(db, async () => {
    db.exec('BEGIN') // the digest and the copy are of one snapshot
    const identity = createLedgerReader(db).readIdentity()
    const stored = isPrivate ? null : createCarriedReader(db).digestSources()
    if (isPrivate) copyPrivateTables(dataDir, staging)
    else await copyDatabase(db, databasePath(staging))
    const sources = stored?.sources ?? {}
    const digest = Object.keys(sources).length === 0 ? null : (stored?.digest ?? null)
    const state = { identity, digest, sources }
    checkCopies(staging, state)
    return state
  })
}

/**
 * Checks the databases in a folder: SQLite's own check, identity and state digest. Throws `corrupt`. They are migrated
 * to this program's schema, and are single files afterwards.
 */
export function checkCopies(staging: string, { identity, digest }: Omit<State, 'sources'>): void {
  for (const kind of DATABASES) {
    if (!existsSync(kind.pathIn(staging))) continue
    checkCopy(kind, staging, (db) => {
      if (kind.name !== 'mirror.db') return
      if (createLedgerReader(db).readIdentity() !== identity)
        throw new MirrorError('corrupt', 'the copy of mirror.db has another identity')
      if (digest !== null && createCarriedReader(db).digestSources().digest !== digest)
        throw new MirrorError('corrupt', 'the copy of mirror.db has another state digest')
    })
  }
}

/** Packs the files of the staging folder, the manifest last, and syncs the archive. */
async function pack(draft: string, staging: string, described: Described): Promise<BackupManifest> {
  const fd = openSync(draft, 'wx', PRIVATE_FILE)
  try {
    const zip = createZipWriter((chunk) => writeAll(fd, chunk))
    const add = (name: string, content: Buffer): void => {
      const deflated = deflateRawSync(content, { level: 1 }) // most of it is compressed already
      zip.add({ name, crc32: crc32(content), size: content.length, deflated })
    }
    const present = FILE_NAMES.filter((name) => existsSync(join(staging, name)))
    const files: BackupFile[] = []
    for (const name of present) files.push(await packFile(join(staging, name), name, add))
    const manifest = { ...described, files }
    add(MANIFEST, Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`))
    zip.finish()
    fsyncSync(fd)
    return manifest
  } finally {
    closeSync(fd)
  }
}

async function packFile(
  path: string,
  name: BackupFile['name'],
  add: (member: string, content: Buffer) => void,
): Promise<BackupFile> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(PIECE_BYTES)
  const file = openSync(path, 'r')
  let bytes = 0
  let pieces = 0
  try {
    for (;;) {
      const piece = buffer.subarray(0, readFull(file, buffer))
      if (piece.length === 0) break
      hash.update(piece)
      add(pieceName(name, pieces), piece)
      bytes += piece.length
      pieces++
      await setImmediate() // a signal is heard between two pieces
    }
  } finally {
    closeSync(file)
  }
  const own = DATABASES.find((kind) => kind.name === name)?.schema
  const schema = own === undefined ? null : newestOf(own)
  return { name, bytes, sha256: hash.digest('hex'), pieces, schema }
}

function readFull(file: number, buffer: Buffer): number {
  let filled = 0
  for (;;) {
    const read = readSync(file, buffer, filled, buffer.length - filled, null)
    filled += read
    if (read === 0 || filled === buffer.length) return filled
  }
}
