import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { sha256Hex } from '../../../../../src/base/digest.ts'
import { readVexGeneration } from '../../../../../src/features/scanners/store/generations.ts'
import { readOpenVex } from '../../../../../src/features/scanners/views/vex/openvex.ts'
import { type VexReport, makeVexRepository } from '../../../../../src/features/scanners/views/vex/repository.ts'
import type { Dice } from '../../../../support/dice.ts'

/** A VEX document that a mirror has. */
interface Mirrored {
  readonly content: Buffer
  changed: number
  isDamaged: boolean
  tags: readonly string[]
  /** Whether its signature is enforced and not verified. */
  isDisbelieved?: boolean
}

/** VEX documents of a mirror, and what is made of them. */
export interface VexBench {
  readonly dir: string
  readonly documents: Map<string, Mirrored>
  /** Digests of the documents that were read since this was cleared. */
  readonly read: Set<string>
  readonly add: (content: Buffer, isDamaged?: boolean, tags?: readonly string[]) => string
  /** Ids of the tags of whose VEX some could not be fetched. */
  readonly withoutVex: string[]
  /** Makes a document that of these tags. */
  readonly assign: (digest: string, tags: readonly string[]) => void
  make(rebuild?: boolean): Promise<VexReport | null>
  /** The archive in use, and what describes it. */
  made(): { bytes: Buffer; folder: string; sources: string; snapshot: string }
  /** The archive of the same documents in a new data folder, and what was skipped. */
  fresh(): Promise<{ bytes: Buffer; skipped: readonly string[] | undefined }>
}

/** A data folder whose VEX documents a test chooses; removed with the test. */
export function openVexBench(imagesOf?: (tag: string) => readonly string[]): VexBench {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-vex-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const documents = new Map<string, Mirrored>()
  const read = new Set<string>()
  const withoutVex: string[] = []
  let clock = 1_800_000_000
  let snapshots = 0
  const make = (dataDir: string, rebuild: boolean, taken = new Set<string>()) =>
    makeVexRepository({
      dataDir,
      rebuild,
      reads: { ...readsOf(documents, taken), listTagsWithoutVex: () => [...withoutVex] },
      ...(imagesOf !== undefined && { imagesOf }),
      snapshot: { id: `s-${snapshots}`, asOf: snapshots },
      pause: () => Promise.resolve(),
    })
  return {
    dir,
    documents,
    read,
    withoutVex,
    assign(digest, tags) {
      const document = documents.get(digest)
      if (document !== undefined) document.tags = tags
    },
    add(content, isDamaged = false, tags = []) {
      const digest = sha256Hex(content)
      if (!documents.has(digest)) documents.set(digest, { content, changed: clock++, isDamaged, tags })
      return digest
    },
    make(rebuild = false) {
      snapshots++
      return make(dir, rebuild, read)
    },
    made: () => madeIn(dir),
    async fresh() {
      const other = mkdtempSync(join(tmpdir(), 'patchmirror-vex-'))
      try {
        const report = await make(other, false)
        return { bytes: madeIn(other).bytes, skipped: report?.skipped }
      } finally {
        rmSync(other, { recursive: true, force: true })
      }
    },
  }
}

/** Reads of documents, as the store has them; notes in `taken` which are read. */
function readsOf(documents: ReadonlyMap<string, Mirrored>, taken: Set<string>) {
  return {
    listVexDocuments: () =>
      [...documents]
        .map(([digest, { content, changed, tags, isDisbelieved = false }]) => ({
          digest,
          size: content.length,
          changed,
          tags,
          believedTags: isDisbelieved ? null : tags,
        }))
        .sort((one, other) => (one.digest < other.digest ? -1 : 1)),
    readVexContent({ digest }: { readonly digest: string }) {
      taken.add(digest)
      const document = documents.get(digest)
      return document === undefined || document.isDamaged ? null : document.content
    },
  }
}

function madeIn(dir: string) {
  const { folder, file, sources, snapshot } = readVexGeneration(dir) ?? {}
  if (folder === undefined || file === undefined || snapshot === undefined)
    throw new Error('there is no VEX repository')
  const list = sources === undefined ? '' : join(folder, sources.file)
  return { bytes: readFileSync(join(folder, file)), folder, sources: list, snapshot }
}

const TIMES = ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00+01:00', 'soon', '2025-12-31T23:00:00-01:00']
const LONG = `pkg:npm/${'l'.repeat(5000)}`

/** An OpenVEX document about few packages: documents often have equal statements, and statements often have equal times. */
export function anyOpenVex(dice: Dice): Buffer {
  const isOld = dice(5) === 0
  const product = (): unknown => {
    const purl = dice(40) === 0 ? LONG : `pkg:npm/p${dice(1 + dice(14))}`
    return isOld ? purl : { '@id': purl }
  }
  const time = (): object => (dice(3) === 0 ? {} : { timestamp: TIMES[dice(TIMES.length)] })
  const statements = Array.from({ length: dice(6) }, () => ({
    vulnerability: isOld ? `CVE-${dice(2)}` : { name: `CVE-${dice(2)} “ü” ]}` },
    products: Array.from({ length: dice(3) === 0 ? 2 : 1 }, product),
    status: dice(6) > 0 ? 'fixed' : 'affected',
    ...(dice(3) === 0 ? time() : {}),
  }))
  const head = { '@context': 'https://openvex.dev/ns/v0.2.0', author: `A${dice(3)}`, ...time() }
  return Buffer.from(JSON.stringify({ ...head, nonce: dice(1_000_000), statements }))
}

/** One that may be something else. */
function anyDocument(dice: Dice): Buffer {
  if (dice(6) === 0) return Buffer.from(`{"bomFormat":"CycloneDX","serial":${dice(1_000_000)}}`)
  if (dice(12) === 0) return Buffer.from(`{"@context":"openvex",${dice(1_000_000)}`)
  return anyOpenVex(dice)
}

/**
 * Changes some documents, or none: new ones, of which some cannot be read, others that can be read now, and such that go. Returns
 * how many are to be read, and the packages that the changes are about.
 */
function changeSome({ documents, add }: VexBench, dice: Dice) {
  const about: Buffer[] = []
  const any = (): string => [...documents.keys()][dice(documents.size)] ?? ''
  for (const document of documents.values()) {
    if (!document.isDamaged) continue
    about.push(document.content)
    if (dice(3) > 0) continue
    document.isDamaged = false
    document.changed += 1000
  }
  for (let count = dice(4); count > 0; count--) {
    const content = anyDocument(dice)
    add(content, dice(8) === 0)
    about.push(content)
  }
  const toRead = about.length
  for (let count = dice(documents.size > 12 ? 4 : 3); count > 0; count--) {
    const digest = any()
    about.push(documents.get(digest)?.content ?? Buffer.alloc(0))
    documents.delete(digest)
  }
  const touched = documents.get(any())
  if (touched !== undefined && dice(5) === 0) touched.changed += 1000
  const packages = new Set(about.flatMap((content) => [...(readOpenVex(content)?.packages.keys() ?? [])]))
  return { toRead, packages: packages.size }
}

/**
 * Changes documents for so many rounds. After each the bytes are those of a build from the beginning, and no more was read and
 * made than the changes are about. Returns how many members were copied.
 */
export async function followHistory(bench: VexBench, dice: Dice, rounds: number) {
  let copied = 0
  for (let count = 0; count < 12; count++) bench.add(anyDocument(dice))
  for (let round = 0; round < rounds; round++) {
    const { toRead, packages } = changeSome(bench, dice)
    bench.read.clear()
    const report = await bench.make()
    const fresh = await bench.fresh()
    expect(bench.made().bytes.equals(fresh.bytes)).toBe(true)
    expect(await bench.make()).toBeNull() // another snapshot with the same documents
    expect(bench.made().bytes.equals(fresh.bytes)).toBe(true)
    if (report === null || round === 0) continue
    expect(report.read).toBeLessThanOrEqual(toRead)
    expect(bench.read.size).toBeLessThanOrEqual(toRead + packages) // one that was alone is read again
    expect(report.made).toBeLessThanOrEqual(packages)
    expect(report.skipped).toEqual(fresh.skipped)
    copied += report.copied
  }
  return copied
}
