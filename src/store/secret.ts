import { hkdfSync } from 'node:crypto'
import type { Db } from './database/open.ts'

/**
 * What a key is derived for: the hashes of the local keys, the signatures of local links, the mirror's own name, and
 * the signatures of what is passed on.
 */
type SecretPurpose = 'keys' | 'links' | 'instance' | 'relay'

/** Reads of this mirror's own secret; usable on any connection. */
export function createSecretReader(db: Db) {
  const read = db.prepare<[], Buffer>('SELECT bytes FROM secret').pluck()
  return {
    /**
     * 32 bytes for one purpose, derived from the random secret that the database was created with, so that what is
     * learned of one purpose tells nothing of another. Never to be shown, logged or carried to another mirror.
     */
    readSecret(purpose: SecretPurpose): Buffer {
      const bytes = read.get()
      if (bytes === undefined) throw new Error('the database has lost its secret')
      return Buffer.from(hkdfSync('sha256', bytes, '', `patchmirror ${purpose}`, 32))
    },
    /** A name of this mirror's own, hex, that tells it from others; nothing follows from it. */
    readInstance(): string {
      return this.readSecret('instance').toString('hex', 0, 8)
    },
  }
}
