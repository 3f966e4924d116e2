import { sha256Hex } from '../../../../src/base/digest.ts'
import { toIso } from '../../../../src/base/time.ts'
import type { Importer } from '../../../../src/features/fleet/generations/follow/importer.ts'
import type { Position } from '../../../../src/features/fleet/generations/position.ts'
import type { ExportedFile, Exporter } from '../../../../src/features/fleet/generations/publish/exporter.ts'
import { readObject } from '../../../../src/features/fleet/objects/object-store.ts'
import type { AdoptedRow } from '../../../../src/store/changes/log-adoption.ts'
import { combineDigests } from '../../../../src/store/replication/rows.ts'

/** What a node keeps over its restarts: a version number stands for all mirrored data. */
export interface Disk {
  readonly name: string
  version: number
  asOf: number
  applied: Position | null
  published: Buffer | null
  log: AdoptedRow[]
  /** Sequences of remembered states, by digest. */
  readonly bases: Map<string, number>
  readonly downloads: Map<string, Buffer>
}

/** The disk of a node with nothing on it. */
export function emptyDisk(name: string): Disk {
  return {
    name,
    version: 0,
    asOf: 0,
    applied: null,
    published: null,
    log: [],
    bases: new Map(),
    downloads: new Map(),
  }
}

const digestOf = (version: number): string => sha256Hex(`content ${version}`)
const snapshotOf = (version: number): string => sha256Hex(`snapshot ${version}`)

/** The combined digest of a version, as manifests name it. */
export function combinedOf(version: number): string {
  return combineDigests({ osv: digestOf(version) })
}

/** Stores another version, as a sync does. */
export function syncTo(disk: Disk, version: number, now: number): void {
  disk.asOf = now
  if (disk.version === version) return
  logChange(disk, version, now)
  disk.version = version
}

function logChange(disk: Disk, version: number, now: number): void {
  disk.log.push({
    id: (disk.log.at(-1)?.id ?? 0) + 1,
    source: 'osv',
    snapshot: snapshotOf(version),
    previous: disk.version === 0 ? null : snapshotOf(disk.version),
    sequence: version,
    publishedAt: now,
    asOf: now,
    records: 1,
    added: 0,
    changed: 1,
    removed: 0,
    complete: true,
    names: [['record', 'changed']],
  })
}

interface StandInBundle {
  readonly to: number
  /** Null: full. */
  readonly from: readonly string[] | null
  readonly thin: boolean
  readonly nonce: number
}

let nonce = 0

/** An exporter of a node whose bundles are a few bytes. */
export function standInExporter(disk: Disk, now: () => number): Exporter {
  const record = (): number => {
    const sequence = disk.bases.get(digestOf(disk.version)) ?? disk.bases.size + 1
    disk.bases.set(digestOf(disk.version), sequence)
    return sequence
  }
  return {
    ...readsOf(disk),
    readState: () =>
      disk.version === 0
        ? null
        : {
            mirror: sha256Hex(disk.name).slice(0, 32),
            contentDigest: null,
            asOf: { osv: disk.asOf },
            withheldAt: 0,
            snapshots: { osv: snapshotOf(disk.version) },
          },
    findBase(digest) {
      const found = [...disk.bases].find(([of]) => combineDigests({ osv: of }) === digest)
      return found?.[1] ?? null
    },
    knows: ({ osv }) => disk.log.some(({ snapshot }) => snapshot === osv?.snapshot),
    exportFile: (since, _, thin = false) => Promise.resolve(exportOf(disk, { since, thin }, record, now())),
    readRows: (after) => disk.log.filter(({ id }) => id > after),
    remember: () => Promise.resolve(void record()),
    recordPublished(object) {
      disk.published = object
    },
    isRollingBack: () => false,
    discard: () => undefined,
  }
}

function exportOf(
  disk: Disk,
  { since, thin }: { since: number | null; thin: boolean },
  record: () => number,
  now: number,
): ExportedFile {
  const { version, bases: known, name } = disk
  const isBase = (n: number): boolean => since !== null && (thin ? n === since : n >= since)
  const bases = [...known].filter(([, n]) => isBase(n)).map(([of]) => of)
  const bundle: StandInBundle = { to: version, from: since === null ? null : bases, thin, nonce: ++nonce }
  const body = Buffer.from(JSON.stringify(bundle))
  const digest = digestOf(version)
  const source = { snapshot: snapshotOf(version), digest, records: 1, whole: true, bases }
  const manifest = {
    mirror: sha256Hex(name).slice(0, 32),
    sequence: record(),
    expiresAt: null,
    digest: combinedOf(version),
    createdAt: toIso(now),
    sources: { osv: { ...source, asOf: toIso(disk.asOf) } },
  }
  return { body, size: body.length, sha256: sha256Hex(body), manifest }
}

/** An importer of a node; it refuses a delta that does not build on what is stored. */
export function standInImporter(disk: Disk): Importer {
  const bundleAt = (path: string): StandInBundle => JSON.parse(String(disk.downloads.get(path))) as StandInBundle
  return {
    ...readsOf(disk),
    readSnapshots: () => (disk.version === 0 ? {} : { osv: snapshotOf(disk.version) }),
    readDigests: () => (disk.version === 0 ? {} : { osv: digestOf(disk.version) }),
    async download(store, chosen) {
      const bundles = []
      for (const { key, sha256, size, digest } of chosen) {
        const found = await readObject(store, key, size)
        if (found === null || sha256Hex(found.bytes) !== sha256) throw new Error(`${key} is not what was named`)
        disk.downloads.set(key, found.bytes)
        bundles.push({ path: key, digest })
      }
      return bundles
    },
    stage: () => Promise.resolve(),
    async apply(bundles, { position, log, beforeCommit }) {
      let version = disk.version
      for (const { path, digest } of bundles) {
        const { to, from, thin } = bundleAt(path)
        const applies = from === null || (version === to && !thin) || from.includes(digestOf(version))
        if (!applies || combinedOf(to) !== digest) throw new Error('a delta of another state')
        version = to
      }
      await beforeCommit()
      disk.version = version
      disk.applied = position
      if (log !== null) disk.log = [...disk.log.filter(({ id }) => id <= log.after), ...log.rows]
    },
    remember: () => {
      disk.bases.set(digestOf(disk.version), disk.bases.size + 1)
      return Promise.resolve()
    },
    discard: (path) => void disk.downloads.delete(path),
  }
}

function readsOf(disk: Disk): Pick<Importer, 'readApplied' | 'readPublished'> {
  return { readApplied: () => disk.applied, readPublished: () => disk.published }
}
