import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Db } from './database/open.ts'
import { createSecretReader } from './secret.ts'

/**
 * A local key as it may be shown. The key itself is nowhere: it is told once, when it is made. When it was last used
 * is in the log alone, for reads never write.
 */
export interface LocalKey {
  /** Never given twice. */
  readonly id: number
  /** Empty when it was made without one. */
  readonly name: string
  /** How the key begins. */
  readonly prefix: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds; null while it is valid. */
  readonly revokedAt: number | null
}

/** A valid key, to compare with: `hash` as `hashKey` makes it. */
interface KeyHash {
  readonly id: number
  readonly name: string
  readonly hash: Buffer
}

/** All that local keys and signed links hang on, to carry it out of a database that is given up. Secret. */
export interface KeyBackup {
  readonly secret: Buffer
  readonly keys: readonly (LocalKey & { readonly hash: Buffer })[]
}

/** What every key of ours begins with, so that scanners for lost secrets can know one. */
const MARK = 'pmk_'
const RANDOM_BYTES = 24
/** Of 32 random characters, those shown: the 168 bits left are as hopeless to guess. */
const SHOWN = 4

/**
 * The keyed digest under which a key is kept. Keys are 192 random bits, which nobody can try through, so a slow hash
 * (scrypt, made for passwords) would protect nothing and cost each request dearly. One keyed digest, where each key with
 * a salt of its own would take one for every key there is, settles a request however many keys there are.
 */
export function hashKey(key: string, secret: Buffer): Buffer {
  return createHmac('sha256', secret).update(key).digest()
}

/** Whether a key is the one that has this hash. */
export function isSameKey(key: string, hash: Buffer, secret: Buffer): boolean {
  return timingSafeEqual(hashKey(key, secret), hash)
}

/** Reads of the local keys; usable on any connection. */
export function createKeyReader(db: Db) {
  const list = db.prepare<[], LocalKey>(
    `SELECT id, name, prefix, created_at AS createdAt, revoked_at AS revokedAt FROM local_key ORDER BY id`,
  )
  const valid = db.prepare<[], KeyHash>(
    'SELECT id, name, hash FROM local_key WHERE revoked_at IS NULL ORDER BY id',
  )
  const all = db.prepare<[], LocalKey & { hash: Buffer }>(
    `SELECT id, name, prefix, hash, created_at AS createdAt, revoked_at AS revokedAt FROM local_key ORDER BY id`,
  )
  const secret = db.prepare<[], Buffer>('SELECT bytes FROM secret').pluck()
  const any = db.prepare<[], number>('SELECT EXISTS (SELECT 1 FROM local_key)').pluck()
  return {
    /** All keys ever made, revoked ones too, oldest first. */
    listKeys: (): LocalKey[] => list.all(),
    listKeyHashes: (): KeyHash[] => valid.all(),
    /** Whether a key was ever made, though all may be revoked by now. */
    hadKeys: (): boolean => any.get() === 1,
    /** Null where the secret is lost: then no key can be told any more. */
    readKeyBackup(): KeyBackup | null {
      const bytes = secret.get()
      return bytes === undefined ? null : { secret: bytes, keys: all.all() }
    },
  }
}

/** Writes of the local keys. */
export function createKeyWriter(db: Db) {
  const secret = createSecretReader(db)
  const insert = db.prepare(
    'INSERT INTO local_key (name, prefix, hash, created_at) VALUES (@name, @prefix, @hash, @now)',
  )
  const revoke = db.prepare(
    'UPDATE local_key SET revoked_at = @now WHERE id = @id AND revoked_at IS NULL',
  )
  const putSecret = db.prepare('UPDATE secret SET bytes = ?')
  const putKey = db.prepare(
    'INSERT INTO local_key VALUES (@id, @name, @prefix, @hash, @createdAt, @revokedAt)',
  )
  const reader = createKeyReader(db)
  const createKey = (name: string, now: number): { readonly id: number; readonly key: string } => {
    const key = MARK + randomBytes(RANDOM_BYTES).toString('base64url')
    const prefix = key.slice(0, MARK.length + SHOWN)
    const hash = hashKey(key, secret.readSecret('keys'))
    return { id: Number(insert.run({ name, prefix, hash, now }).lastInsertRowid), key }
  }
  return {
    ...reader,
    ...secret,
    /** Puts keys and secret of a former database into this one, which must be new. */
    restoreKeys: db.transaction((backup: KeyBackup) => {
      putSecret.run(backup.secret)
      for (const key of backup.keys) putKey.run(key)
    }),
    /** Makes a key. `key` is told here and never again. */
    createKey,
    /**
     * Makes a key unless one was ever made, revoked or not; false then. `hand` gets it in the same transaction: when that
     * throws, no key was made.
     */
    createFirstKey: (name: string, now: number, hand: (key: string) => void): boolean =>
      db
        .transaction(() => {
          if (reader.hadKeys()) return false
          hand(createKey(name, now).key)
          return true
        })
        .immediate(),
    /** False when there is no such key, or it is revoked already. */
    revokeKey: (id: number, now: number): boolean => revoke.run({ id, now }).changes === 1,
  }
}
