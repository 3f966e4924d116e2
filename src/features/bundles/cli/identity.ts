import { createInterface } from 'node:readline/promises'
import { withStoredReads } from '../../../cli/store-reads.ts'
import { withWrites } from '../../../cli/store-writes.ts'
import { MirrorError } from '../../../base/errors.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { type GlobalOptions, note, print, printJson, settings } from '../../../cli/context.ts'

/** Options of `patchmirror bundle inspect` without a file. */
interface IdentityOptions extends GlobalOptions {
  /** Ask nothing. */
  yes?: boolean
  json?: boolean
}

/** `patchmirror bundle inspect`: who this mirror is in the bundles that it exports. */
export function showIdentity(options: IdentityOptions): number {
  const { dir } = settings(options, false, []).config.data
  show(readIdentity(dir), options)
  return 0
}

/**
 * `patchmirror bundle inspect --new-identity`: with another identity those below no longer go by its sequence, which went
 * backwards with a backup, but by upstream's dates.
 */
export async function newIdentityCommand(options: IdentityOptions): Promise<number> {
  const { dir } = settings(options, false, []).config.data
  const before = readIdentity(dir)
  if (options.yes !== true && !(await isConfirmed(before))) return 1
  const lock = acquireLock(dir, 'export')
  try {
    show(await withWrites(dir, ({ ledger }) => ledger.renewIdentity()), options)
  } finally {
    lock.release()
  }
  note(`this mirror was ${before}. Export a full bundle next; an outbox gets one by itself`)
  return 0
}

function show(identity: string, { json }: IdentityOptions): void {
  if (json === true) printJson({ identity })
  else print(identity)
}

/** Asks on the terminal. Throws `usage` where there is none. */
async function isConfirmed(identity: string): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new MirrorError('usage', '--new-identity asks first, and there is no terminal: give --yes as well')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const question = `This mirror is ${identity}. Mirrors below need a full bundle of the new one. Go on? [y/N] `
    const isYes = /^y(es)?$/i.test((await terminal.question(question)).trim())
    if (!isYes) note('the identity stays')
    return isYes
  } finally {
    terminal.close()
  }
}

function readIdentity(dataDir: string): string {
  const none = `there is no database in ${dataDir} yet, so this mirror has no identity: sync or import first`
  return withStoredReads(dataDir, none, ({ ledger }) => ledger.readIdentity())
}
