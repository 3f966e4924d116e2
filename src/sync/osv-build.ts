import { createHash } from 'node:crypto'
import {
  closeSync,
  fdatasyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { MirrorError } from '../errors.ts'
import { derivedDir } from '../store/database.ts'
import { deflatedOf } from '../store/gzip.ts'
import type { ArchiveInfo, OsvReader } from '../store/osv.ts'
import { crc32c } from '../zip/crc32c.ts'
import { createZipWriter } from '../zip/writer.ts'

/** An archive that was built and not yet published. */
export interface BuiltArchive extends Omit<ArchiveInfo, 'changed'> {
  members: number
}

/**
 * Writes `all.zip` from the stored streams, members in id order: the same records give the same bytes on any
 * mirror. Named by its digest, so that a reader of the previous one is not disturbed. Throws `proof` when a
 * record is not `expected`.
 */
export function buildArchive(
  store: Pick<OsvReader, 'eachContent'>,
  dir: string,
  expected: (id: string) => boolean,
): BuiltArchive {
  dropUnfinished(dir)
  const temporary = join(dir, `building-${process.pid}.zip`)
  const fd = openSync(temporary, 'w')
  const sha256 = createHash('sha256')
  let crc = 0
  try {
    const writer = createZipWriter((chunk) => {
      sha256.update(chunk)
      crc = crc32c(chunk, crc)
      for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at)
    })
    for (const [id, crc32, size, body] of store.eachContent()) {
      if (!expected(id)) throw new MirrorError('proof', `record ${id} is stored but not listed`)
      checkTrailer(id, body, crc32, size)
      writer.add({ name: `${id}.json`, crc32, size, deflated: deflatedOf(body) })
    }
    const { size, members } = writer.finish()
    fdatasyncSync(fd)
    const digest = sha256.digest('hex')
    const file = `osv-${digest.slice(0, 32)}.zip`
    renameSync(temporary, join(dir, file))
    return { file, size, crc32c: crc, sha256: digest, members }
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

/** The stored bytes' own checksum must be the record's: another's bytes, or cut ones, must not reach a reader. */
function checkTrailer(id: string, body: Buffer, crc32: number, size: number): void {
  const sound =
    body.length >= 18 &&
    body.readUInt32LE(body.length - 8) === crc32 &&
    body.readUInt32LE(body.length - 4) === size
  if (sound) return
  throw new MirrorError(
    'proof',
    `the stored bytes of record ${id} are not its own: run "patchmirror verify --repair"`,
  )
}

/** What a killed process left half built. */
function dropUnfinished(dir: string): void {
  for (const name of readdirSync(dir))
    if (name.startsWith('building-')) rmSync(join(dir, name), { force: true })
}

/** Deletes derived archives but the ones named: the current one and the one readers may still be opening. */
export function sweepArchives(dir: string, keep: readonly string[]): void {
  for (const name of readdirSync(dir)) {
    if (name.endsWith('.zip') && !keep.includes(name)) rmSync(join(dir, name), { force: true })
  }
}

/**
 * Rebuilds the derived archive when its file is gone or cut short (a power cut, a cleaned folder): it holds nothing
 * that the database does not, and comes out the same to the byte. Throws `corrupt` when it does not.
 */
export function rebuildLostArchive(store: OsvReader, dataDir: string): boolean {
  const info = store.readArchive()
  const dir = derivedDir(dataDir)
  dropUnfinished(dir)
  if (info === null || sizeOf(join(dir, info.file)) === info.size) return false
  const built = buildArchive(store, dir, () => true)
  if (built.sha256 === info.sha256) return true
  throw new MirrorError(
    'corrupt',
    'the stored records do not make up the published archive any more: run "patchmirror verify --repair"',
  )
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? -1
}
