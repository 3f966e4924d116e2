import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeEach, describe, expect, onTestFinished, vi } from 'vitest'
import { registryWords } from '../../../src/base/domain/status.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import type { RegistryStatus } from '../../../src/base/reports/transfer.ts'
import { applyLive } from '../../../src/daemon/reload.ts'
import { createSignals } from '../../../src/daemon/signals.ts'
import { checkImages } from '../../../src/features/images/check.ts'
import { describeKept } from '../../../src/features/images/command.ts'
import { startRegistryCheck } from '../../../src/features/images/start.ts'
import { performRegistryCheck } from '../../../src/features/images/task.ts'
import type { PageCall } from '../../../src/features/pages/page.ts'
import { openCarried } from '../../../src/features/pages/pages/images/carried.ts'
import type { ImageRow } from '../../../src/features/pages/pages/images/rows.ts'
import { problemsOf, unreadyProblems } from '../../../src/server/status/problems.ts'
import {
  type RegistryNote,
  readRegistryNote,
  registryNoteMark,
  writeRegistryNote,
} from '../../../src/store/catalog/in-registry.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { openWorld } from '../../support/daemons.ts'
import { TEST_KEY } from '../../support/keys.ts'
import { loadQuick } from '../../support/limits.ts'
import { createBench } from '../../support/mirror.ts'
import { startRegistry } from '../../support/registry.ts'
import { fillDisk, mayMount, smallDisks } from '../../support/small-disk.ts'
import { longTest, test } from '../../support/tables.ts'

const SERVICE = { images: 1, tags: 3, packages: 1, tickets: 1 }
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let docker = ''

beforeEach(() => {
  docker = mkdtempSync(join(tmpdir(), 'patchmirror-docker-'))
  vi.stubEnv('DOCKER_CONFIG', docker)
  return () => {
    vi.unstubAllEnvs()
    rmSync(docker, { recursive: true })
  }
})

/** A mirror of a catalog of three images, a registry, and what checks it. */
async function openCase(env: Record<string, string> = {}) {
  const registry = await startRegistry()
  const bench = await createBench({
    sandbox: { records: 1, service: SERVICE },
    envOf: catalogEnv,
    env: {
      PATCHMIRROR_CATALOG_SCOPE: 'all',
      PATCHMIRROR_IMAGES_REGISTRY: `${registry.host}/mirror`,
      LIMIT_SYNC_JITTER_SECONDS: '0',
      ...env,
    },
  })
  onTestFinished(() => bench.close())
  await bench.run('catalog')
  const answer = await fetch(`${bench.sandbox.url}/v1/tags/`, {
    headers: { authorization: `Basic ${btoa(`${bench.config.upstream.apiKey}:`)}` },
  })
  const list = (await answer.json()) as { data: { digest: string }[] }
  const digests = list.data.map(({ digest }) => digest)
  const [first = '', second = '', third = ''] = digests
  const has = (...all: string[]): void => all.forEach((one) => void registry.manifests.set(one, Buffer.from('{}')))
  const asked = (): string[] =>
    registry.seen.filter(({ method }) => method === 'HEAD').map(({ url }) => url.replace(/.*\//, ''))
  /** Asks for what is due after a change of the catalog; with `all` as at a time of the schedule. */
  const check = (at: number, all = false) => {
    registry.seen.length = 0
    const place = `${registry.host}/mirror`
    const task = { config: bench.config, dataDir: bench.dir, registry: place, served: null, all }
    return performRegistryCheck(task, () => at)
  }
  return { registry, bench, list, digests, first, second, third, has, asked, check }
}

type Case = Awaited<ReturnType<typeof openCase>>

/** What the daemon has of the feature, with everything else that it needs of a daemon. */
function watch({ bench }: Case, more: Record<string, string> = {}) {
  const reads = openPinnedReads(bench.dir)
  if (reads === null) throw new Error('there is no database')
  const images = { ...bench.config.images, ...(more['registry'] !== undefined && { registry: more['registry'] }) }
  const live = { schedule: bench.config.catalog.schedule }
  const catalog = {
    ...bench.config.catalog,
    get schedule() {
      return live.schedule
    },
  }
  const config = { ...bench.config, images, catalog }
  const signals = createSignals()
  const logged: string[] = []
  const log = pino({ base: null }, { write: (line: string) => void logged.push(line) })
  const running = startRegistryCheck({ config, log, now: Date.now, offline: 'offline' in more, reads, signals }, 0)
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await running.close?.()
    reads.close()
  }
  onTestFinished(close)
  const shown = () => running.shown?.registry?.()
  const served = (): void => {
    reads.refresh()
    signals.send('served', 0)
  }
  /** Puts another schedule in force, as a reload of the settings does. */
  const plan = (schedule: string): void => {
    live.schedule = schedule
    applyLive({ config, log }, { signals }, ['catalog.schedule'])
  }
  return { config, logged, shown, served, plan, close }
}

describe('the images of the catalog', () => {
  longTest(
    'are looked for in the registry of the settings after a start and a change, and a restart keeps what is known',
    async () => {
      const one = await openCase()
      one.has(one.first, one.second)
      const daemon = watch(one)
      expect(daemon.shown()).toMatchObject({ images: 0, checkedAt: null })
      await expect.poll(() => daemon.shown()?.checkedAt).toEqual(expect.any(String))
      const known = { images: 3, there: 2, missing: 1, unknown: 0, problem: null }
      await expect.poll(daemon.shown).toMatchObject({ ...known, checking: false })
      expect(one.asked()).toHaveLength(3)
      await daemon.close()

      const again = watch(one)
      expect(again.shown()).toMatchObject(known)
      await expect.poll(one.asked).toHaveLength(4)
      await expect.poll(again.shown).toMatchObject({ checking: false })
      one.registry.seen.length = 0
      one.bench.sandbox.service.addTag()
      await one.bench.run('catalog')
      again.served()
      await expect.poll(again.shown).toMatchObject({ images: 4, there: 2, missing: 2, checking: false })
      // What is there was asked for a moment ago.
      expect(one.asked()).toHaveLength(2)
      expect(one.asked()).toContain(one.third)
      expect(describeKept(one.bench.config)).toEqual([
        expect.stringMatching(
          new RegExp(`^registry ${one.registry.host}/mirror: 2 of 4 images there, 2 missing, checked on \\d`),
        ),
      ])
    },
  )

  longTest(
    'are all asked for at the times of catalog.schedule: what is new there is found, and what is gone is missing',
    async () => {
      const one = await openCase()
      one.has(one.first, one.second)
      const daemon = watch(one)
      await expect.poll(daemon.shown).toMatchObject({ there: 2, missing: 1 })
      one.registry.manifests.clear()
      one.has(one.third)
      daemon.plan('* * * * * *')
      await expect.poll(daemon.shown).toMatchObject({ there: 1, missing: 2 })
      expect(one.asked().filter((digest) => digest === one.first).length).toBeGreaterThan(1)
      one.registry.behave({ ping: 503 })
      await expect.poll(daemon.shown).toMatchObject({ there: 0, missing: 0, unknown: 3 })
    },
  )

  longTest(
    'are all asked for after a start where that was over an hour ago, however young the answers are',
    async () => {
      const one = await openCase()
      one.has(...one.digests)
      const before = Date.now() - 2 * HOUR_MS
      await one.check(before)
      one.registry.manifests.clear()
      const daemon = watch(one)
      expect(daemon.shown()).toMatchObject({ there: 3, checkedAt: new Date(before).toJSON() })
      await expect.poll(daemon.shown).toMatchObject({ there: 0, missing: 3 })
      await daemon.close()
      one.has(...one.digests)
      await one.check(Date.now(), true)
      one.registry.manifests.clear()
      one.registry.seen.length = 0
      const mark = registryNoteMark(one.bench.dir)
      const soon = watch(one)
      await expect.poll(() => registryNoteMark(one.bench.dir)).not.toBe(mark)
      await expect.poll(soon.shown).toMatchObject({ there: 3, checking: false })
      expect(one.registry.seen).toEqual([])
    },
  )

  test('are as old as the check that asked for all: one that asks for none, or for some, does not date them', async () => {
    const one = await openCase()
    one.has(...one.digests)
    const start = Date.now()
    const checkedAt = new Date(start).toJSON()
    await one.check(start)
    one.registry.behave({ own: (_, response) => response.destroy() === response })
    expect((await one.check(start + HOUR_MS))?.sum).toMatchObject({ there: 3, checkedAt })
    expect(one.registry.seen).toEqual([])
    const { config, dir } = one.bench
    const [name = ''] = Object.keys(readRegistryNote(dir, config.images.registry ?? '').images)
    const [image = '', digest = ''] = name.split('@')
    const remember = <T>(_: string, make: () => T): T => make()
    const call = { config, now: start + 2 * HOUR_MS, remember } as unknown as PageCall
    const cell = openCarried(call)?.({ image, digests: [digest] } as unknown as ImageRow)
    expect(cell).toEqual({ text: 'there', tone: 'good', note: '2 h ago' })
    const down = await one.check(start + HOUR_MS, true)
    expect(down?.sum).toMatchObject({ there: 0, unknown: 3, problem: 'upstream_unreachable', checkedAt })
    one.registry.behave({})
    one.registry.manifests.delete(one.first)
    const whole = await one.check(start + 2 * HOUR_MS)
    expect(whole?.sum).toMatchObject({ there: 2, missing: 1, checkedAt: new Date(start + 2 * HOUR_MS).toJSON() })
    const part = await one.check(start + 3 * HOUR_MS)
    expect(one.asked()).toEqual([one.first])
    expect(part?.sum).toEqual(whole?.sum)
  })

  longTest('are not known to be all where the list of tags is cut, or names a tag without its image', async () => {
    const one = await openCase()
    one.has(...one.digests)
    const cut = JSON.stringify({ data: one.list.data, total: 9, has_more: false })
    one.bench.sandbox.faults.set('/v1/tags/', { kind: 'body', body: cut })
    await one.bench.run('catalog')
    const incomplete = expect.stringMatching(/^upstream counts 9 items/) as string
    const { sum } = (await one.check(Date.now())) ?? {}
    expect(sum).toMatchObject({ images: 3, there: 3, incomplete })
    const [line] = describeKept(one.bench.config)
    const words = /3 of 3 images there, 0 missing, the list of images is not known to be complete \(upstream counts 9 /
    expect(line).toMatch(words)
    const other = await openCase()
    const nameless = JSON.stringify({ data: [...one.list.data, { id: 'tag_9', tag: 'hidden' }] })
    other.bench.sandbox.faults.set('/v1/tags/', { kind: 'body', body: nameless })
    await other.bench.run('catalog')
    const told = (await other.check(Date.now()))?.sum.incomplete
    expect(told).toBe('1 tag named without repository or digest')
  })

  longTest('of a catalog that has none, or that were never asked for, are not counted', async () => {
    const one = await openCase()
    const line = [`registry ${one.registry.host}/mirror: not checked yet`]
    expect(describeKept(one.bench.config)).toEqual(line)
    one.bench.sandbox.faults.set('/v1/tags/', { kind: 'body', body: '{"data":[],"total":0,"has_more":false}' })
    const { id } = await one.bench.run('catalog')
    const approved = one.bench.store.quarantine.readQuarantine(id)
    if (approved === null) throw new Error('the removal of all tags was not refused')
    await one.bench.run('catalog', { kind: 'approve', approved })
    expect((await one.check(Date.now(), true))?.sum).toMatchObject({ images: 0, checkedAt: null })
    expect(describeKept(one.bench.config)).toEqual(line)
  })

  test('that are there are asked for after a change once a day, and are not known where they are not answered then', async () => {
    const one = await openCase()
    one.has(...one.digests)
    const start = Date.now()
    await one.check(start)
    await one.check(start + DAY_MS / 2)
    expect(one.registry.seen).toEqual([])
    await one.check(start + DAY_MS)
    expect(one.asked().toSorted()).toEqual(one.digests.toSorted())
    one.registry.behave({ ping: 503 })
    const report = await one.check(start + 2 * DAY_MS)
    expect(report).toMatchObject({
      sum: {
        there: 0,
        missing: 0,
        unknown: 3,
        problem: 'upstream_status',
        checkedAt: new Date(start + 2 * DAY_MS).toJSON(),
      },
      why: expect.stringMatching(/does not answer as a registry: status 503/) as string,
    })
  })

  test('have the repository of the catalog below the registry of the settings, without the one that the catalog names', async () => {
    const one = await openCase()
    const [tag, ...rest] = one.list.data
    const named = { ...tag, image: { repository: 'r.example/my.org/app' } }
    const body = JSON.stringify({
      ...one.list,
      data: [named, { ...rest[0], image: { repository: 'r.example/Name' } }, ...rest.slice(1)],
    })
    one.bench.sandbox.faults.set('/v1/tags/', { kind: 'body', body })
    await one.bench.run('catalog')
    one.has(one.first)
    const report = await one.check(Date.now())
    expect(one.registry.seen.map(({ url }) => url)).toContain(`/v2/mirror/my.org/app/manifests/${one.first}`)
    expect(report).toMatchObject({
      sum: { there: 1, missing: 1, unknown: 1, problem: 'usage', checkedAt: expect.any(String) as string },
      why: expect.stringMatching(/mirror\/Name@/) as string,
    })
  })

  longTest('are not known by what another registry answered, nor by a damaged file', async () => {
    const one = await openCase()
    one.has(...one.digests)
    await one.check(Date.now())
    const other = await startRegistry()
    const daemon = watch(one, { registry: `${other.host}/mirror` })
    expect(daemon.shown()).toMatchObject({ images: 0, there: 0, checkedAt: null })
    await expect.poll(daemon.shown).toMatchObject({ there: 0, missing: 3 })
    await daemon.close()
    const path = join(one.bench.dir, 'derived', 'registry.json')
    writeFileSync(path, readFileSync(path, 'utf8').slice(0, 99))
    const offline = watch(one, { registry: `${other.host}/mirror`, offline: '' })
    const registry = offline.shown()
    expect(registry).toMatchObject({ images: 0, problem: 'offline' })
    if (registry !== undefined)
      expect(registryWords(registry)).toBe('not checked yet (serve --offline asks no registry)')
    expect(problemsOf(statusWith(registry), offline.config, Date.now())).toMatchObject([
      { code: 'registry', level: 'warning', detail: 'serve --offline asks no registry' },
    ])
  })
})

describe('a registry', () => {
  longTest('that is down is named by the status, and the mirror is as ready as before', async () => {
    const one = await openCase()
    const daemon = watch(one, { registry: '127.0.0.1:1/mirror' })
    await expect.poll(daemon.shown).toMatchObject({ images: 3, there: 0, missing: 0, unknown: 3, checkedAt: null })
    const registry = daemon.shown()
    expect(registry?.problem).toBe('upstream_unreachable')
    await expect.poll(() => daemon.logged.join('')).toMatch(/it is not known .* 127\.0\.0\.1:1\/mirror .*ECONNREFUSED/)
    const status = statusWith(registry)
    expect(problemsOf(status, daemon.config, Date.now())).toMatchObject([
      { code: 'registry', level: 'warning', detail: expect.stringMatching(/^it does not answer;/) as string },
    ])
    expect(unreadyProblems(status, [], daemon.config, Date.now())).toEqual([])
  })

  longTest('says that an image is missing by its own words alone, for each image', async () => {
    const one = await openCase()
    one.registry.behave({
      own: (url, response) => {
        if (url === '/v2/') return false
        response.writeHead(404, { 'content-type': 'text/html' }).end('<html>Not here</html>')
        return true
      },
    })
    const foreign = await one.check(Date.now())
    expect(foreign).toMatchObject({
      sum: { missing: 0, unknown: 3, problem: 'upstream_shape' },
      why: expect.stringMatching(/mirror\/\S+: its 404 is not that of a registry/) as string,
    })
    one.has(one.first)
    one.registry.behave({
      own: (url, response) => {
        const isThere = url.endsWith(one.first)
        if (url !== '/v2/' && !isThere) response.writeHead(404).end()
        return url !== '/v2/' && !isThere
      },
    })
    expect((await one.check(Date.now()))?.sum).toMatchObject({ there: 1, missing: 0, unknown: 2 })
    const sayAll = (words: string): void =>
      one.registry.behave({
        own: (url, response) => url !== '/v2/' && response.writeHead(404).end(words) === response,
      })
    for (const words of [
      '{"errors":[{"status":404,"title":"No route matched"}]}',
      '{"errors":[{"code":"route.unknown"}]}',
      '{"errors":{"code":"UNKNOWN"}}',
      '{"errors":[{"code":"MANIFEST_UNKNOWN"}',
    ]) {
      sayAll(words)
      expect((await one.check(Date.now(), true))?.sum).toMatchObject({ there: 0, missing: 0, unknown: 3 })
    }
    sayAll('{"errors":[{"code":"NAME_UNKNOWN","message":"no such repository"}]}')
    expect((await one.check(Date.now(), true))?.sum).toMatchObject({ there: 0, missing: 3, unknown: 0 })
    const header = { 'docker-distribution-api-version': 'registry/2.0' }
    one.registry.behave({
      own: (url, response) => url !== '/v2/' && response.writeHead(404, header).end() === response,
    })
    expect((await one.check(Date.now() + 2 * DAY_MS))?.sum).toMatchObject({ there: 0, missing: 3, unknown: 0 })
  })

  test('that has too many requests is left alone after a few, and what it answered before stays', async () => {
    const one = await openCase()
    one.has(...one.digests)
    let count = 0
    one.registry.behave({
      own: (url, response) => url !== '/v2/' && ++count > 1 && response.writeHead(429).end() === response,
    })
    expect(await one.check(Date.now())).toMatchObject({
      sum: { there: 1, missing: 0, unknown: 2 },
      why: expect.stringMatching(/status 429/) as string,
    })
    one.registry.behave({})
    expect((await one.check(Date.now()))?.sum).toMatchObject({ there: 3, checkedAt: expect.any(String) as string })
    expect(one.asked()).toHaveLength(2)
    const many = Array.from({ length: 30 }, (_, at) => imageOf('one', at))
    one.registry.behave({ own: (url, response) => url !== '/v2/' && response.writeHead(429).end() === response })
    one.registry.seen.length = 0
    const found = await checkImages(one.bench.config, one.registry.host, many)
    expect(one.asked()).toHaveLength(3)
    expect([...found.values()].at(-1)).toMatchObject({
      is: 'not known',
      why: expect.stringMatching(/status 429.*; so for 3 requests in a row: no more were made$/) as string,
    })
  })

  longTest(
    'that never answers is asked no more after a few requests, whatever the number of repositories',
    async () => {
      const registry = await startRegistry({ own: () => true })
      const env = { LIMIT_UPSTREAM_REQUEST_TIMEOUT_MS: '300', PATCHMIRROR_DATA_DIR: docker }
      const { config } = loadQuick({ env, cwd: docker })
      const many = Array.from({ length: 60 }, (_, at) => imageOf(`r${at}`, at))
      const found = await checkImages(config, registry.host, many)
      expect(found.size).toBe(60)
      expect(registry.seen.length).toBeLessThanOrEqual(10)
      const [, ...rest] = new Set([...found.values()].map((one) => ('why' in one ? one.why : one.is)))
      expect(rest).toEqual([expect.stringMatching(/cannot be reached: .*300 ms.*; so for 3 requests in a row/)])
      // An answer in between begins the count again.
      let count = 0
      registry.behave({
        own: (url, response) => url !== '/v2/' && (++count % 3 !== 0 || response.writeHead(500).end() === response),
      })
      registry.seen.length = 0
      const ofOne = many.slice(0, 6).map((image) => ({ ...image, repository: 'one' }))
      const each = await checkImages(config, registry.host, ofOne)
      expect(registry.seen.filter(({ method }) => method === 'HEAD')).toHaveLength(6)
      const three = ['upstream_unreachable', 'upstream_unreachable', 'upstream_status']
      expect([...each.values()].map((one) => ('code' in one ? one.code : one.is))).toEqual([...three, ...three])
    },
  )

  longTest('that wants a token gets the credential of its entry in the settings of Docker', async () => {
    const one = await openCase()
    one.has(one.first)
    one.registry.behave({ login: { user: 'ann', password: 'pw', scheme: 'bearer' } })
    const refused = watch(one)
    await expect.poll(refused.shown).toMatchObject({ unknown: 3, problem: 'upstream_auth' })
    await refused.close()
    const auth = { [one.registry.host]: { auth: btoa('ann:pw') } }
    writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: auth }))
    expect((await one.check(Date.now()))?.sum).toMatchObject({ there: 1, missing: 2, unknown: 0 })
    writeFileSync(join(docker, 'config.json'), '{')
    one.bench.sandbox.service.addTag()
    await one.bench.run('catalog')
    const unreadable = watch(one)
    await expect.poll(unreadable.shown).toMatchObject({ there: 1, problem: 'config' })
  })
})

describe.skipIf(!mayMount())('a full disk of the mirror (needs the right to mount a tmpfs)', () => {
  const mount = smallDisks()

  test('is named as such, and not as a fault of the registry', async () => {
    const one = await openCase()
    one.has(...one.digests)
    const disk = mount('1m')
    const derived = join(one.bench.dir, 'derived')
    rmSync(derived, { recursive: true, force: true })
    symlinkSync(disk, derived)
    fillDisk(disk)
    const daemon = watch(one)
    await expect.poll(daemon.shown).toMatchObject({ problem: 'storage', checkedAt: null })
    expect(daemon.logged.join('')).toMatch(/the data folder \S+ is full: free some space/)
    const registry = daemon.shown()
    const why = "the mirror's own disk does not keep what it answers"
    if (registry !== undefined) expect(registryWords(registry)).toBe(`not checked yet (${why}: see the log)`)
    expect(problemsOf(statusWith(registry), daemon.config, Date.now())).toMatchObject([
      { code: 'registry', detail: expect.stringContaining(why) as string },
    ])
  })
})

/** A report in which all but the registry is well. */
function statusWith(registry: RegistryStatus | undefined) {
  return {
    version: '',
    instance: null,
    uptimeSeconds: 1,
    sources: [],
    contentDigest: null,
    relay: [],
    bundle: null,
    storage: { state: 'ok', reason: null, freeBytes: null },
    registry,
  } as unknown as Status
}

function imageOf(repository: string, at: number) {
  return { repository, tag: null, digest: `sha256:${String(at).padStart(64, '0')}` }
}

longTest('a daemon shows what the registry has on its pages, in its status and its metrics', async () => {
  const registry = await startRegistry()
  const world = await openWorld({ records: 1, large: 0, service: SERVICE }, catalogEnv)
  onTestFinished(() => world.close())
  Object.assign(world.env, {
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_IMAGES_REGISTRY: `${registry.host}/mirror`,
    PATCHMIRROR_SERVER_KEYS: TEST_KEY,
  })
  const daemon = await world.host()
  const key = { authorization: `Basic ${btoa(`${TEST_KEY}:`)}` }
  const textOf = async (path: string, headers: Record<string, string> = key): Promise<string> =>
    (await fetch(daemon.url + path, { headers })).text()
  const status = async () => JSON.parse(await textOf('/-/status')) as { registry: object }
  const first = { images: 3, there: 0, missing: 3, unknown: 0, problem: null, checking: false }
  await expect.poll(async () => (await status()).registry).toMatchObject(first)
  const metrics = await textOf('/-/metrics')
  expect(metrics).toContain('patchmirror_images_registry{state="missing"} 3')
  expect(metrics).toContain('patchmirror_images_registry{state="there"} 0')
  expect(metrics).toMatch(/patchmirror_images_registry_timestamp_seconds \d+/)
  const html = { accept: 'text/html' }
  const page = await textOf('/-/ui/images', { ...key, ...html })
  expect(page).toContain('<bdi>Registry</bdi></th>')
  expect(page.match(/>missing</g)).toHaveLength(3)
  const words = '0 of 3 images there, 3 missing'
  expect(await textOf('/', { ...key, ...html })).toContain(`${registry.host}/mirror: ${words}`)
  expect((await world.patchmirror('status')).out).toMatch(
    new RegExp(`^registry ${registry.host}/mirror: ${words}, checked on \\d`, 'm'),
  )
  const open = await textOf('/', html)
  expect(open).toContain(words)
  expect(open).not.toContain(registry.host)
})

longTest(
  'a page and the metrics show what was answered by its date, and nothing of a registry that was never asked',
  async () => {
    const world = await openWorld({ records: 1, large: 0, service: SERVICE }, catalogEnv)
    onTestFinished(() => world.close())
    const place = 'registry.example.com/mirror'
    Object.assign(world.env, { PATCHMIRROR_IMAGES_REGISTRY: place, PATCHMIRROR_SERVER_KEYS: TEST_KEY })
    /** The cell of the registry, without a key, and its metrics, of a daemon that asks nothing. */
    const seen = async (note: Partial<RegistryNote>) => {
      const images = { [`app@sha256:${'1'.repeat(64)}`]: { is: 'there', at: Date.now() } } as const
      const nothing = { registry: place, checkedAt: null, incomplete: null, images }
      writeRegistryNote(join(world.dir, 'data'), { ...nothing, ...note })
      const daemon = await world.host({ PATCHMIRROR_CATALOG_SCOPE: 'all' }, true)
      const textOf = async (path: string): Promise<string> =>
        (await fetch(daemon.url + path, { headers: { accept: 'text/html' } })).text()
      const page = await textOf('/')
      const metrics = await textOf('/-/metrics')
      const status = JSON.parse(await textOf('/-/status')) as { registry: RegistryStatus; problems: { code: string }[] }
      const problems = status.problems.filter(({ code }) => code === 'registry')
      await daemon.close()
      const [, look, text] =
        /class="cell tone (\w+)[^"]*"><bdi>([^<]*(?:image there|not checked yet)[^<]*)/.exec(page) ?? []
      return { cell: [look, text], metrics, status, problems }
    }
    const never = await seen({ images: {} })
    expect(never.cell).toEqual(['warn', 'not checked yet (serve --offline asks no registry)'])
    expect(never.metrics).not.toContain('patchmirror_images_registry{')
    const whole = '1 of 1 image there, 0 missing'
    expect((await seen({})).cell).toEqual(['warn', whole])
    const checkedAt = '2026-01-02T03:04:05.000Z'
    const checked = await seen({ checkedAt })
    expect(checked.cell).toEqual(['good', whole])
    expect(checked.metrics).toContain(`patchmirror_images_registry_timestamp_seconds ${Date.parse(checkedAt) / 1000}`)
    const cut = await seen({ checkedAt, incomplete: 'no item "x" of /v1/tags/secret' })
    const words = 'the list of images is not known to be complete'
    expect([checked.problems, cut.problems]).toMatchObject([
      [],
      [{ level: 'warning', detail: 'no item "…" of /v1/tags/…' }],
    ])
    expect(cut.metrics).toContain('patchmirror_problems{code="registry",level="warning"} 1')
    expect(cut.cell).toEqual(['warn', expect.stringContaining(words) as string])
    expect(cut.status.registry.incomplete).toBe('no item "…" of /v1/tags/…')
  },
)
