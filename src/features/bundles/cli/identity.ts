import { withStoredReads } from '../../../cli/store-access.ts'
import { withWrites } from '../../../cli/store-writes.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { type GlobalOptions, print, printJson, settings } from '../../../cli/context.ts'

/** Options of `patchmirror identity`. */
interface IdentityOptions extends GlobalOptions {
  /** Give this mirror another one: after it was restored from a backup, or copied. */
  new?: boolean
  json?: boolean
}

/**
 * `patchmirror identity [--new]`: who this mirror is in the bundles that it exports. With another identity those below no
 * longer go by its sequence, which went backwards with a backup, but by upstream's dates.
 */
export async function identityCommand(options: IdentityOptions): Promise<number> {
  const { dir } = settings(options, false, []).config.data
  const before = readIdentity(dir)
  const show = (identity: string): void => {
    if (options.json === true) printJson({ identity })
    else print(identity)
  }
  if (options.new !== true) {
    show(before)
    return 0
  }
  const lock = acquireLock(dir, 'export')
  try {
    show(await withWrites(dir, ({ ledger }) => ledger.renewIdentity()))
  } finally {
    lock.release()
  }
  process.stderr.write(
    `patchmirror: this mirror was ${before}. Export a full bundle next; an outbox gets one by itself\n`,
  )
  return 0
}

function readIdentity(dataDir: string): string {
  const none = `there is no database in ${dataDir} yet, so this mirror has no identity: sync or import first`
  return withStoredReads(dataDir, none, ({ ledger }) => ledger.readIdentity())
}
