import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../../../support/tables.ts'
import { readVexGeneration } from '../../../../../src/features/scanners/store/generations.ts'
import { makeVexRepository } from '../../../../../src/features/scanners/views/vex/repository.ts'
import { VEX_ARCHIVE, VEX_MANIFEST } from '../../../../../src/features/scanners/routes/vex.ts'
import { performTask } from '../../../../../src/features/scanners/views/task.ts'
import { serveFolder } from '../../../bundles/air-gap.ts'
import { catalogBench } from '../../../../support/catalog/mirror.ts'

longTest('an answer of the VEX repository names the snapshot that its bytes were made of', async () => {
  const bench = await catalogBench({ images: 2, tags: 6, packages: 2, tickets: 2 })
  const make = () => performTask({ dataDir: bench.dir, kind: 'vex', vendors: ['Root'], rebuild: false })
  await bench.run('catalog')
  await make()
  const ask = await serveFolder(bench.dir, bench.config)
  const look = async (path: string) => {
    const { status, headers } = await ask(path)
    const told = { snapshot: headers['x-mirror-snapshot'], asOf: headers['x-mirror-as-of'] }
    return { status, ...told, etag: headers.etag, changed: headers['last-modified'] }
  }
  const snapshot = () => bench.store.snapshots.readSnapshot('catalog')
  const first = snapshot()
  const before = { archive: await look(VEX_ARCHIVE), manifest: await look(VEX_MANIFEST) }
  expect(before.archive).toMatchObject({ status: 200, snapshot: first?.id })
  expect(before.manifest).toMatchObject({ status: 200, snapshot: first?.id })

  const { service } = bench.sandbox
  service.addTag()
  await bench.run('catalog')
  ask.look()
  expect(snapshot()?.id).not.toBe(first?.id)
  const lag = { archive: await look(VEX_ARCHIVE), manifest: await look(VEX_MANIFEST) }
  expect(lag).toEqual(before) // the old archive is the old snapshot's, whatever is served elsewhere
  const part = await ask(VEX_ARCHIVE, { range: 'bytes=999999999-' })
  expect([part.status, part.headers['x-mirror-snapshot']]).toEqual([416, first?.id])

  await make()
  const after = await look(VEX_ARCHIVE)
  expect(after.snapshot).toBe(snapshot()?.id)
  expect(after.etag).not.toBe(before.archive.etag)

  // Documents that go take their dates along: Last-Modified moves forward all the same.
  for (const id of service.ids('tags').slice(-2)) service.remove('tags', id)
  await bench.run('catalog')
  await make()
  ask.look()
  const less = await look(VEX_ARCHIVE)
  expect(less.etag).not.toBe(after.etag)
  expect(Date.parse(String(less.changed))).toBeGreaterThan(Date.parse(String(after.changed)))
})

test('a package URL too long for the archive is skipped and reported, and the others are served', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchmirror-vex-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const wide = `pkg:npm/${'w'.repeat(300)}` // longer than the name of a file may be
  const products = [{ '@id': `pkg:npm/${'x'.repeat(70_000)}` }, { '@id': wide }, { '@id': 'pkg:npm/y' }]
  const contents = ['one', 'two'].map((id) =>
    Buffer.from(
      JSON.stringify({
        '@context': 'https://openvex.dev/ns/v0.2.0',
        '@id': id,
        statements: [{ vulnerability: { name: 'CVE-1' }, status: 'fixed', products }],
      }),
    ),
  )
  const documents = contents.map((content, i) => ({
    digest: String(i).repeat(64),
    size: content.length,
    changed: 1,
  }))
  const reads = {
    listVexDocuments: () => documents,
    readVexContent: ({ digest }: { digest: string }) => contents[Number(digest[0])] ?? null,
  }
  const pause = async (): Promise<void> => Promise.resolve()
  const report = await makeVexRepository({ dataDir, reads, snapshot: { id: 's', asOf: 1 }, pause })
  expect(report).toMatchObject({ documents: 2, packages: 2 })
  expect(report?.skipped).toEqual([expect.stringMatching(/^pkg:npm\/x{100,300}\.\.\.$/)])
  const made = readVexGeneration(dataDir)
  const names = new AdmZip(join(made?.folder ?? '', made?.file ?? '')).getEntries()
  const longest = names.flatMap(({ entryName }) => entryName.split('/')).map(({ length }) => length)
  expect(names).toHaveLength(3)
  expect(Math.max(...longest)).toBeLessThan(256)
})

test('a document whose signature is enforced and not verified is not in the repository', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchmirror-vex-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const content = Buffer.from(
    JSON.stringify({
      '@context': 'https://openvex.dev/ns/v0.2.0',
      '@id': 'one',
      statements: [{ vulnerability: { name: 'CVE-1' }, status: 'fixed', products: [{ '@id': 'pkg:npm/y' }] }],
    }),
  )
  const failed = { state: 'failed', signer: null, reason: 'why', subject: null } as const
  const make = (isEnforced: boolean) => {
    const signature = { ...failed, isEnforced }
    const one = { digest: '0'.repeat(64), size: content.length, changed: 1, signature }
    const reads = { listVexDocuments: () => [one], readVexContent: () => content }
    const pause = async (): Promise<void> => Promise.resolve()
    return makeVexRepository({ dataDir, reads, snapshot: { id: 's', asOf: 1 }, pause })
  }
  expect(await make(false)).toMatchObject({ documents: 1, packages: 1 })
  expect(await make(true)).toMatchObject({ documents: 0, packages: 0 })
})
