import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { ExportOptions } from '../../../src/features/bundles/export/export.ts'
import { createBundleWriter } from '../../../src/features/bundles/export/writer.ts'
import {
  type KeyTrust,
  type PublicKey,
  type SigningKey,
  readSigningKey,
} from '../../../src/features/bundles/format/keys.ts'
import { FORMAT, type ManifestHead } from '../../../src/features/bundles/format/manifest.ts'
import { openBundle } from '../../../src/features/bundles/import/open.ts'
import { combineDigests } from '../../../src/store/replication/rows.ts'

/** A folder that is removed with all others of the suite. */
export function scratch(): string {
  return mkdtempSync(join(tmpdir(), 'patchmirror-bundle-'))
}

/** A key pair, read from files as a user's is. */
export function keyPair(folder: string, name: string): SigningKey & { path: string } {
  const path = join(folder, `${name}.pem`)
  const { privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return { ...readSigningKey(path), path }
}

/** When the bundles of these tests are made, and a time at which they are good. */
export const MADE = Date.parse('2026-05-01T00:00:00.000Z')
export const LATER = MADE + 86_400_000

const HEX = 'ab'.repeat(32)

/** A head as an exporter writes it, with some fields as the test needs them. */
export function head(fields: Partial<ManifestHead> = {}): ManifestHead {
  const source = { snapshot: 'cd'.repeat(32), digest: HEX, records: 1, whole: true, bases: [] }
  const made: ManifestHead = {
    format: FORMAT,
    mirror: '00112233445566778899aabbccddeeff',
    sequence: 7,
    kind: 'full',
    createdAt: new Date(MADE).toISOString(),
    expiresAt: new Date(MADE + 90 * 86_400_000).toISOString(),
    program: 'patchmirror/0.1.0',
    digest: HEX,
    sources: { osv: { ...source, asOf: '2026-04-30T00:00:00.000Z' } },
    base: null,
    counts: { 'osv-record': { put: 1, removed: 0 } },
    ...fields,
  }
  return { ...made, digest: fields.digest ?? digestOf(made.sources) }
}

/** The digest of a manifest's sources together. */
export function digestOf(sources: ManifestHead['sources']): string {
  return combineDigests(Object.fromEntries(Object.entries(sources).map(([name, { digest }]) => [name, digest])))
}

/** A member's name, its content, and whether it is a pack of rows. */
export type Given = readonly [name: string, content: Buffer]

export const SMALL: readonly Given[] = [
  ['osv/all.zip', Buffer.from('an archive as it lies')],
  ['rows/osv/osv-record-00001.jsonl', Buffer.from('{"id":"ROOT-1"}\n')],
  [`blobs/${'0f'.repeat(32)}.gz`, gzipSync('a document')],
]

/** Writes a bundle; returns its files. */
export async function writeBundle(
  path: string,
  keys: readonly SigningKey[],
  given: readonly Given[] = SMALL,
  fields: Partial<ManifestHead> = {},
  split: number | null = null,
): Promise<string[]> {
  const writer = createBundleWriter(path, { split, force: true })
  for (const [name, content] of given) {
    if (name.startsWith('rows/')) await writer.addDeflated(name, content)
    else await writer.addStored(name, content.length, [content])
  }
  await writer.complete(head(fields), keys)
  const files = await writer.publish()
  return files
}

/** Trust in some keys, at a time when the bundles of these tests are good. */
export function trust(keys: readonly PublicKey[], more: Partial<KeyTrust> = {}): KeyTrust {
  const now = (): number => LATER
  return { keys, revoked: new Set(), allowUnsigned: false, now, ...more }
}

/** Opens and verifies; null when all is well, else why it is refused. */
export async function refusal(paths: readonly string[], whom: KeyTrust): Promise<string | null> {
  try {
    const bundle = await openBundle(paths, whom)
    try {
      await bundle.verify()
      return null
    } finally {
      await bundle.close()
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'MirrorError') return error.message
    throw error
  }
}

/** Returns the options of a plain export of everything; `path`, keys and clock are the test's. */
export function plainExport(given: Pick<ExportOptions, 'dataDir' | 'path' | 'keys' | 'now'>): ExportOptions {
  return {
    ...given,
    sources: null,
    since: null,
    need: null,
    split: null,
    force: false,
    trustRoot: [],
    expireDays: 90,
    keep: 30,
    spared: [],
    program: 'patchmirror/test',
    onProgress: () => undefined,
  }
}
