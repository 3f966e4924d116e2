import { basename } from 'node:path'
import { damageAdvice, lossAdvice, lostDatabase, nameStorageError } from '../../store/database/faults.ts'
import { lossBesideDaemon } from '../../store/database/loss.ts'
import { databasePath, hasLostLog, inboxPath } from '../../store/database/open.ts'
import { EMPTY_FILE, EMPTY_FILE_ADVICE, describeMissing, isEmptyFile, whyUnread } from '../../store/database/unread.ts'
import { unknownAdvice } from '../../store/database/migration-copy.ts'
import { inspectDatabases } from '../../store/database/inspect.ts'
import { isKnown, newestOf, whyUnknown } from '../../store/database/schema/schema.ts'
import { lossOfInbox } from '../../store/given-numbers.ts'
import { hasServed, lockHolder, servingDaemon } from '../../store/database/lock.ts'
import { type Finding, failure, fine, skipped, warning } from './check.ts'
import type { Examined } from './world.ts'

const NONE = 'there is no database yet: the first sync, import or start makes it'

/** Looks at the structure of the databases. */
export function soundness({ config }: Examined): Finding {
  const { dir } = config.data
  const loss = lossBesideDaemon(dir)
  if (loss !== null)
    return failure(`mirror.db: ${lostDatabase(databasePath(dir), loss).message}`, lossAdvice(dir, loss))
  const missing = describeMissing(dir)
  if (missing !== null) return warning(missing, lossAdvice(dir, 'missing'))
  if (hasLostLog(databasePath(dir))) throw whyUnread(dir, NONE)
  const lostInbox = lossOfInbox(dir)
  if (lostInbox !== null) throw nameStorageError(lostDatabase(inboxPath(dir), lostInbox), dir)
  const databases = inspectDatabases(dir, { quick: true })
  if (databases.length === 0) return skipped(NONE)
  const damaged = databases.filter(({ faults }) => faults.length > 0)
  if (damaged.length === 0)
    return fine(
      `${databases.map(({ path }) => basename(path)).join(' and ')}: no damage found in the structure; "patchmirror doctor --data" checks the contents`,
    )
  return failure(
    damaged.map(({ path, faults }) => `${basename(path)}: ${faults.join('; ')}`).join('; '),
    damaged.map(({ path }) => `${basename(path)}: ${damageAdvice(path)}`).join(' '),
  )
}

/** Looks whether this program opens the databases. */
export function schema({ config }: Examined): Finding {
  const { dir } = config.data
  const databases = inspectDatabases(dir, { quick: false })
  if (databases.length === 0) return skipped(NONE)
  const of = (one: (typeof databases)[number]): string =>
    `${basename(one.path)} has schema ${one.version}, this program knows up to ${newestOf(one.schema)}`
  const unknown = databases.filter((one) => !isKnown(one.version, one.schema))
  if (unknown.length > 0)
    return failure(
      unknown.map((one) => `${basename(one.path)} ${whyUnknown(one.version, one.schema)}`).join('; '),
      unknown.map((one) => unknownAdvice(one.path, one.schema)).join(' '),
    )
  if (isEmptyFile(dir)) return warning(`mirror.db ${EMPTY_FILE}`, EMPTY_FILE_ADVICE)
  const older = databases.filter((one) => one.version < newestOf(one.schema))
  if (older.length === 0) return fine(databases.map(of).join('; '))
  return warning(
    `${older.map(of).join('; ')}: it is not migrated yet`,
    'Start the daemon ("patchmirror serve"), which migrates it.',
  )
}

/** Compares the lock of the daemon with who answers at its address. */
export async function lock({ world, config }: Examined): Promise<Finding> {
  const { dir } = config.data
  const serving = lockHolder(dir, 'serve')
  const known = servingDaemon(dir)
  const writer = lockHolder(dir, 'sync')
  const writing = writer === null ? '' : `; ${writer} is writing (a sync or an import)`
  const port = known === null || known.port === 0 ? null : known.port
  const answering = await world.findDaemon(config, port)
  const address = 'server.listen'
  if (serving === null) {
    if (answering === null && !hasServed(dir))
      return fine(`no daemon serves this data folder: "patchmirror serve" starts one${writing}`)
    if (answering === null)
      return warning(
        `no daemon serves this data folder any more: nothing is synced on schedule or served${writing}`,
        'Start it ("patchmirror serve"), or find in its log why it ended.',
      )
    const who = answering.instance === null ? 'another program' : 'the mirror of another data folder'
    return warning(
      `no daemon serves this data folder, but ${who} answers at ${answering.url}: a daemon with these settings cannot start there`,
      `Stop it, set ${address} to another address, or set data.dir to the folder of that mirror.`,
    )
  }
  if (answering !== null && answering.instance !== null && answering.instance === known?.instance)
    return fine(`the daemon (${serving}) serves this data folder at ${answering.url}${writing}`)
  return failure(
    `${serving} has the lock of the daemon on this data folder, ` +
      (answering === null
        ? `but no daemon answers at the address of the settings (${address})`
        : `but another program answers at ${answering.url}`),
    `If it is just starting, run the doctor again. Otherwise end that process, or give ${address} the values that it was started with.`,
  )
}
