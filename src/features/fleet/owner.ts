import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { sha256Hex } from '../../base/digest.ts'
import { withReads } from '../../store/reads.ts'

/**
 * Identifies a data folder on a host: 32 hex digits, the same after a restart. A copy of it is another mirror, also under the same
 * path on a host of the same name, as containers have.
 */
export function ownerOf(dataDir: string): string {
  const { ino, birthtimeMs, ctimeMs } = statSync(dataDir)
  const born = birthtimeMs < ctimeMs ? birthtimeMs : 0 // some file systems give another time that changes
  const identity = withReads(dataDir, ({ ledger }) => ledger.readIdentity()) ?? ''
  const place = [hostname(), resolve(dataDir), identity, ino, born]
  return sha256Hex(place.join('\n')).slice(0, 32)
}
