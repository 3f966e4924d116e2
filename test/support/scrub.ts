import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { type RunningScrub, type ScrubOptions, startScrub } from '../../src/daemon/verification/scrub.ts'
import { databasePath } from '../../src/store/database/open.ts'
import { createReads } from '../../src/store/reads.ts'
import { type CatalogBench, filledCatalogBench } from './catalog/mirror.ts'
import type { Bench } from './mirror.ts'

const SERVICE = { images: 1, tags: 2, packages: 1, tickets: 5, avrs: 0, users: 0, subscriptions: 0 }
const NEVER = '0 0 29 2 *'

/** Returns a mirror of a small catalog that verifies nothing by itself. */
export function scrubbedBench(): Promise<CatalogBench> {
  const env = { LIMIT_VERIFY_SCHEDULE: NEVER }
  return filledCatalogBench(SERVICE, { PATCHMIRROR_CATALOG_SCOPE: 'all' }, { env })
}

interface Scrubbed {
  readonly scrub: RunningScrub
  /** Lines of the log. */
  readonly said: string[]
  /** Starts a verification and resolves when it has ended. */
  readonly verify: () => Promise<void>
}

/** Starts the verification of a bench, whose runs are made by the bench's own runner. */
export function scrubOf(bench: Bench, more: Partial<ScrubOptions> = {}): Scrubbed {
  const { config, dir } = bench
  const said: string[] = []
  const say = (_: object, line: string): void => void said.push(line)
  const db = new Database(databasePath(dir), { readonly: true })
  let ended = (): void => undefined
  const scrub = startScrub({
    config,
    log: { info: say, warn: say, error: say, debug: say } as unknown as ScrubOptions['log'],
    now: Date.now,
    reads: { live: createReads(db) },
    thread: {
      request: async ({ source, ...request }) => ({ report: await bench.run(source, request) }),
      checkpoint: () => undefined,
    },
    onVerified: () => ended(),
    ...more,
  })
  onTestFinished(async () => {
    await scrub.close()
    db.close()
  })
  const verify = (): Promise<void> =>
    new Promise((resolve) => {
      ended = resolve
      scrub.start()
    })
  return { scrub, said, verify }
}

/** Flips a bit of stored bytes behind the mirror's back. */
export function flip({ dir }: Bench, table: string, column: string): void {
  const db = new Database(databasePath(dir))
  const row = db.prepare(`SELECT rowid AS id, ${column} AS bytes FROM ${table} ORDER BY rowid LIMIT 1`).get() as {
    id: number
    bytes: Buffer
  }
  const at = row.bytes.length >> 1
  row.bytes[at] = (row.bytes[at] ?? 0) ^ 1
  db.prepare(`UPDATE ${table} SET ${column} = ? WHERE rowid = ?`).run(row.bytes, row.id)
  db.close()
}
