import dns from 'node:dns'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, onTestFinished } from 'vitest'
import { createAgent } from '../../../src/daemon/agent.ts'
import { importCommand } from '../../../src/features/bundles/cli/import.ts'
import { digestCommand, needCommand } from '../../../src/features/bundles/cli/need.ts'
import { serveCommand } from '../../../src/cli/mirror/serve.ts'
import { readPublicKey } from '../../../src/features/bundles/format/keys.ts'
import { createLog } from '../../../src/base/log.ts'
import { goOffline } from '../../../src/base/offline.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createOrigin } from '../../support/origin.ts'
import { type Import, readSources } from '../../support/sources.ts'
import { createBench } from '../../support/mirror.ts'
import { below, carry, folder, signer } from './air-gap.ts'
import { localKey } from '../../support/keys.ts'
import { longTest, test } from '../../support/tables.ts'
import { FEATURES } from '../../../src/features.ts'

const ending: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ending.reverse()) await end()
})

async function makeMedium() {
  const bench = await createBench({ sandbox: { records: 5 } })
  const to = mkdtempSync(join(tmpdir(), 'patchmirror-medium-'))
  ending.push(
    () => bench.close(),
    () => rmSync(to, { recursive: true, force: true }),
  )
  for (const source of ['feeds', 'osv'] as const) await bench.run(source)
  return { bench, ...(await carry(bench.dir, to)) }
}

let made: ReturnType<typeof makeMedium> | null = null
/** A mirror above the gap and a bundle of it, for all tests of this file. */
const medium = (): ReturnType<typeof makeMedium> => (made ??= makeMedium())

const back: (() => void)[] = []
afterEach(() => {
  for (const one of back.splice(0)) one()
})

const SOURCES = readSources()

/** What reads bundles in registries: loaded for an argument that names one, and for no file. */
const REGISTRIES = 'features/bundles/oci/artifacts.ts'

/** All files that a file loads, directly or not. */
function loadedBy(file: string): Set<string> {
  const sources = new Map(SOURCES.map(({ path, imports }) => [path, imports]))
  const seen = new Set<string>()
  const walk = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    const next: readonly Import[] = sources.get(path) ?? []
    for (const { to, kind, typeOnly, later } of next) {
      if (kind === 'node' || typeOnly || (to === REGISTRIES && later)) continue
      walk(to)
    }
  }
  walk(file)
  return seen
}

describe('an import', () => {
  test.each(['features/bundles/cli/import.ts', 'features/bundles/cli/need.ts', 'features/bundles/import/apply.ts'])(
    '%s has no network code behind it',
    (file) => {
      const loaded = [...loadedBy(file)]
      expect(loaded).toContain('store/database/open.ts')
      const network = loaded.filter((path) => /^(upstream|api|relay|webhooks)\/|^undici$/.test(path))
      expect(network).toEqual([])
      const nodes = SOURCES.filter(({ path }) => loaded.includes(path) && path !== 'base/offline.ts')
        // These ask node:net what an address is.
        .filter(({ path }) => !path.startsWith('config/') && path !== 'base/connections/network.ts')
        .flatMap(({ imports }) => imports.filter(({ kind, typeOnly }) => kind === 'node' && !typeOnly))
        .map(({ to }) => to)
      expect(nodes.filter((name) => /^node:(https?|net|tls|dns|dgram|http2)\b/.test(name))).toEqual([])
    },
  )

  longTest('works with all connections blocked, and so do the commands digest and need', async () => {
    const { files, manifest } = await medium()
    const to = folder()
    const dir = folder()
    const { env } = process
    process.env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: publicLine() }
    const written: string[] = []
    const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = (text) => written.push(String(text)) > 0
    const undo = goOffline()
    back.push(undo, () => {
      process.stdout.write = write
      process.env = env
    })
    expect(await importCommand(files, { offline: true, json: true })).toBe(0)
    expect(await digestCommand({ json: true })).toBe(0)
    expect(await needCommand(join(to, 'need'), { brief: true })).toBe(0)
    process.stdout.write = write
    expect(written.join('')).toContain(manifest.digest)
    expect(written.join('')).toContain('"outcome": "applied"')
  })
})

/** The trusted line of the key that signs here. */
function publicLine(): string {
  return readPublicKey(signer().line).line
}

test('a process with --offline can neither connect nor look up a name, and still accepts connections', async () => {
  back.push(goOffline())
  const origin = await createOrigin((_, response) => response.end('here'))
  const said = /offline: something tried to reach the network/
  expect(() => connect(origin.port, '127.0.0.1')).toThrow(said)
  expect(() => fetch(origin.url)).toThrow(said)
  expect(() => dns.lookup('service.example', () => undefined)).toThrow(said)
  expect((await dns.promises.lookup('localhost')).address).toMatch(/^(127\.|::1)/)
  expect(() => dns.promises.resolve('localhost')).toThrow(said)
  back.splice(0)[0]?.()
  expect(await (await fetch(origin.url)).text()).toBe('here')
})

longTest(
  'a daemon without an upstream serves what was imported, makes no request, and has the age of upstream’s date',
  async () => {
    const { bench, files, manifest } = await medium()
    const there = below()
    const log = createLog({ level: 'silent', format: 'json' })
    const server = { ...there.config.server, port: 0 }
    const agent = createAgent({
      features: FEATURES,
      config: { ...there.config, server },
      version: 'test',
      log,
      offline: true,
    })
    onTestFinished(() => agent.close())
    const { url } = await agent.start()
    expect((await fetch(`${url}/-/ready`)).status).toBe(503)
    await there.take(files)
    await expect.poll(async () => (await fetch(`${url}/-/ready`)).status).toBe(200)
    const index = await fetch(`${url}/external/osv/all.json`)
    expect(Buffer.from(await index.arrayBuffer()).equals(bench.sandbox.feed.index())).toBe(true)
    const status = (await (await fetch(`${url}/-/status`)).json()) as object
    const { mirror, sequence } = manifest
    expect(status).toMatchObject({
      sources: [
        { name: 'feeds', asOf: manifest.sources.feeds?.asOf, nextRunAt: null },
        { name: 'osv', asOf: manifest.sources.osv?.asOf, lastRun: { kind: 'import' } },
      ],
      bundle: { mirror, sequence, kind: 'full', key: signer().id, rollback: false },
    })
    const metrics = await (await fetch(`${url}/-/metrics`)).text()
    expect(metrics).toContain('\npatchmirror_bundle_sequence 1\n')
    expect(metrics).toMatch(/\npatchmirror_bundle_import_timestamp_seconds 1\.\d+e9\n|\d{10}/)
    expect((await fetch(`${url}/v1/images/`)).status).toBe(401)
    const headers = localKey(there.dir)
    expect((await fetch(`${url}/v1/images/`, { headers })).status).toBe(404)
    const runs = openWrites(there.dir)
    onTestFinished(() => runs.close())
    expect(runs.runs.listRuns(100).map(({ kind }) => kind)).toEqual(['import', 'import'])
  },
)

describe('the command serve', () => {
  test('explains a missing upstream, and names a setting that contradicts --offline', async () => {
    const { env } = process
    back.push(() => {
      process.env = env
    })
    process.env = { PATCHMIRROR_DATA_DIR: folder() }
    await expect(serveCommand({}, FEATURES)).rejects.toThrow(/upstream.apiRoot: not set[^]*Below an air gap/)
    process.env['PATCHMIRROR_RELAY_TARGETS'] = 'https://hooks.example.com/x'
    await expect(serveCommand({ offline: true }, FEATURES)).rejects.toThrow(
      /--offline forbids connections, but relay.targets/,
    )
    process.env = { PATCHMIRROR_DATA_DIR: folder(), PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line }
    process.env['PATCHMIRROR_BUNDLE_INBOX'] = 'oci://registry.example.com/mirror:daily'
    await expect(serveCommand({ offline: true }, FEATURES)).rejects.toThrow(
      /--offline forbids connections, but bundle.inbox names a registry/,
    )
    await expect(importCommand(['oci://registry.example.com/mirror:daily'], { offline: true })).rejects.toThrow(
      /--offline forbids connections, but oci:.* is in a registry: leave --offline out, or copy it/,
    )
  })
})
