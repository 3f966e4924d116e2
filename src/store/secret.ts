import { hkdfSync } from 'node:crypto'
import type { Db } from './database/open.ts'

/**
 * What a key is derived for: hashes of local keys, signatures of local links, this mirror's instance name, and
 * signatures of relayed messages.
 */
type SecretPurpose = 'keys' | 'links' | 'instance' | 'relay'

/** Creates reads of this mirror's own secret; usable on any connection. */
export function createSecretReader(db: Db) {
  const read = db.prepare<[], Buffer>('SELECT bytes FROM secret').pluck()
  return {
    /**
     * Returns 32 bytes for one purpose, derived from the random secret with which the database was created: the key of
     * one purpose reveals nothing about another. Never show, log or transfer it to another mirror.
     */
    readSecret(purpose: SecretPurpose): Buffer {
      const bytes = read.get()
      if (bytes === undefined) throw new Error('the database has lost its secret')
      return Buffer.from(hkdfSync('sha256', bytes, '', `patchmirror ${purpose}`, 32))
    },
    /** Returns this mirror's instance name, hex; it identifies the mirror and reveals nothing else. */
    readInstance(): string {
      return this.readSecret('instance').toString('hex', 0, 8)
    },
  }
}
