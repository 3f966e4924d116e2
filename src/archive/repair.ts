import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { sha256Of } from '../base/digest.ts'
import { MirrorError, systemCode } from '../base/errors.ts'
import { gzipMember } from '../store/database/gzip.ts'
import { derivedDir } from '../store/database/open.ts'
import type { Writes } from '../store/writes.ts'
import { openArchive } from './zip/reader.ts'

/**
 * Puts damaged records back from the derived archive, which has the same streams: without upstream, and whatever waits for a
 * decision there. Returns how many; what the archive does not have unchanged stays as it is.
 */
export async function repairRecords(
  osv: Pick<Writes['osv'], 'readArchive' | 'repairBody'>,
  dataDir: string,
  ids: readonly string[],
): Promise<number> {
  const info = osv.readArchive()
  if (info === null) return 0
  const wanted = new Map(ids.map((id) => [`${id}.json`, id]))
  let repaired = 0
  try {
    const archive = await openArchive(join(derivedDir(dataDir), info.file), { maxMemberBytes: 2 ** 29 })
    try {
      await archive.readMembers(
        ({ name }) => wanted.has(name),
        ({ name, size, crc32: sum }, member) => {
          if ('refused' in member) return
          const body = gzipMember(member.deflated, sum, size)
          const sums = { size, sha256: sha256Of(member.content), bodyCrc32: crc32(body) }
          if (osv.repairBody({ id: wanted.get(name) ?? '', body, ...sums })) repaired++
        },
      )
    } finally {
      await archive.close()
    }
  } catch (error) {
    const isOfArchive = error instanceof MirrorError ? error.code === 'archive' : systemCode(error)?.startsWith('E')
    if (isOfArchive !== true) throw error
  }
  return repaired
}
