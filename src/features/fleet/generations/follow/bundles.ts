import { createReadStream, createWriteStream, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { SourceName } from '../../../../base/domain/sources.ts'
import { EMPTY_DIGEST, combineDigests } from '../../../../store/replication/rows.ts'
import { digestOfChunks } from '../../../../base/digest.ts'
import { refuseFullDisk } from '../../../../base/disk-space.ts'
import { PRIVATE_FILE } from '../../../../base/files.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { type Generation, type NamedObject, sourcesOf } from '../format/generation.ts'
import { fleetFolder } from '../position.ts'
import { refuseGeneration } from '../format/refusals.ts'
import { lostObject } from '../uploads.ts'

/** A bundle on the store, and the state that it leads to. */
export interface ChosenBundle extends NamedObject {
  readonly digest: string
}

/** A downloaded bundle, and the state that it must lead to. */
export interface DownloadedBundle {
  readonly path: string
  /** The combined state digest that its manifest must name. */
  readonly digest: string
}

/** Returns the bundles that lead from the stored state digests to a generation, in order. */
export function chooseBundles(
  stored: Partial<Record<SourceName, string>>,
  { sources, full, delta, thin = [], digest }: Pick<Generation, 'sources' | 'full' | 'delta' | 'thin' | 'digest'>,
): ChosenBundle[] {
  const state = combineDigests(stored)
  const next = thin.findLastIndex(({ base }) => base === state)
  if (next >= 0) return thin.slice(next)
  if (delta === null) return [full, ...thin]
  const named = { ...delta, digest: thin[0]?.base ?? digest }
  const applies = sourcesOf(sources).every(([source, to]) => {
    const from = stored[source] ?? EMPTY_DIGEST
    return (from === to.digest && thin.length === 0) || delta.bases[source]?.includes(from) === true
  })
  if (applies) return [named, ...thin]
  return full.digest === named.digest ? [full, ...thin] : [full, named, ...thin]
}

/** Downloads bundles one after the other; other downloads are removed. */
export async function downloadBundles(
  store: ObjectStore,
  dataDir: string,
  chosen: readonly ChosenBundle[],
): Promise<DownloadedBundle[]> {
  sweepDownloads(dataDir, chosen)
  const bundles: DownloadedBundle[] = []
  for (const one of chosen) bundles.push({ path: await downloadBundle(store, dataDir, one), digest: one.digest })
  return bundles
}

/**
 * Downloads a bundle into the fleet's folder and returns its path. A download that broke off is continued where it ended;
 * the result has the named size and SHA-256. Throws `fleet`, with the reason `missing` or `damaged`, and `storage`.
 */
export async function downloadBundle(store: ObjectStore, dataDir: string, named: NamedObject): Promise<string> {
  const path = join(fleetFolder(dataDir), `${named.sha256}.zip`)
  if ((await whyWrong(path, named)) === null) return path
  const part = `${path}.part`
  const done = sizeOf(part)
  if (done > named.size) rmSync(part, { force: true })
  const from = done > named.size ? 0 : done
  if (from < named.size) {
    await refuseFullDisk(dataDir, named.size - from)
    await fetchRest(store, named, part, from)
  }
  const why = await whyWrong(part, named)
  if (why !== null) {
    if (sizeOf(part) >= named.size) rmSync(part, { force: true })
    throw refuseGeneration(
      'damaged',
      `${named.key} on ${store.url} ${why}: the object or its download was damaged. It is fetched again; if that does ` +
        'not help, delete the object: the next generation names another one',
    )
  }
  renameSync(part, path)
  return path
}

async function fetchRest(store: ObjectStore, { key, size }: NamedObject, part: string, from: number): Promise<void> {
  const found = await store.get(key, { from, maxBytes: size - from })
  if (found === null) throw lostObject(store, key)
  await pipeline(found.body, createWriteStream(part, { flags: 'a', mode: PRIVATE_FILE }))
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Returns why a file is not the named object; null: it is. */
async function whyWrong(path: string, { size, sha256 }: NamedObject): Promise<string | null> {
  const stored = sizeOf(path)
  if (stored !== size) return `has ${stored} bytes, not ${size}`
  if ((await digestOfChunks(createReadStream(path))) === sha256) return null
  return `does not have the SHA-256 ${sha256}`
}

/** Returns the file in which the whole bundle of a downloaded thin one is made. */
export function wholeOf(path: string): string {
  return `${path}${WHOLE}`
}

const WHOLE = '.whole'
const DOWNLOAD = /^[\da-f]{64}\.zip(?:\.part|\.whole)?$/

/** Removes downloads of other objects, as of a killed process or an outdated generation, and what was made of thin ones. */
function sweepDownloads(dataDir: string, keep: readonly NamedObject[]): void {
  const folder = fleetFolder(dataDir)
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const isKept = !name.endsWith(WHOLE) && keep.some(({ sha256 }) => name.startsWith(sha256))
    if (DOWNLOAD.test(name) && !isKept) rmSync(path, { force: true })
  }
}
