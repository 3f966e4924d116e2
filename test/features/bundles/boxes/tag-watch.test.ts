import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { readReference } from '../../../../src/config/kinds/oci-reference.ts'
import { inboxFolder } from '../../../../src/config/kinds/inbox.ts'
import { createTagWatch } from '../../../../src/features/bundles/boxes/tag-watch.ts'
import { importCommand } from '../../../../src/features/bundles/cli/import.ts'
import { inspectBundle } from '../../../../src/features/bundles/import/open.ts'
import { exportCommand } from '../../../../src/features/bundles/cli/export.ts'
import { loadQuick } from '../../../support/limits.ts'
import { startRegistry } from '../../../support/registry.ts'
import { sharedBench } from '../../../support/shared-bench.ts'
import { below, folder, signer } from '../air-gap.ts'
import { spoken } from '../error-messages.ts'
import { keyPair } from '../fixtures.ts'
import { watch } from '../watched-inbox.ts'
import { longTest, test } from '../../../support/tables.ts'

const above = sharedBench({ sandbox: { records: 5 } }, 'feeds', 'osv')

/** A registry, a mirror below the gap that follows its tag, and a clock for the questions. */
async function followed() {
  const registry = await startRegistry()
  const place = `oci://${registry.host}/acme/mirror:daily`
  const mirror = below()
  const env = { PATCHMIRROR_BUNDLE_INBOX: place, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line }
  const { config } = loadQuick({ env: { ...env, PATCHMIRROR_DATA_DIR: mirror.dir }, cwd: '/' })
  const box = inboxFolder(config) ?? ''
  mkdirSync(box, { recursive: true })
  const tag = readReference(place)
  if (tag?.kind !== 'registry') throw new Error(`${place} is a tag`)
  let minutes = 0
  const state = { isEnding: false }
  /** The inbox as a start of the daemon makes it. */
  const start = (into = mirror, more: Parameters<typeof watch>[2] = {}) =>
    watch(box, into, {
      elapsed: () => minutes * 60_000,
      fetch: createTagWatch(config, tag, box, { elapsed: () => minutes * 60_000, isEnding: () => state.isEnding }),
      ...more,
    })
  const arriving: string[] = []
  const onArriving = (): void => void arriving.push(...inbox.status().waiting.map(({ why }) => why))
  const { inbox, settled, troubles } = start(mirror, { onArriving })
  return {
    place,
    start,
    state,
    arriving,
    registry,
    mirror,
    box,
    inbox,
    settled,
    troubles,
    publish: async (key = signer()) => {
      const { dir } = await above()
      const keys = { PATCHMIRROR_BUNDLE_SIGNING_KEYS: key.path, DOCKER_CONFIG: folder() }
      expect(await spoken({ PATCHMIRROR_DATA_DIR: dir, ...keys }, () => exportCommand(place, {}))).toMatchObject({
        code: 0,
      })
    },
    /** Looks as the daemon does, two minutes later: the file arrives, is whole, and is taken. */
    async look(box = inbox) {
      minutes += 2
      for (let looks = 0; looks < 3; looks++) await box.look()
    },
  }
}

const questions = ({ registry }: Awaited<ReturnType<typeof followed>>): string[] =>
  registry.seen.map(({ method, url }) => `${method} ${url.replace(/sha256:\w+/, '<digest>')}`)

longTest(
  'a tag that the inbox follows is imported once for each artifact, and an older one under it is superseded',
  async () => {
    const all = await followed()
    await all.publish()
    const first = all.registry.manifests.get('daily') ?? Buffer.alloc(0)
    all.registry.seen.length = 0
    await all.look()
    expect(all.settled).toMatchObject([{ outcome: 'imported' }])
    expect(all.arriving).toEqual(['still arriving'])
    expect(all.inbox.status().waiting).toEqual([])
    await all.look()
    expect(questions(all).filter((line) => line === 'HEAD /v2/acme/mirror/manifests/daily')).toHaveLength(2)
    expect(questions(all).filter((line) => line.startsWith('GET /v2/acme/mirror/blobs/'))).toHaveLength(1)
    const bench = await above()
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    await all.publish()
    await all.look()
    all.registry.manifests.set('daily', first)
    await all.look()
    expect(all.settled.map(({ outcome }) => outcome)).toEqual(['imported', 'imported', 'superseded'])
    expect(readdirSync(join(all.box, 'done'))).toHaveLength(1) // of the earlier ones nothing stays
    expect(all.troubles).toEqual([])
  },
)

test('a registry that is away, or has no such tag, is named once, and asked again after a minute', async () => {
  const all = await followed()
  await all.look()
  expect(all.inbox.status().problem).toBe('upstream_not_found')
  await all.look()
  expect(all.troubles).toEqual([expect.stringMatching(/^inbox: oci:\/\/127\.0\.0\.1:\d+\/acme\/mirror:daily: .*404/)])
  await all.publish()
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 1, problem: null })
})

longTest('an artifact that is not what its digest says, or that no trusted key signed, is not imported', async () => {
  const all = await followed()
  await all.publish()
  all.registry.behave({ blob: (bytes) => Buffer.from(bytes.toReversed()) })
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 0, refused: 0 })
  expect(all.inbox.status().problem).toBe('bundle')
  expect(readdirSync(all.mirror.dir).filter((name) => name.startsWith('.pm-'))).toEqual([])
  all.registry.behave({})
  await all.publish(keyPair(folder(), 'other'))
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 0, refused: 1, problem: null })
})

longTest(
  'after a start what the tag names is judged again: keys or data may be others than when it was settled',
  async () => {
    const all = await followed()
    const other = keyPair(folder(), 'other')
    await all.publish(other)
    await all.look()
    const untrusted = all.start()
    await all.look(untrusted.inbox)
    expect(untrusted.inbox.status()).toMatchObject({
      refused: 1,
      lastRefused: { why: expect.stringContaining('signed by') as string },
    })
    expect(readdirSync(join(all.box, 'refused'))).toHaveLength(2) // with its note
    const trusted = all.start(all.mirror, { keys: [other] })
    await all.look(trusted.inbox)
    expect(trusted.settled).toMatchObject([{ outcome: 'imported' }])
    const emptied = all.start(below(), { keys: [other] })
    await all.look(emptied.inbox)
    await all.look(emptied.inbox)
    expect(emptied.settled).toMatchObject([{ outcome: 'imported' }])
    expect(questions(all).filter((line) => line.startsWith('GET /v2/acme/mirror/blobs/'))).toHaveLength(1)
  },
)

longTest('an artifact that cannot be put into the folder leaves nothing of its download behind', async () => {
  const all = await followed()
  await all.publish()
  all.registry.behave({
    blob: (bytes) => {
      rmSync(all.box, { recursive: true })
      return bytes
    },
  })
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 0, problem: 'ENOENT' })
  expect(readdirSync(all.mirror.dir).filter((name) => name.startsWith('.pm-'))).toEqual([])
})

longTest('the folder of the inbox is made again, and keeps the newest bundles that wait', async () => {
  const all = await followed()
  await all.publish()
  rmSync(all.box, { recursive: true })
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 1, problem: null })
  for (let at = 0; at < 40; at++) {
    const path = join(all.box, `${String(at).padStart(2, '0')}.zip`)
    writeFileSync(path, '')
    utimesSync(path, at, at)
  }
  const bench = await above()
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  await all.publish()
  await all.look()
  const left = readdirSync(all.box).filter((name) => /^\d\d\.zip$/.test(name))
  expect(left.sort().slice(0, 2)).toEqual(['11.zip', '12.zip'])
  expect(left).toHaveLength(29)
  expect(all.inbox.status()).toMatchObject({ imported: 2 })
})

longTest('a download is given up when the daemon stops, and leaves nothing', async () => {
  const all = await followed()
  await all.publish()
  all.registry.behave({
    blob: (bytes) => {
      all.state.isEnding = true
      return bytes
    },
  })
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 0, problem: null })
  expect(all.troubles).toEqual([])
  expect(readdirSync(all.mirror.dir).filter((name) => name.startsWith('.pm-'))).toEqual([])
  all.state.isEnding = false
  all.registry.behave({})
  await all.look()
  expect(all.inbox.status()).toMatchObject({ imported: 1 })
})

longTest(
  'an artifact that waits for a bundle which the tag does not name is a problem, until that was imported by hand',
  async () => {
    const all = await followed()
    await all.publish()
    await all.look()
    const bench = await above()
    const env = {
      PATCHMIRROR_DATA_DIR: bench.dir,
      PATCHMIRROR_BUNDLE_SIGNING_KEYS: signer().path,
      DOCKER_CONFIG: folder(),
    }
    const change = async (place: string, options: Parameters<typeof exportCommand>[1]) => {
      bench.sandbox.feed.change(1)
      await bench.run('osv')
      expect(await spoken(env, () => exportCommand(place, options))).toMatchObject({ code: 0 })
    }
    const skipped = join(folder(), 'skipped.zip')
    await change(skipped, {})
    const manifest = await inspectBundle([skipped])
    await manifest.close()
    const { sequence } = manifest.manifest
    await change(all.place, { since: String(sequence) })
    await all.look()
    await all.look()
    const waiting = `waiting for bundle ${sequence}, or a full one`
    expect(all.inbox.status()).toMatchObject({ imported: 1, problem: 'not_ready', waiting: [{ why: waiting }] })
    expect(all.troubles).toEqual([expect.stringMatching(new RegExp(`${waiting}, which the tag does not name: export`))])
    const own = { PATCHMIRROR_DATA_DIR: all.mirror.dir, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line }
    expect(await spoken(own, () => importCommand([skipped], {}))).toMatchObject({ code: 0 })
    for (let looks = 0; looks < 4; looks++) await all.look()
    expect(all.inbox.status()).toMatchObject({ imported: 2, problem: null, waiting: [] })
  },
)
