import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { OF_BUNDLES } from '../../../src/documents/signatures/trust.ts'
import { trustFile } from '../../../src/config/kinds/trust.ts'
import { openBundle } from '../../../src/features/bundles/import/open.ts'
import { applyBundle } from '../../../src/features/bundles/import/apply.ts'
import { settleSignatures } from '../../../src/sync/catalog/signatures.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'
import { type Below, below, carry, folder } from './air-gap.ts'

const BY_BUNDLE = { signatures: null, signers: [], trustRoot: [OF_BUNDLES] }

/** A mirror of a service that signs the artifacts of its only tag, and the file of the service's key. */
async function signedMirror(): Promise<{ made: CatalogBench; key: string }> {
  const service = { images: 1, tags: 1, packages: 0, tickets: 0, avrs: 0, users: 0, subscriptions: 0 }
  const made = await catalogBench(service, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const [tag = ''] = made.sandbox.service.ids('tags')
  for (const kind of ['sbom', 'vex', 'provenance'] as const) made.sandbox.service.sign(tag, kind)
  await made.run('catalog')
  const key = join(made.dir, 'trusted.pem')
  writeFileSync(key, made.sandbox.service.publicKey())
  return { made, key }
}

const settled = (there: Below) => settleSignatures(there.store, BY_BUNDLE)

longTest(
  'a mirror below the gap verifies artifacts by the keys that a signed bundle carries, and by new ones with the next',
  async () => {
    const { made, key } = await signedMirror()
    const there = below()
    const bare = await carry(made.dir, folder())
    await there.take(bare.files)
    expect(bare.manifest.counts).not.toHaveProperty('trust-root')
    expect(await settled(there)).toEqual({ verified: 0, failed: 3, none: 0 })

    const media = folder()
    const full = await carry(made.dir, media, { trustRoot: [key] })
    expect(full.manifest.counts['trust-root']).toEqual({ put: 1, removed: 0 })
    // The state is the same as before: the keys cross the gap all the same, and those of an older bundle do not come back.
    expect(await there.take(full.files)).toMatchObject({ outcome: 'same', renewed: true })
    expect(await settled(there)).toEqual({ verified: 3, failed: 0, none: 0 })
    expect(await there.take(full.files)).toMatchObject({ outcome: 'same', renewed: false })
    const none = join(made.dir, 'none.pem')
    writeFileSync(none, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }))
    const rotated = await carry(made.dir, media, { trustRoot: [none] })
    await there.take(rotated.files)
    expect(await settled(there)).toEqual({ verified: 0, failed: 3, none: 0 })
    await there.take(full.files)
    expect(await settled(there)).toEqual({ verified: 0, failed: 3, none: 0 })
    await there.take(full.files, { again: true })

    // What was carried here is carried on, and a bundle without a trust root takes nothing away.
    const onward = await carry(there.dir, media, { trustRoot: [OF_BUNDLES] })
    const last = below()
    await last.take(onward.files)
    await last.take((await carry(made.dir, folder())).files, { again: true })
    expect(await settled(last)).toEqual({ verified: 3, failed: 0, none: 0 })
  },
)

longTest('a bundle that is not signed does not say whom to trust', async () => {
  const { made, key } = await signedMirror()
  const there = below()
  const { files } = await carry(made.dir, folder(), { trustRoot: [key], keys: [] })
  const bundle = await openBundle(files, { keys: [], revoked: new Set(), allowUnsigned: true, now: Date.now })
  const { config, store } = there
  await applyBundle({ config, store, bundle, file: '', trigger: 'command', now: Date.now }).finally(() =>
    bundle.close(),
  )
  expect(store.catalog.listCarriedTrust()).toEqual([])
})

longTest('a bundle without the catalog carries no trust root', async () => {
  const { made, key } = await signedMirror()
  await made.run('feeds')
  const { manifest } = await carry(made.dir, folder(), { trustRoot: [key], sources: ['feeds'] })
  expect(Object.keys(manifest.counts)).not.toContain('trust-root')
})

test('the setting takes the word for what bundles carry beside names of files', () => {
  const check = (text: string) => trustFile().check(text, { cwd: folder(), validateCron: () => true })
  expect(check('bundle')).toEqual({ value: 'bundle' })
  expect(check('./bundle')).toMatchObject({ fault: expect.stringContaining('cannot be read') as string })
})
