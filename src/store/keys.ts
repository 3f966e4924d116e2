import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Db } from './database/open.ts'
import { queries } from './database/query.ts'
import { createSecretReader } from './secret.ts'

/**
 * A local key as it may be shown. The key itself is not stored: it is shown once, when it is created. Its last use is in
 * the log only, for reads never write.
 */
export interface LocalKey {
  /** Never reused. */
  readonly id: number
  /** Empty when it was created without a name. */
  readonly name: string
  /** The first characters of the key. */
  readonly prefix: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** User of the operating system who created it; null: the daemon. */
  readonly createdBy: string | null
  /** Unix milliseconds; null while it is valid. */
  readonly revokedAt: number | null
  /** User who revoked it; null while it is valid. */
  readonly revokedBy: string | null
}

/** A valid key, for comparison: `hash` is the result of `hashKey`. */
interface KeyHash {
  readonly id: number
  readonly name: string
  readonly hash: Buffer
}

/** Everything that local keys and signed links depend on. Secret. */
interface KeyBackup {
  readonly secret: Buffer
  readonly keys: readonly (LocalKey & { readonly hash: Buffer })[]
}

/** Prefix of every key, by which scanners for leaked secrets recognize one. */
const MARK = 'pmk_'

/** Local keys in a text, to hide them in logs and reports. */
export const LOCAL_KEYS = /\bpmk_[\w-]+/g
const RANDOM_BYTES = 24
const KEY_FORM = /^pmk_[\w-]{32}$/
/** Random characters that are shown, of 32: the other 168 bits cannot be guessed. */
const SHOWN = 4

/**
 * Returns the keyed digest under which a key is stored. Keys are 192 random bits, which cannot be tried exhaustively, so
 * a slow password hash (scrypt) would add no protection and cost every request. A salt per key would need one digest per
 * stored key for each request; one keyed digest does not.
 */
export function hashKey(key: string, secret: Buffer): Buffer {
  return createHmac('sha256', secret).update(key).digest()
}

/** The first key of a mirror. */
interface FirstKey {
  readonly name: string
  /** Unix milliseconds. */
  readonly now: number
  readonly kept: string | null
  readonly deliver: (key: string) => void
}

/** Names a key in messages. */
export function keyTitle({ id, name }: Pick<LocalKey, 'id' | 'name'>): string {
  return name === '' ? `key ${id}` : `key ${id} (${name})`
}

/** Reports whether a text has the form of a key. */
export function isKeyForm(text: string): boolean {
  return KEY_FORM.test(text)
}

/** Returns what may be shown of a key. */
export function shownPrefix(key: string): string {
  return key.slice(0, MARK.length + SHOWN)
}

/** Reports whether a key has this hash. */
export function isSameKey(key: string, hash: Buffer, secret: Buffer): boolean {
  return timingSafeEqual(hashKey(key, secret), hash)
}

const COLUMNS =
  'id, name, prefix, created_at AS createdAt, created_by AS createdBy, revoked_at AS revokedAt, revoked_by AS revokedBy'

/** Reads of the local keys; usable on any connection. */
export function createKeyReader(db: Db) {
  const query = queries(db)
  const all = db.prepare<[], LocalKey & { hash: Buffer }>(`SELECT ${COLUMNS}, hash FROM local_key ORDER BY id`)
  const secret = db.prepare<[], Buffer>('SELECT bytes FROM secret').pluck()
  return {
    /** All keys ever created, revoked ones included, oldest first. */
    listKeys: query.all<[], LocalKey>(`SELECT ${COLUMNS} FROM local_key ORDER BY id`),
    listKeyHashes: query.all<[], KeyHash>('SELECT id, name, hash FROM local_key WHERE revoked_at IS NULL ORDER BY id'),
    /** Whether a key was ever created, even if all are revoked. */
    hadKeys: query.exists<[]>('SELECT 1 FROM local_key'),
    /** Returns the keys and their secret; null if the secret is lost: then no key can be verified. */
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
    'INSERT INTO local_key (name, prefix, hash, created_at, created_by) VALUES (@name, @prefix, @hash, @now, @by)',
  )
  const revoke = db.prepare(
    'UPDATE local_key SET revoked_at = @now, revoked_by = @by WHERE id = @id AND revoked_at IS NULL',
  )
  const reader = createKeyReader(db)
  const createKey = (
    name: string,
    now: number,
    by: string | null = null,
  ): { readonly id: number; readonly key: string } => {
    const key = MARK + randomBytes(RANDOM_BYTES).toString('base64url')
    return { id: storeKey(key, { name, now, by }), key }
  }
  const storeKey = (key: string, of: { name: string; now: number; by: string | null }): number => {
    const prefix = shownPrefix(key)
    const hash = hashKey(key, secret.readSecret('keys'))
    return Number(insert.run({ ...of, prefix, hash }).lastInsertRowid)
  }
  return {
    ...reader,
    /** Creates a key; `by` is the user who does. `key` is returned here only. */
    createKey,
    /**
     * Stores the first key unless one was ever created, revoked or not: `kept`, which was valid before the database was lost, or
     * where that is null a new one. `deliver` gets a new key in the same transaction: when it throws, none is created.
     */
    storeFirstKey: ({ name, now, kept, deliver }: FirstKey): 'had' | 'kept' | 'created' =>
      db
        .transaction(() => {
          if (reader.hadKeys()) return 'had'
          if (kept === null) deliver(createKey(name, now).key)
          else storeKey(kept, { name, now, by: null })
          return kept === null ? 'created' : 'kept'
        })
        .immediate(),
    /** Reports whether a key is valid; without the secret none is. */
    isValidKey(key: string): boolean {
      if (reader.readKeyBackup() === null) return false
      const bytes = secret.readSecret('keys')
      return reader.listKeyHashes().some(({ hash }) => isSameKey(key, hash, bytes))
    },
    /** Returns false if there is no such key, or it is already revoked. */
    revokeKey: (id: number, now: number, by: string | null = null): boolean =>
      revoke.run({ id, now, by }).changes === 1,
  }
}
