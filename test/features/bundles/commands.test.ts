import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { exportCommand } from '../../../src/features/bundles/cli/export.ts'
import { refuseUnwritable } from '../../../src/features/bundles/cli/files.ts'
import { importCommand } from '../../../src/features/bundles/cli/import.ts'
import { inspectCommand } from '../../../src/features/bundles/cli/inspect.ts'
import { keygenCommand } from '../../../src/features/bundles/cli/keygen.ts'
import { digestCommand, needCommand } from '../../../src/features/bundles/cli/need.ts'
import { createBundleProgress } from '../../../src/cli/progress.ts'
import { reserveFor, shownBytes } from '../../../src/base/disk-space.ts'
import { relaySecretCommand } from '../../../src/features/relay/cli.ts'
import { statusCommand } from '../../../src/cli/mirror/status/status.ts'
import { verifyCommand } from '../../../src/cli/mirror/verify.ts'
import { FEATURES } from '../../../src/features.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { sharedBench } from '../../support/shared-bench.ts'
import { keyPair, scratch } from './fixtures.ts'
import { below, carry, folder, signer } from './air-gap.ts'
import { spoken } from './error-messages.ts'
import { longTest, test } from '../../support/tables.ts'

/** Made once; a test that changes it goes on from where the last one left it. */
const above = sharedBench({ sandbox: { records: 5 } }, 'feeds', 'osv')

const envOf = (dir: string): Record<string, string> => ({
  PATCHMIRROR_DATA_DIR: dir,
  PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line,
})

longTest(
  'a dry run of an import names the base that a delta requires, and says when a bundle is stored already',
  async () => {
    const made = await above()
    const to = folder()
    const there = below()
    const states = [await carry(made.dir, to)]
    for (let i = 0; i < 2; i++) {
      made.sandbox.feed.change(1)
      await made.run('osv')
      states.push(await carry(made.dir, to, { since: String(states.at(-1)?.manifest.sequence) }))
    }
    const [first, second, third] = states.map(({ files }) => files[0] ?? '')
    const dry = (...files: (string | undefined)[]) =>
      spoken(envOf(there.dir), () =>
        importCommand(
          files.map((one) => one ?? ''),
          { dryRun: true },
        ),
      )
    const all = await dry(third, second, first)
    expect(all).toMatchObject({ code: 0 })
    expect(all.said).toContain('it would be imported')
    expect(all.said).toMatch(/was not checked in the dry run: it requires bundle 1/)
    expect(all.said).toMatch(/was not checked in the dry run: it requires bundle 2/)
    expect((await dry(first, third)).code).toBe(1)
    await there.take([first ?? ''])
    expect((await dry(first)).said).toMatch(/already imported: a dry run, nothing was stored/)
    expect(await there.refuses([to])).toMatch(/is a folder: give the bundle in it/)
    expect(await there.refuses(['/dev/null'])).toMatch(/\/dev\/null is not a regular file/)
  },
)

longTest('an import of several bundles imports the good ones, and names the others with the reason', async () => {
  const made = await above()
  const to = folder()
  const there = below()
  const [first = ''] = (await carry(made.dir, to)).files
  made.sandbox.feed.change(1)
  await made.run('osv')
  const last = await carry(made.dir, to)
  const bad = join(to, 'bad.zip')
  const lost = join(to, 'lost.zip')
  writeFileSync(bad, 'damaged')
  const files = [bad, ...last.files, first, lost]
  const fleet = { PATCHMIRROR_FLEET_URL: 'file:///srv/fleet', PATCHMIRROR_FLEET_ROLE: 'reader' }
  const inFleet = { ...envOf(there.dir), ...fleet }
  const refused = await spoken(inFleet, () => importCommand([first], {}))
  expect([refused.code, refused.said]).toEqual(['usage', expect.stringContaining('from its fleet')])
  const outcome = await spoken(envOf(there.dir), () => importCommand(files, {}))
  expect(outcome.code).toBe(1)
  expect(outcome.said).toMatch(/not imported: the bundle .*bad\.zip is refused/)
  expect(outcome.said).toMatch(/not imported: .*lost\.zip/)
  expect(there.digest()).toBe(last.manifest.digest)
  const json = await spoken(envOf(there.dir), () => importCommand([bad, first], { json: true }))
  expect(json.said).toContain('"failed"')
})

test('an inspection of several bundles shows the good ones, and names the others with the reason', async () => {
  const made = await above()
  const to = folder()
  const { files, manifest } = await carry(made.dir, to)
  const bad = join(to, 'bad.zip')
  writeFileSync(bad, 'damaged')
  const given = [bad, ...files, join(to, 'lost.zip')]
  const seen = await spoken(envOf(made.dir), () => inspectCommand(given, {}))
  expect(seen.code).toBe(1)
  expect(seen.said).toContain(manifest.digest)
  expect(seen.said).toMatch(/not shown: the bundle .*bad\.zip is refused[^]*not shown: .*lost\.zip/)
  const json = await spoken(envOf(made.dir), () => inspectCommand(given, { json: true }))
  const failed = { failed: 'bundle', message: expect.any(String) as string }
  expect(JSON.parse(json.said)).toMatchObject([failed, { digest: manifest.digest }, failed])
  expect(await spoken(envOf(made.dir), () => inspectCommand([bad], {}))).toMatchObject({ code: 'bundle' })
})

longTest(
  'a damaged delta is called damaged also while its base is missing, and in a dry run behind its base',
  async () => {
    const made = await above()
    const to = folder()
    const there = below()
    await there.take((await carry(made.dir, to)).files)
    const deltas: string[] = []
    for (const since of ['1', '2']) {
      made.sandbox.feed.change(1)
      await made.run('osv')
      deltas.push(...(await carry(made.dir, to, { since })).files)
    }
    const [base = '', delta = ''] = deltas
    const bytes = readFileSync(delta)
    bytes[100] = (bytes[100] ?? 0) ^ 1
    writeFileSync(delta, bytes)
    const alone = await spoken(envOf(there.dir), () => importCommand([delta], {}))
    expect([alone.code, alone.said]).toEqual([
      'bundle',
      expect.stringMatching(/is damaged: copy it again|does not inflate/),
    ])
    const dry = await spoken(envOf(there.dir), () => importCommand([base, delta], { dryRun: true }))
    expect([dry.code, dry.said]).toEqual([1, expect.stringMatching(/would be imported[^]*not imported: .* is damaged/)])
  },
)

test('a mirror without an upstream never advises a sync, and has a relay secret before the first import', async () => {
  const env = { PATCHMIRROR_DATA_DIR: folder() }
  const status = await spoken(env, () => statusCommand({}, FEATURES))
  expect(status.said).toContain('"patchmirror bundle import FILE"')
  expect(status.said).not.toContain('run "patchmirror sync"')
  const secret = () => spoken(env, () => Promise.resolve(relaySecretCommand({})))
  const first = await secret()
  expect(first).toMatchObject({ code: 0 })
  expect(first.said).toMatch(/^whsec_/)
  expect((await secret()).said).toBe(first.said)
})

test('digest in an empty folder says what fills it: a sync with an upstream, an import without', async () => {
  const env = envOf(folder())
  expect((await spoken(env, () => digestCommand({}))).said).toContain('import a full bundle first')
  const synced = { ...env, PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' }
  expect((await spoken(synced, () => digestCommand({}))).said).toContain('run "patchmirror sync"')
})

longTest('an import of some sources prints the digest that the mirror has with them', async () => {
  const made = await above()
  const to = folder()
  const there = below()
  await there.take((await carry(made.dir, to)).files)
  made.sandbox.feed.change(1)
  await made.run('osv')
  const [osv = ''] = (await carry(made.dir, to, { sources: ['osv'] })).files
  const command = () => spoken(envOf(there.dir), () => importCommand([osv], {}))
  const outcome = await command()
  const { said } = await spoken(envOf(there.dir), () => digestCommand({}))
  const [digest = 'none'] = said.split('\n')
  expect(outcome.said).toContain(digest)
  const again = await command()
  expect(again.said).toMatch(/already imported: nothing to do/)
  expect(again.said).toContain(digest)
  expect(there.store.ledger.readLastImport()?.file).toMatch(/^\d+\.zip$/)
})

longTest('verify without an upstream advises an import that repairs the damage', async () => {
  const made = await above()
  const there = below()
  await there.take((await carry(made.dir, folder())).files)
  const db = openWriter(there.dir)
  db.exec("UPDATE document SET body = x'00'")
  db.close()
  const seen = await spoken(envOf(there.dir), () => verifyCommand({}, FEATURES))
  expect(seen.code).toBe(1)
  expect(seen.said).toMatch(/no upstream here: "patchmirror bundle import --again FILE"/)
  const repair = await spoken(envOf(there.dir), () => verifyCommand({ repair: true }, FEATURES))
  expect(repair.code).toBe('config')
  expect(repair.said).toMatch(/upstream\.apiRoot is not set.*"patchmirror bundle import --again FILE"/)
})

test('a file that cannot be written or read is a usage error, and nothing is overwritten', async () => {
  const { dir } = await above()
  const env = { PATCHMIRROR_DATA_DIR: dir }
  const to = folder()
  const need = join(to, 'need')
  expect((await spoken(env, () => needCommand(need, { brief: true, sources: 'osv' }))).said).toContain(
    `--for ${need} --sources osv`,
  )
  const twice = await spoken(env, () => needCommand(need, { brief: true }))
  expect(twice).toMatchObject({ code: 'usage' })
  expect(twice.said).toContain('--force replaces it')
  expect((await spoken(env, () => needCommand(need, { brief: true, force: true }))).code).toBe(0)
  for (const file of [join(to, 'no', 'file'), to]) {
    const written = [
      await spoken(env, () => needCommand(file, {})),
      await spoken(env, () => exportCommand(file, { unsigned: true })),
    ]
    expect(written.map(({ code }) => code)).toEqual(['usage', 'usage'])
  }
  writeFileSync(join(to, 'garbage'), 'garbage')
  const out = join(to, 'out.zip')
  const wrong = [{ for: join(to, 'garbage') }, { for: join(to, 'none') }, { sources: '' }, { sources: ' , ' }]
  for (const options of [...wrong, { expires: '1.5' }])
    expect(await spoken(env, () => exportCommand(out, { unsigned: true, ...options }))).toMatchObject({
      code: 'usage',
    })
  expect(existsSync(out)).toBe(false)
})

longTest('inspect on the source mirror knows the key that signs there', async () => {
  const to = scratch()
  mkdirSync(join(to, 'media'))
  const key = keyPair(to, 'key')
  const env = {
    PATCHMIRROR_DATA_DIR: (await above()).dir,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: key.path,
  }
  const file = join(to, 'media', 'mirror.zip')
  const made = await spoken(env, () => exportCommand(file, { split: '64 KiB' }))
  expect(made.said).toMatch(/\d KB, verified/)
  expect(made.said).toContain('and 1 more file:')
  expect(made.said).not.toContain('writing') // it is too small for that
  const { said } = await spoken(env, () => inspectCommand([file], {}))
  expect(said).toContain(`${key.id}: a key that signs here, and the signature fits`)
})

test('the required disk space follows from what is written, and is printed in readable units', async () => {
  expect(reserveFor(3_000, 64_000, 4_000_000)).toBeLessThan(70_000)
  expect(reserveFor(2 ** 40, 64_000, 4_000_000)).toBe(4_000_000)
  expect([999, 1_000_000, 2_340_000, 99_000_001].map(shownBytes)).toEqual([...['1 KB', '1.0 MB', '2.4 MB', '100 MB']])
  const shown = await spoken({}, () => {
    const display = createBundleProgress(false)
    display.show({ phase: 'write', unit: 'bytes', done: 9_000_000, total: 9_000_000 })
    display.finish()
    return 0
  })
  expect(shown.said).toContain('bundle: writing: 9.0 MB')
})

test('a device is no output of a command, and is not replaced', () => {
  expect(() => refuseUnwritable('/dev/null')).toThrow(/not a regular file .* is not replaced/)
})

test('a key for a folder that does not exist names the folder, which is not made', async () => {
  const place = join(folder(), 'keys')
  const { code, said } = await spoken({}, () => keygenCommand(join(place, 'x.pem'), {}))
  expect([code, existsSync(place)]).toEqual(['usage', false])
  expect(said).toContain(`the folder ${place} does not exist: create it`)
  expect(said).not.toContain('ENOENT')
})
