import { timingSafeEqual } from 'node:crypto'
import { MirrorError } from '../../base/errors.ts'
import { hashKey } from '../../store/keys.ts'
import type { LocalKey } from '../../store/keys.ts'
import type { PinnedReads } from '../../store/reads.ts'
import type { ServerLog } from '../http/problems.ts'

/** A valid key, named as the log may name it. */
export interface FoundKey {
  /** Such as `key 3 (build server)`, or `entry 2 of server.keys`. */
  readonly title: string
}

/** The keys that open the private paths: those of the settings, and those made by `patchmirror keys create`. */
interface Keyring {
  /** The key that this is; null when it is none, or was revoked. A commit of another process counts at once. */
  find(key: string): FoundKey | null
  /** Whether keys are in use; also when all of them are revoked, for revoking the last must not open the door. */
  inUse(): boolean
  /** How many are valid. */
  count(): number
  /** Logs which keys were created and revoked since the last call, and by whom. */
  look(): void
}

interface Entry extends FoundKey {
  readonly hash: Buffer
}

/** What may be a key in both ways of sending one: visible ASCII, no colon, which would end the Basic user name. */
const SENDABLE = /^[!-9;-~]+$/

/**
 * Keeps hashes of the settings' keys, made again when the settings have other keys. Throws `config` for one that could not be
 * sent, without repeating it.
 */
export function createKeyring(
  settingKeys: () => readonly string[],
  { live, commits }: Pick<PinnedReads, 'live' | 'commits'>,
  log: ServerLog | null,
): Keyring {
  const secret = live.secrets.readSecret('keys')
  const fixed = hashed(settingKeys, secret)
  fixed()
  let stored: { readonly entries: readonly Entry[]; readonly had: boolean } | null = null
  let seen = -1
  const logChanges = createKeyLog(log)
  const read = () => {
    const current = commits()
    if (stored !== null && current === seen) return stored
    const entries = live.keys.listKeyHashes().map((key) => {
      return { title: titleOf(key), hash: key.hash }
    })
    logChanges(live.keys.listKeys())
    stored = { entries, had: live.keys.hadKeys() }
    seen = current
    return stored
  }
  return {
    find(key) {
      const hash = hashKey(key, secret)
      let found: FoundKey | null = null
      // Compares all keys, by their hashes: the duration reveals nothing about any key.
      for (const entry of [...fixed(), ...read().entries]) if (timingSafeEqual(entry.hash, hash)) found = entry
      return found
    },
    inUse: () => fixed().length > 0 || read().had,
    count: () => fixed().length + read().entries.length,
    look: () => void read(),
  }
}

function titleOf({ id, name }: Pick<LocalKey, 'id' | 'name'>): string {
  return name === '' ? `key ${id}` : `key ${id} (${name})`
}

/** Logs what changed between two lists of the keys; the first list is what the daemon started with. */
function createKeyLog(log: ServerLog | null): (keys: readonly LocalKey[]) => void {
  let known: ReadonlyMap<number, LocalKey> | null = null
  return (keys) => {
    for (const key of known === null ? [] : keys) {
      const before = known?.get(key.id)
      if (before === undefined) logChange(log, key, 'created', key.createdBy)
      if (key.revokedAt !== null && (before?.revokedAt ?? null) === null) logChange(log, key, 'revoked', key.revokedBy)
    }
    known = new Map(keys.map((key) => [key.id, key]))
  }
}

function logChange(log: ServerLog | null, key: LocalKey, what: string, by: string | null): void {
  const user = by === null ? '' : ` by ${by}`
  log?.info({ key: key.id, by }, `${titleOf(key)} was ${what}${user}`)
}

/** The entries of the settings' keys; they are hashed once for each list. */
function hashed(keys: () => readonly string[], secret: Buffer): () => readonly Entry[] {
  let seen: readonly string[] | null = null
  let entries: readonly Entry[] = []
  return () => {
    const current = keys()
    if (current === seen) return entries
    entries = current.map((key, at) => settingEntry(key, at + 1, secret))
    seen = current
    return entries
  }
}

function settingEntry(key: string, position: number, secret: Buffer): Entry {
  const title = `entry ${position} of server.keys`
  if (SENDABLE.test(key)) return { title, hash: hashKey(key, secret) }
  const message = `${title} contains a space, a colon or another character that a key may not have: create a valid one with "patchmirror keys create"`
  throw new MirrorError('config', message)
}
