import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { sha256Hex } from '../../src/base/digest.ts'
import { answersOf, fleetStatus, untilFleet } from '../support/fleet/daemons.ts'
import { bearer } from '../support/keys.ts'
import { emptyDisk, fillDisk } from '../support/small-disk.ts'
import { type Publications, type Scanners, rememberPublications, startScanners } from './fleet/scanners.ts'
import { EDGES, LINE, READERS, type SiteFleet, type SiteNode, openSiteFleet, whyNoFleet } from './fleet/world.ts'
import { tell } from './toolbox.ts'

/** Shorter than by default, so that this file takes minutes. */
const SETTINGS = {
  LIMIT_FLEET_POLL_SECONDS: '2',
  PATCHMIRROR_FLEET_LEASE_SECONDS: '4',
  LIMIT_FLEET_MAX_LAG_SECONDS: '6',
}
const INDEX = '/external/osv/all.json'
const missing = whyNoFleet()
const edgeNames = EDGES.map((name) => `${name} by its edge`)
const everywhere = [...READERS, ...edgeNames]

let fleet: SiteFleet
let publications: Publications
let scanners: Scanners
const ends: (() => Promise<void>)[] = []

const figure = (text: string): void => tell(`fleet-sites: ${text}`)
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
const codeOf = async ({ url }: { url: string }, path: string): Promise<number> => {
  const answer = await fetch(url + path, { headers: bearer() })
  await answer.arrayBuffer()
  return answer.status
}
/** Resolves once a path answers with this code. */
async function answering(node: { url: string }, path: string, code: number): Promise<void> {
  while ((await codeOf(node, path).catch(() => 0)) !== code) await sleep(50)
}
const asOf = async ({ url }: SiteNode): Promise<string | null> =>
  (await fetch(url + INDEX)).headers.get('x-mirror-as-of')

/** What a mirror answers, but for its date: the leader's is that of its last run, which is published later. */
async function comparable(node: { url: string }): Promise<[path: string, answer: string][]> {
  return Object.entries(await answersOf(node)).map(([path, answer]) => {
    const { body, ...rest } = answer as { body: string; asOf: string | null }
    return [path, JSON.stringify({ ...rest, asOf: undefined, sha256: sha256Hex(body) })]
  })
}

/** Expects the answers of a mirror that is settled from another address, once the views of the last generation are made. */
async function expectSame(name: string, node: { url: string }, from: SiteNode): Promise<number> {
  const both = async (): Promise<unknown> => [name, await comparable(node)]
  await expect
    .poll(async () => {
      const answers = await answersOf(from)
      const [index, query] = [INDEX, '/osv/v1/query'].map((path) => answers[path] as { snapshot: string })
      return index?.snapshot === query?.snapshot
    })
    .toBe(true)
  const expected = await comparable(from)
  await expect.poll(both).toEqual([name, expected])
  return expected.length
}

/** Changes records at the service; returns the number of this publication. */
function change(): number {
  fleet.world.sandbox.feed.change(3)
  return publications.note()
}

/** Resolves once everything is published and served, and the views are made. */
async function settled(node: SiteNode): Promise<void> {
  await untilFleet(
    node,
    ({ served, seen, holdingBackSince }) => served > 0 && served === seen && holdingBackSince === null,
  )
  await answering(node, '/osv/ecosystems.txt', 200)
  await answering(node, '/.well-known/vex-repository.json', 200)
}

/** When each of these addresses showed a publication first, Unix milliseconds. */
function timesOf(publication: number, names: readonly string[]): number[] {
  return scanners.seen.filter(({ name }) => names.includes(name)).map(({ firstAt }) => firstAt.get(publication) ?? NaN)
}

/** The whole service, by how often each kind of path was asked for. */
function requested(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { path } of fleet.world.sandbox.requests) {
    const kind = path.replace(/[^/]*\d[^/]*/g, (part) => (/^v\d$/.test(part) ? part : '*'))
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

async function begin(): Promise<void> {
  fleet = await openSiteFleet({ env: SETTINGS, roomMb: 96 })
  ends.push(() => fleet.close())
  const { nodes, world, edges, store } = fleet
  publications = rememberPublications(world.sandbox.feed)
  await nodes.a1.start()
  for (const source of ['osv', 'feeds', 'catalog']) await nodes.a1.said(new RegExp(`${source} sync: complete`))
  await settled(nodes.a1)
  const first = await fleetStatus(nodes.a1)
  for (const name of ['a2', ...READERS] as const) await nodes[name].start()
  for (const name of ['a2', ...READERS] as const) await untilFleet(nodes[name], ({ served }) => served >= first.served)
  const readers = READERS.map((name) => [name, nodes[name].url] as const)
  const behind = EDGES.map((name, i) => [edgeNames[i] ?? '', edges[name] ?? ''] as const)
  for (const [, url] of behind) await answering({ url }, INDEX, 200)
  scanners = startScanners(Object.fromEntries([...readers, ...behind]), publications)
  ends.push(() => scanners.stop())
  figure(`store: ${store.name}; line: ${LINE.delayMs} ms each way, ${LINE.loss * 100} % loss`)
}

if (missing !== null) test.skip(`a fleet at two sites: ${missing}`, () => undefined)

describe.runIf(missing === null)('a fleet at two sites', () => {
  beforeAll(begin)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })

  test('shows a publication on all readers at about the same time, also behind caches', async () => {
    const skews: number[] = []
    const delays: number[] = []
    for (let i = 0; i < 4; i++) {
      const begun = Date.now()
      const publication = change()
      await scanners.shown(publication, everywhere)
      const times = timesOf(publication, READERS)
      skews.push(Math.max(...times) - Math.min(...times))
      delays.push(Math.max(...timesOf(publication, everywhere)) - begun)
    }
    figure(`visible on all readers within ${skews.map((ms) => `${ms} ms`).join(', ')} of the first`)
    figure(`from the change at the service to all readers and edges: ${delays.map(seconds).join(', ')}`)
  })

  test('answers with the same bytes everywhere', async () => {
    const { nodes } = fleet
    for (const node of Object.values(nodes)) await settled(node)
    const { served } = await fleetStatus(nodes.a1)
    for (const node of Object.values(nodes)) await untilFleet(node, (it) => it.served === served)
    let answers = 0
    for (const name of ['a2', ...READERS] as const) answers = await expectSame(name, nodes[name], nodes.a1)
    for (const [name, url] of Object.entries(fleet.edges))
      answers = await expectSame(`the edge of ${name}`, { url }, nodes.a1)
    figure(`${answers} answers of 5 mirrors and 2 edges are equal`)
  })

  test('goes on under the standby when the leader is killed, without another crawl', async () => {
    const { nodes, world } = fleet
    const crawl = world.sandbox.requests.count()
    const before = await fleetStatus(nodes.a1)
    expect(before.leads).toBe(true)
    nodes.a1.signal('SIGKILL')
    await nodes.a1.finished()
    const killed = Date.now()
    world.sandbox.requests.clear()
    const publication = change()
    const after = await untilFleet(nodes.a2, ({ leads }) => leads)
    const led = Date.now()
    expect(after.epoch).toBe(before.epoch + 1)
    await scanners.shown(publication, everywhere)
    const shown = Math.max(...timesOf(publication, everywhere))
    for (const name of READERS) expect([name, (await fleetStatus(nodes[name])).epoch]).toEqual([name, after.epoch])
    const counts = requested()
    figure(
      `leader killed: the standby leads after ${seconds(led - killed)}, what changed is on all readers and edges after ${seconds(shown - killed)}`,
    )
    figure(
      `requests until then ${world.sandbox.requests.count()}, of the first crawl ${crawl}: ${JSON.stringify(counts)}`,
    )
    // The three records that changed; of the catalog, lists alone.
    const items = Object.entries(counts).filter(([path]) => path.includes('*'))
    expect(items).toEqual([['/external/osv/*', 3]])
  })

  test('fences a leader that was stopped and wakes up', async () => {
    const { nodes } = fleet
    await nodes.a1.start()
    const { epoch, served } = await fleetStatus(nodes.a2)
    await untilFleet(nodes.a1, (it) => !it.leads && it.served >= served)
    nodes.a2.signal('SIGSTOP')
    const stopped = Date.now()
    const next = await untilFleet(nodes.a1, ({ leads }) => leads)
    figure(`leader stopped: the other one leads after ${seconds(Date.now() - stopped)}`)
    expect(next.epoch).toBe(epoch + 1)
    const publication = change()
    await scanners.shown(publication, everywhere)
    nodes.a2.signal('SIGCONT')
    const woken = Date.now()
    const last = change()
    const zombie = await untilFleet(nodes.a2, ({ leads, leader }) => !leads && leader?.name === 'a1')
    await scanners.shown(last, everywhere)
    await settled(nodes.a1)
    const newest = await fleetStatus(nodes.a1)
    await untilFleet(nodes.a2, (it) => it.served >= newest.served)
    figure(`woken up, it follows within ${seconds(Date.now() - woken)}; fenced ${zombie.fenced}`)
    expect(newest.epoch).toBe(epoch + 1)
    expect([await codeOf(nodes.a1, '/-/leader'), await codeOf(nodes.a2, '/-/leader')]).toEqual([200, 503])
    await settled(nodes.a2)
    await expectSame('a2', nodes.a2, nodes.a1)
  })

  test('serves on with its age while the store is down, and goes on when it is back', async () => {
    const { nodes, store } = fleet
    const dated = await asOf(nodes.b1)
    const stopped = Date.now()
    await store.pause()
    const publication = change()
    for (const name of READERS) await untilFleet(nodes[name], ({ failing }) => failing !== null)
    await untilFleet(nodes.a1, ({ leads }) => !leads)
    figure(`store stopped: found by all after ${seconds(Date.now() - stopped)}`)
    for (const name of READERS)
      expect([await codeOf(nodes[name], INDEX), await asOf(nodes[name])]).toEqual([200, dated])
    for (const name of READERS) expect([name, await codeOf(nodes[name], '/-/ready')]).toEqual([name, 200])
    expect(timesOf(publication, everywhere)).toEqual(everywhere.map(() => NaN))
    await store.resume()
    const resumed = Date.now()
    await scanners.shown(publication, everywhere)
    figure(`store started: what changed meanwhile is everywhere after ${seconds(Date.now() - resumed)}`)
    for (const name of READERS) await untilFleet(nodes[name], ({ failing }) => failing === null)
  })

  test('serves the old generation from a full disk, says so, and catches up', async () => {
    const { nodes } = fleet
    fillDisk(nodes.b3.data)
    onTestFinished(() => emptyDisk(nodes.b3.data)) // also for the tests after one that failed
    const others = everywhere.filter((name) => name !== 'b3')
    const publication = change()
    await scanners.shown(publication, others)
    const failing = await untilFleet(nodes.b3, (it) => it.failing !== null && it.seen > it.served)
    figure(`disk full: ${failing.failing?.message ?? ''}`)
    await answering(nodes.b3, '/-/ready', 503)
    expect(await codeOf(nodes.b3, INDEX)).toBe(200)
    expect(timesOf(publication, ['b3'])).toEqual([NaN])
    emptyDisk(nodes.b3.data)
    const freed = Date.now()
    await scanners.shown(publication, ['b3'])
    figure(`space free again: it caught up after ${seconds(Date.now() - freed)}`)
    await answering(nodes.b3, '/-/ready', 200)
  })

  test('bridges a line that is down', async ({ skip }) => {
    const { nodes, sites, store } = fleet
    if (!store.isFar) skip('the store is a folder')
    sites.line(false)
    const publication = change()
    await expect
      .poll(async () => publications.indexAt(await (await fetch(nodes.a1.url + INDEX)).text()))
      .toBe(publication)
    for (const name of READERS) expect(await codeOf(nodes[name], INDEX)).toBe(200)
    expect(timesOf(publication, everywhere)).toEqual(everywhere.map(() => NaN))
    sites.line(true)
    const up = Date.now()
    await scanners.shown(publication, everywhere)
    figure(`line up: what changed meanwhile is everywhere after ${seconds(Date.now() - up)}`)
  })

  test('never failed a scanner, nor showed it an older answer', () => {
    const { seen } = scanners
    const total = seen.reduce((sum, { scans }) => sum + scans, 0)
    figure(`${total} scans at ${seen.length} addresses: ${seen.flatMap((one) => one.mixed).length} mixed pairs`)
    expect(seen.map(({ name, mixed, failures }) => [name, mixed, failures])).toEqual(
      seen.map(({ name }) => [name, [], []]),
    )
    expect(seen.every(({ scans }) => scans > 0)).toBe(true)
  })
})
