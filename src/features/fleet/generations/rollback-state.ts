import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replacePrivateFile } from '../../../base/files.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import type { Generation } from './format/generation.ts'
import { releaseKey } from './format/object-names.ts'
import { fleetFolder } from './position.ts'
import { storeOnce } from './uploads.ts'

const ROLLBACK = 'rollback.json'

/** Reports whether a rollback of this data folder has begun and is not published yet: nothing else is published then. */
export function isRollingBack(dataDir: string): boolean {
  return existsSync(join(dataDir, 'fleet', ROLLBACK))
}

/** Stores that a rollback of this data folder begins, to a generation. */
export function beginRollback(dataDir: string, to: number): void {
  replacePrivateFile(join(fleetFolder(dataDir), ROLLBACK), `${JSON.stringify({ to })}\n`)
}

/** Stores that the rollback of this data folder is published, or given up. */
export function endRollback(dataDir: string): void {
  rmSync(join(fleetFolder(dataDir), ROLLBACK), { force: true })
}

/**
 * Reports whether syncs are stopped: the newest generation is a rollback that was not released. This follows from the store
 * alone, so that it survives a takeover.
 */
export async function isUnreleased(
  store: ObjectStore,
  { generation, reason }: Pick<Generation, 'generation' | 'reason'>,
): Promise<boolean> {
  return reason === 'rollback' && (await store.head(releaseKey(generation))) === null
}

/** Lets syncs run again after a rollback that was published as this generation. */
export async function releaseRollback(store: ObjectStore, generation: number): Promise<void> {
  await storeOnce(store, releaseKey(generation), Buffer.from(`${JSON.stringify({ generation })}\n`))
}
