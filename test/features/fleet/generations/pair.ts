import { type Follower, createFollower } from '../../../../src/features/fleet/generations/follow/follow.ts'
import { openGeneration, sealGeneration } from '../../../../src/features/fleet/generations/format/envelope.ts'
import type { Generation } from '../../../../src/features/fleet/generations/format/generation.ts'
import { generationKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { type PublishResult, publishGeneration } from '../../../../src/features/fleet/generations/publish/publish.ts'
import { createUseWatch } from '../../../../src/features/fleet/generations/uploads.ts'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { type MemoryBucket, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { signer } from '../../bundles/air-gap.ts'
import { fleetTrust, nodeConfig } from './nodes.ts'
import { type Disk, emptyDisk, standInExporter, standInImporter, syncTo } from './stand-ins.ts'

export const HOUR = 3_600_000
export const START = Date.parse('2026-05-01T00:00:00.000Z')

/** A leader whose data is a number, and a reader of it. */
export interface Pair {
  readonly bucket: MemoryBucket
  readonly reader: Disk
  readonly follower: Follower
  /** Another follower of the reader's folder, as after a restart. */
  readonly restart: (store?: ObjectStore) => Follower
  now: number
  /** Syncs another version and publishes it. */
  publish(epoch?: number, store?: ObjectStore): Promise<void>
  /** Has the leader look whether there is anything to publish. */
  confirm(): Promise<PublishResult['outcome']>
  /** Looks, and applies what is new; returns why it was refused, null: it was not. */
  follow(): Promise<string | null>
  /** Has the leader look at the store; returns why it refuses the newest generation. */
  look(): Promise<string | null>
  /** Gives the leader an empty data folder, with which it first follows; returns the same. */
  beginAgain(): Promise<string | null>
}

async function take(follower: Follower): Promise<string | null> {
  const { newest, isCurrent, refusal } = await follower.look()
  if (newest !== null && !isCurrent) await follower.commit(await follower.prepare(newest))
  return refusal?.reason ?? null
}

export function createPair(): Pair {
  let leader = emptyDisk('leader')
  const reader = emptyDisk('reader')
  const now = (): number => pair.now
  const config = nodeConfig('/nowhere', { PATCHMIRROR_BUNDLE_EXPIRE_DAYS: '90' })
  const bucket = createMemoryBucket({ now })
  const store = bucket.client()
  const isUnusable = createUseWatch(store, now)
  const common = { store, config, now, trust: fleetTrust(now) }
  const followerOf = (disk: Disk, store = common.store): Follower =>
    createFollower({
      ...common,
      store,
      mayPublish: disk !== reader,
      importer: standInImporter(disk),
      waitUntil: () => Promise.resolve(),
    })
  const restart = (store?: ObjectStore): Follower => followerOf(reader, store)
  const follower = restart()
  const publishStored = (epoch: number, store: ObjectStore): Promise<PublishResult> =>
    publishGeneration({
      ...common,
      store,
      dataDir: '/nowhere',
      keys: [signer()],
      epoch,
      isUnusable,
      program: 'patchmirror/test',
      exporter: standInExporter(leader, now),
    })
  const pair: Pair = {
    bucket,
    reader,
    follower,
    restart,
    now: START,
    async publish(epoch = 1, store = common.store) {
      syncTo(leader, leader.version + 1, pair.now)
      await publishStored(epoch, store)
    },
    confirm: async () => (await publishStored(1, store)).outcome,
    follow: () => take(follower),
    look: async () => (await followerOf(leader).look()).refusal?.reason ?? null,
    beginAgain() {
      leader = emptyDisk('leader')
      return take(followerOf(leader))
    },
  }
  return pair
}

/** Returns the keys of the bundles that a generation names, the full one first. */
export function namedBy({ bucket }: Pair, number: number): string[] {
  const name = generationKey(number)
  const { full, delta } = openGeneration(bucket.read(name) ?? Buffer.alloc(0), fleetTrust(), name).generation
  return [full.key, ...(delta === null ? [] : [delta.key])]
}

/** Replaces the newest generation by another one with these fields, signed. */
export function forge({ bucket }: Pair, number: number, fields: Partial<Generation>, key = signer()): void {
  const name = generationKey(number)
  const bytes = bucket.read(name) ?? Buffer.alloc(0)
  const { generation } = openGeneration(bytes, fleetTrust(), name)
  bucket.tamper(name, sealGeneration({ ...generation, ...fields }, [key]).bytes)
}
