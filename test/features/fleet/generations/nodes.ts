import { onTestFinished } from 'vitest'
import { loadQuick } from '../../../support/limits.ts'
import type { Config } from '../../../../src/config/schema.ts'
import type { KeyTrust } from '../../../../src/features/bundles/format/keys.ts'
import { type Follower, createFollower } from '../../../../src/features/fleet/generations/follow/follow.ts'
import type { KnownGeneration } from '../../../../src/features/fleet/generations/format/generation.ts'
import {
  type PublishDeps,
  type PublishResult,
  publishGeneration,
} from '../../../../src/features/fleet/generations/publish/publish.ts'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { openReader } from '../../../../src/store/database/open.ts'
import type { RecordDates } from '../../../../src/store/dates/reads.ts'
import { createReads } from '../../../../src/store/reads.ts'
import { createCarriedReader } from '../../../../src/store/replication/reader.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { folder, signer } from '../../bundles/air-gap.ts'
import { trust as trustIn } from '../../bundles/fixtures.ts'

/** The trust of all nodes in these tests. */
export function fleetTrust(now: () => number = Date.now): KeyTrust {
  return trustIn([signer()], { now })
}

/** Settings of a node with a data folder. */
export function nodeConfig(dir: string, env: Record<string, string> = {}): Config {
  const given = { PATCHMIRROR_DATA_DIR: dir, ...env }
  return loadQuick({ env: given, cwd: process.cwd() }).config
}

/** Publishes a data folder as a leader does. */
export function publish(store: ObjectStore, dir: string, more: Partial<PublishDeps> = {}): Promise<PublishResult> {
  return publishGeneration({
    store,
    dataDir: dir,
    config: nodeConfig(dir),
    keys: [signer()],
    epoch: 1,
    trust: fleetTrust(more.now),
    program: 'patchmirror/test',
    now: Date.now,
    ...more,
  })
}

/** A reader with a data folder of its own, which commits without waiting. */
export interface Node {
  readonly dir: string
  readonly follower: Follower
  /** Looks, and applies what is new; returns the number of the stored generation, 0: none. */
  catchUp(): Promise<number>
}

/** Creates a reader. */
export function createNode(
  store: ObjectStore,
  {
    dir = folder(),
    now = Date.now,
    mayPublish = false,
    trust = fleetTrust(now),
  }: { dir?: string; now?: () => number; mayPublish?: boolean; trust?: KeyTrust } = {},
): Node {
  const follower = createFollower({
    store,
    config: nodeConfig(dir),
    trust,
    now,
    mayPublish,
    waitUntil: () => Promise.resolve(),
  })
  return {
    dir,
    follower,
    async catchUp() {
      const { newest, isCurrent } = await follower.look()
      if (newest !== null && !isCurrent) await take(follower, newest)
      return follower.position()?.generation ?? 0
    },
  }
}

async function take(follower: Follower, target: KnownGeneration): Promise<void> {
  await follower.commit(await follower.prepare(target), { atOnce: true })
}

/** A data folder with some records, which is gone when the test ends. */
export async function leader(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 5, service: false } })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  return bench
}

/** Changes records upstream, and syncs. */
export async function change(bench: Bench, records = 1): Promise<void> {
  bench.sandbox.feed.change(records)
  await bench.run('osv')
}

/** The state digest of a data folder, all rows of its change log, and the dates of all records. */
export function stateOf(dir: string): { digest: string; log: unknown[]; dates: RecordDates[] } {
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  try {
    const reads = createReads(db)
    const log = reads.changes.listLogged(0, 1000)
    return {
      digest: createCarriedReader(db).digestSources().digest,
      log: log.map((row) => [row, reads.changes.listNames(row.id, -1)]),
      dates: [...reads.dates.eachDates()],
    }
  } finally {
    db.close()
  }
}
