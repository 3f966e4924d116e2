import { withReads } from '../../store/reads.ts'
import { withWrites } from '../store-writes.ts'
import { toIsoOrNull } from '../../base/time.ts'
import { MirrorError } from '../../base/errors.ts'
import { operatorName } from '../../base/domain/run-facts.ts'
import { namingFaults } from '../../store/database/faults.ts'
import { databaseNote } from '../../store/database/daemon-settings.ts'
import { describeMissing, hasUnreadDatabase, whyUnread } from '../../store/database/unread.ts'
import { discardLocalKey } from '../../store/local-key.ts'
import { type LocalKey, keyTitle } from '../../store/keys.ts'
import type { Writes } from '../../store/writes.ts'
import { createSecretFile } from '../secret-file.ts'
import { type GlobalOptions, note, print, printJson, settings } from '../context.ts'
import { timeOf, table } from '../output.ts'

/** Options of `patchmirror keys create`. */
interface CreateKeyOptions extends GlobalOptions {
  name?: string
  out?: string
  /** Print the id, and the key unless it goes into a file, as JSON. */
  json?: boolean
}

const LONGEST_NAME = 80

/** `patchmirror keys create`: creates a key and prints it once, on standard output or into a new file. */
export async function createKeyCommand(options: CreateKeyOptions): Promise<number> {
  const name = (options.name ?? '').trim()
  if (name.length > LONGEST_NAME || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name))
    throw new MirrorError('usage', `--name takes up to ${LONGEST_NAME} visible characters`)
  const file = options.out === undefined ? null : createSecretFile(options.out)
  try {
    const made = await write(options, (store) => {
      const { id, key } = store.keys.createKey(name, Date.now(), operatorName())
      try {
        file?.write(key)
      } catch (error) {
        store.keys.revokeKey(id, Date.now(), operatorName()) // it was never shown
        throw error
      }
      return { id, key }
    })
    if (options.json === true)
      printJson({
        id: made.id,
        name,
        ...(file === null ? { key: made.key } : { out: options.out }),
      })
    else if (file === null) print(made.key)
    const where = file === null ? 'It is not shown again' : `It is in ${options.out ?? ''}`
    process.stderr.write(`key ${made.id} is made. ${where}; a running mirror takes it at once\n`)
    return 0
  } catch (error) {
    file?.discard()
    throw error
  }
}

/** `patchmirror keys revoke ID`: the key opens nothing from now on, also on a running mirror. */
export async function revokeKeyCommand(id: string, options: GlobalOptions & { json?: boolean }): Promise<number> {
  const number = /^\d{1,15}$/.test(id) ? Number(id) : 0
  const known = await write(options, (store, dataDir) => {
    const key = store.keys.listKeys().find((one) => one.id === number)
    if (key === undefined) return undefined
    const hash = store.keys.listKeyHashes().find((one) => one.id === number)?.hash
    store.keys.revokeKey(number, Date.now(), operatorName())
    if (hash !== undefined) discardLocalKey(dataDir, hash, store.secrets.readSecret('keys'))
    return key
  })
  if (known === undefined)
    throw new MirrorError('not_found', `there is no key ${id}: name it by its id, which "patchmirror keys list" shows`)
  if (options.json === true) {
    printJson({ id: known.id, name: known.name, revoked: true, already: known.revokedAt !== null })
    return 0
  }
  print(
    known.revokedAt === null
      ? `${keyTitle(known)} is revoked`
      : `${keyTitle(known)} was revoked already, at ${timeOf(known.revokedAt)}${byOf(known)}`,
  )
  return 0
}

const COLUMNS = ['id', 'name', 'key', 'created', 'created by', 'revoked', 'revoked by']

/** `patchmirror keys list`: every key ever made, without what would open anything. */
export function listKeysCommand(options: GlobalOptions & { json?: boolean }): number {
  const { dir } = settings(options, false, []).config.data
  const keys = readKeys(dir)
  const { replacedAt } = databaseNote(dir)
  if (replacedAt !== undefined) note(`${timeOf(Date.parse(replacedAt))}: ${REPLACED}`)
  if (options.json === true) printJson(keys.map(shown))
  else if (keys.length === 0)
    print('no key is stored here: the first "patchmirror serve" makes one, and "patchmirror keys create" makes more')
  else print(table(COLUMNS, keys.map(row)))
  return 0
}

const REPLACED =
  'mirror.db was found to be another one than before; keys that only the one before has are not listed, and open nothing'

/** Throws `not_ready` where the database that has them is not migrated, or was lost. */
function readKeys(dataDir: string): LocalKey[] {
  const stored = namingFaults(dataDir, () => withReads(dataDir, ({ keys }) => keys.listKeys()))
  if (stored !== null) return stored
  if (hasUnreadDatabase(dataDir) || describeMissing(dataDir) !== null)
    throw whyUnread(dataDir, `no key can be listed from ${dataDir}`)
  return []
}

async function write<T>(options: GlobalOptions, work: (store: Writes, dataDir: string) => T): Promise<T> {
  const { dir } = settings(options, false, []).config.data
  return withWrites(dir, (store) => namingFaults(dir, () => work(store, dir)))
}

function byOf({ revokedBy }: LocalKey): string {
  return revokedBy === null ? '' : `, by ${revokedBy}`
}

function row({ id, name, prefix, ...key }: LocalKey): string[] {
  const created = timeOf(key.createdAt)
  const revoked = timeOf(key.revokedAt)
  const by = [key.createdBy, key.revokedBy].map((user) => user ?? '-')
  return [String(id), name || '-', `${prefix}…`, created, by[0] ?? '', revoked, by[1] ?? '']
}

function shown({ createdAt, revokedAt, ...key }: LocalKey): object {
  return { ...key, createdAt: toIsoOrNull(createdAt), revokedAt: toIsoOrNull(revokedAt) }
}
