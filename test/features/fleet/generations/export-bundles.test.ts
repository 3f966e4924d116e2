import { expect, test } from 'vitest'
import type { ExportedFile, Exporter } from '../../../../src/features/fleet/generations/publish/exporter.ts'
import { exportBundles } from '../../../../src/features/fleet/generations/publish/export-bundles.ts'
import type { KnownGeneration } from '../../../../src/features/fleet/generations/format/generation.ts'
import { nodeConfig } from './nodes.ts'
import { emptyDisk, standInExporter } from './stand-ins.ts'

const NOW = Date.parse('2026-11-22T12:00:00Z')

/** An exporter whose deltas have this size; each file is of the state that `states` names next. */
function exporterOf(deltaBytes: number, states: string[]): Exporter & { exported: string[] } {
  const exported: string[] = []
  const manifest = { mirror: 'a'.repeat(32), sources: {}, expiresAt: null }
  return {
    ...standInExporter(emptyDisk('unused'), () => NOW),
    exported,
    findBase: () => 7,
    exportFile(since): Promise<ExportedFile> {
      const kind = since === null ? 'full' : 'delta'
      const digest = (states.length > 1 ? states.shift() : states[0]) ?? ''
      exported.push(`${kind} of ${digest}`)
      const createdAt = new Date(NOW).toISOString()
      const size = kind === 'full' ? 50_000_000 : deltaBytes
      const file = { body: Buffer.alloc(0), sha256: `${kind} ${digest}`, size }
      return Promise.resolve({
        ...file,
        manifest: { ...manifest, createdAt, digest, sequence: 7 + exported.length },
      })
    },
  }
}

/** A generation whose full bundle of 50 MB is an hour old. */
const before = {
  generation: {
    digest: 'newest',
    delta: null,
    sources: {},
    keys: ['key'],
    full: {
      key: 'bundles/full.zip',
      sha256: 'full',
      size: 50_000_000,
      digest: 'full',
      createdAt: new Date(NOW - 3_600_000).toISOString(),
    },
  },
} as KnownGeneration

test.each([
  [5_000, 'thin'],
  [5_001, 'delta'],
])('a generation in which %i names differ has a bundle that is %s', async (changed, kind) => {
  const exporter = exporterOf(5_000_000, ['a'])
  const store = { head: (key: string) => Promise.resolve({ key, size: 50_000_000, etag: 'x', modifiedAt: NOW }) }
  const common = { store, exporter, config: nodeConfig('unused'), now: () => NOW, before, keys: [{ id: 'key' }] }
  const counts = { added: 0, removed: 0, changed }
  const canTakeThin = () => Promise.resolve(true)
  const { thin, delta } = await exportBundles({ ...common, counts, canTakeThin, reason: 'publish' })
  expect(thin.length > 0 ? 'thin' : 'delta').toBe(kind)
  expect(delta === null).toBe(kind === 'thin')
})

async function exported(deltaBytes: number, states: string[], stored: number | null = 50_000_000, key = 'key') {
  const exporter = exporterOf(deltaBytes, states)
  const config = nodeConfig('unused')
  const now = (): number => NOW
  const info = stored === null ? null : { key: 'bundles/full.zip', size: stored, etag: 'x', modifiedAt: NOW }
  const store = { head: (key: string) => Promise.resolve(key === info?.key ? info : null) }
  const counts = { added: 0, removed: 0, changed: 1 }
  const given = { store, exporter, config, now, before, counts, keys: [{ id: key }], reason: 'publish' as const }
  const bundles = await exportBundles(given)
  return { ...bundles, exported: exporter.exported }
}

test('a generation has a delta alone while the delta is small beside the last full bundle', async () => {
  const { full, delta, exported: files } = await exported(5_000_000, ['a'])
  expect(files).toEqual(['delta of a'])
  expect([full.digest, delta?.sha256]).toEqual(['full', 'delta a'])
})

test('a generation has a new full bundle too once the delta is large beside the last one', async () => {
  const { full, delta, digest, exported: files } = await exported(5_000_001, ['a'])
  expect(files).toEqual(['delta of a', 'full of a'])
  expect([full.digest, delta?.sha256, digest]).toEqual(['a', 'delta a', 'a'])
})

test.each([null, 49_999_999])(
  'a generation has a new full bundle where the last one is not stored: %s',
  async (size) => {
    const { full, exported: files } = await exported(5_000_000, ['a'], size)
    expect(files).toEqual(['delta of a', 'full of a'])
    expect(full.digest).toBe('a')
  },
)

test('the delta of a generation leads to a state that was published while its full bundle was exported', async () => {
  const { full, delta, digest, exported: files } = await exported(5_000_001, ['a', 'b', 'b'])
  expect(files).toEqual(['delta of a', 'full of b', 'delta of b'])
  expect([full.digest, delta?.sha256, digest]).toEqual(['b', 'delta b', 'b'])
})

test('a generation has a new full bundle too when a key signs that did not sign the one before', async () => {
  const { full, exported: files } = await exported(5_000_000, ['a'], 50_000_000, 'another key')
  expect([full.digest, files]).toEqual(['a', ['delta of a', 'full of a']])
})
