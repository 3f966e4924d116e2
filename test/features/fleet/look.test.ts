import { mkdirSync, mkdtempSync, utimesSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NetworkInterfaceInfo, hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { KeyTrust } from '../../../src/features/bundles/format/keys.ts'
import { createMissed, createNotifier, delayOf, notifyMirrors } from '../../../src/features/fleet/look/notify.ts'
import { LOOK_PATH, type Takeover, sealLook } from '../../../src/features/fleet/look/message.ts'
import { addressForMirrors, lookRoute } from '../../../src/features/fleet/look/route.ts'
import { nothingKnown } from '../../../src/features/fleet/knowledge.ts'
import { createFolderStore } from '../../../src/features/fleet/objects/folder-store.ts'
import type { ObjectStore } from '../../../src/features/fleet/objects/object-store.ts'
import { type ReaderReport, listReaders, writeReader } from '../../../src/features/fleet/readers.ts'
import type { GenerationFacts, NodeReport } from '../../../src/features/fleet/turn.ts'
import { folder, signer } from '../bundles/air-gap.ts'
import { keyPair, scratch, trust } from '../bundles/fixtures.ts'
import { type ServedContract, violations } from '../../support/openapi.ts'
import { closeAll, serve } from '../../server/served.ts'
import { nodeConfig } from './generations/nodes.ts'

afterEach(closeAll)

const ID = 'ab'.repeat(16)
const TOOK: Takeover = { ms: 400, bytes: 1000 }

function facts(generation: number): GenerationFacts {
  return { generation, epoch: 1, stamp: '', publishedAt: 0, activateAt: 0 }
}

/** What a mirror reports that stores this generation, and has seen `newest`. */
function reportAt(generation: number, more: Partial<NodeReport> = {}): NodeReport {
  return {
    leads: null,
    leadsUntil: null,
    lease: null,
    newest: facts(generation),
    applied: facts(generation),
    stored: generation,
    prepared: generation,
    took: TOOK,
    failing: null,
    fenced: 0,
    paused: false,
    ...more,
  }
}

/** A mirror that can be notified of generations; `looks` has those that it looked for. */
async function mirrorAt(generation: number, { id = ID, ...more }: Partial<NodeReport> & { id?: string } = {}) {
  const looks: number[] = []
  const known = { ...nothingKnown(), own: id, report: reportAt(generation, more) }
  const whom: { trust: KeyTrust } = { trust: trust([signer()]) }
  const route = lookRoute({ known, trust: () => whom.trust, look: (one) => void looks.push(one) })
  const { port } = await serve(() => undefined, { plugins: [route] })
  const url = `http://127.0.0.1:${port}`
  const post = async (body: string) => {
    const answer = await fetch(url + LOOK_PATH, { method: 'POST', body })
    return { status: answer.status, body: await answer.json() }
  }
  return { url, post, looks, known, whom }
}

describe('a message about the next generation', () => {
  test('has a mirror look for it until it is seen; repeated or older ones change nothing', async () => {
    const { post, looks, known } = await mirrorAt(7)
    const message = sealLook(8, ID, [signer()])
    expect(await post(message)).toEqual({ status: 200, body: { generation: 7, took: TOOK } })
    expect(looks).toEqual([8])
    known.report = reportAt(8)
    for (const old of [message, sealLook(3, ID, [signer()])]) expect((await post(old)).status).toBe(200)
    expect(looks).toEqual([8])
  })

  test('is refused without a signature of a trusted key for this mirror and number, and changes nothing', async () => {
    const { post, looks, whom } = await mirrorAt(7)
    const other = keyPair(scratch(), 'other')
    const { signatures } = JSON.parse(sealLook(8, ID, [signer()])) as { signatures: object }
    const forged = [
      JSON.stringify({ generation: 8, signatures: {} }),
      JSON.stringify({ generation: 9, signatures }),
      JSON.stringify({ generation: 8, signatures, more: 1 }),
      sealLook(8, ID, [other]),
      sealLook(8, 'cd'.repeat(16), [signer()]),
      '{',
      '',
    ]
    for (const message of forged) expect(await post(message)).toMatchObject({ status: 403 })
    whom.trust = trust([signer()], { revoked: new Set([signer().id]) })
    expect((await post(sealLook(8, ID, [signer()]))).status).toBe(403)
    expect((await post('x'.repeat(4000))).status).toBe(413)
    expect(looks).toEqual([])
  })

  test('is answered as the API document says', async () => {
    const { url } = await mirrorAt(7)
    const contract = (await (await fetch(`${url}/-/openapi.json`)).json()) as ServedContract
    const bodies = [sealLook(8, ID, [signer()]), '{}', 'x'.repeat(4000)]
    const asked = { method: 'POST', path: LOOK_PATH }
    const codes: number[] = []
    for (const body of bodies) {
      const { status, headers } = await fetch(url + LOOK_PATH, { method: 'POST', body })
      codes.push(status)
      expect(violations(contract, { ...asked, status, headers })).toEqual([])
    }
    const gzip = { method: 'POST', body: '{}', headers: { 'content-encoding': 'gzip' } }
    const { status, headers } = await fetch(url + LOOK_PATH, gzip)
    expect(violations(contract, { ...asked, status, headers })).toEqual([])
    expect([...codes, status]).toEqual([200, 403, 413, 400])
  })

  test('is answered with no generation while the mirror cannot follow, and is refused before it knows its id', async () => {
    const { post, known } = await mirrorAt(7, { failing: { refused: null, message: 'down' } })
    const message = sealLook(8, ID, [signer()])
    expect(await post(message)).toMatchObject({ status: 200, body: { generation: 0 } })
    Object.assign(known, { own: null })
    expect((await post(message)).status).toBe(403)
  })
})

/** A store in a folder, with a function that writes what a mirror says of itself. */
function openStore() {
  const root = join(mkdtempSync(join(tmpdir(), 'patchmirror-look-')), 'store')
  mkdirSync(root)
  const store = createFolderStore(`file://${root}`)
  onTestFinished(() => store.close())
  const add = async (id: string, address: string | null, more: Partial<ReaderReport> = {}): Promise<string> => {
    const at = '2026-05-01T00:00:00.000Z'
    const seen = { site: null, role: 'reader', leads: false, generation: 7, lagSeconds: 0, version: '1', at }
    const name = `mirror-${id.slice(0, 2)}`
    await writeReader(store, {
      id,
      name,
      address,
      deflater: null,
      stopped: false,
      ...seen,
      ...more,
    } satisfies ReaderReport)
    return join(root, 'readers', `${id}.json`)
  }
  return { store, add }
}

const OWN = '00'.repeat(16)

/** Tells all mirrors of generation 8, and returns what they answered, and why not all were notified. */
async function tell(store: ObjectStore, missed = createMissed(() => 60_000, Date.now), generation = 8) {
  const transport = createNotifier(nodeConfig(folder()).upstream)
  let why: string | null = null
  const onNotified = (given: string | null): void => void (why = given)
  try {
    const took = await notifyMirrors({ store, own: OWN, keys: [signer()], transport, missed, onNotified }, generation)
    return { took, why }
  } finally {
    await transport.close()
  }
}

describe('the mirror that publishes', () => {
  test('tells all others that are present, and learns how they took over the last generations', async () => {
    const { store, add } = openStore()
    const other = 'cd'.repeat(16)
    const mirrors = [await mirrorAt(7), await mirrorAt(7, { id: other, took: { ms: 900, bytes: 5 } })]
    await add(OWN, null)
    await add(ID, mirrors[0]?.url ?? '')
    await add(other, `${mirrors[1]?.url ?? ''}/`)
    const gone = await add('ee'.repeat(16), null)
    await add('ff'.repeat(16), null, { stopped: true })
    const hourAgo = Date.now() / 1000 - 3600
    utimesSync(gone, hourAgo, hourAgo)
    const { took, why } = await tell(store)
    expect(took?.toSorted((one, two) => one.ms - two.ms)).toEqual([TOOK, { ms: 900, bytes: 5 }])
    expect([why, ...mirrors.map(({ looks }) => looks)]).toEqual([null, [8], [8]])
  })

  test.each([
    ['has no address', () => Promise.resolve(null), /: mirror-ab has no address/],
    ['does not listen', () => Promise.resolve('http://127.0.0.1:1'), /: mirror-ab at http:\/\/127\.0\.0\.1:1: /],
    ['does not answer', silent, /no answer in time$/],
    ['is another mirror', async () => (await mirrorAt(7, { id: 'cd'.repeat(16) })).url, /it answered 403$/],
    ['is behind', async () => (await mirrorAt(6)).url, /it does not have the generation before$/],
    ['has taken over nothing yet', async () => (await mirrorAt(7, { took: null })).url, /since its start$/],
  ])('knows that not all were notified where one %s', async (_, open, reason) => {
    const { store, add } = openStore()
    await add(ID, await open())
    const { took, why } = await tell(store)
    expect(took).toBeNull()
    expect(why).toMatch(reason)
  })
})

test('a mirror that is dead delays the others no longer than until it is behind; one that is alive delays them each time', async () => {
  const { store, add } = openStore()
  const [dead, deaf, other] = ['cd', 'ee', '12'].map((byte) => byte.repeat(16)) as [string, string, string]
  const mirrors = [await mirrorAt(7), await mirrorAt(7, { id: other })]
  await add(ID, mirrors[0]?.url ?? '')
  await add(other, mirrors[1]?.url ?? '')
  await add(dead, 'http://127.0.0.1:1')
  const clock = { at: 0 }
  const missed = createMissed(
    () => 60_000,
    () => clock.at,
  )
  const next = async (generation: number, after: number) => {
    clock.at += after
    for (const { known } of mirrors) known.report = reportAt(generation - 1)
    return tell(store, missed, generation)
  }
  expect(await next(8, 0)).toMatchObject({
    took: null,
    why: expect.stringMatching(/^so these begin after two polls: mirror-cd at /) as string,
  })
  expect(mirrors.map(({ looks }) => looks)).toEqual([[8], [8]])
  // It may still learn of it by its poll. A generation that was not published in the end is not missed.
  expect((await next(9, 59_000)).took).toBeNull()
  expect((await next(8, 1000)).took).toBeNull()
  expect(await next(9, 0)).toMatchObject({
    took: [TOOK, TOOK],
    why: expect.stringMatching(/^but none is delayed: mirror-cd at /) as string,
  })
  // One that cannot be reached says what it serves, so it learns of generations by its polls.
  await add(deaf, 'http://127.0.0.1:1', { generation: 8 })
  expect(await next(9, 0)).toMatchObject({
    took: null,
    why: expect.stringMatching(/^so these .*: mirror-ee at /) as string,
  })
  await add(deaf, 'http://127.0.0.1:1', { generation: 9, at: '2026-05-01T00:02:00.000Z' })
  expect(await next(10, 120_000)).toMatchObject({
    took: null,
    why: expect.stringMatching(/^so these .*: mirror-ee at /) as string,
  })
})

/** The URL of a server that takes connections and never answers. */
async function silent(): Promise<string> {
  const server = createServer(() => undefined)
  onTestFinished(() => server.close().closeAllConnections())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  ['two polls where not all were notified', null, 1000, 20_000],
  ['a second where there are no other mirrors', [], 1000, 1000],
  ['one and a half times the slowest takeover, and some time', [TOOK, { ms: 2000, bytes: 1000 }], 1000, 3400],
  ['more time for more bytes', [{ ms: 2000, bytes: 3_000_000 }], 9_000_000, 9400],
  ['no more time for more bytes of small bundles', [{ ms: 2000, bytes: 1000 }], 2_000_000, 3400],
  ['no more time for fewer bytes', [{ ms: 2000, bytes: 1000 }], 10, 3400],
  ['at most two polls', [{ ms: 2 ** 52, bytes: 1 }], 2 ** 40, 20_000],
] as const)('a generation is activated after %s', (_, took, bytes, delay) => {
  expect(delayOf({ took, bytes, storedMs: 100, longest: 20_000 })).toBe(delay)
})

test('other mirrors reach a mirror where it listens, by its public URL where it has a certificate, on loopback on the same machine', () => {
  const of = (listen: string, url: string, publicUrl: string | null, tls = false): string | null => {
    const { server, fleet } = nodeConfig(folder(), { PATCHMIRROR_SERVER_LISTEN: listen })
    const listening = `http${tls ? 's' : ''}://${server.host === '0.0.0.0' ? 'localhost' : server.host}:8080`
    const given = { ...server, publicUrl, certFile: tls ? 'cert.pem' : null }
    return addressForMirrors(
      { server: given, fleet: { ...fleet, url } },
      server.socket === null ? listening : 'unix:/run/s',
      () => ({}),
    )
  }
  const PUBLIC = 'https://mirror.example'
  expect([
    of('10.0.0.5:8080', 's3://bucket', PUBLIC),
    of('0.0.0.0:8080', 's3://bucket', PUBLIC),
    of('0.0.0.0:8080', 's3://bucket', PUBLIC, true),
    of('10.0.0.5:8080', 's3://bucket', null, true),
    of('127.0.0.1:8080', 's3://bucket', PUBLIC),
    of('127.0.0.1:8080', 's3://bucket', null),
    of('127.0.0.1:8080', 'file:///srv/fleet', PUBLIC),
    of('unix:/run/s', 'file:///srv/fleet', null),
  ]).toEqual([
    'http://10.0.0.5:8080',
    `http://${hostname()}:8080`,
    PUBLIC,
    'https://10.0.0.5:8080',
    PUBLIC,
    null,
    'http://127.0.0.1:8080',
    null,
  ])
})

test('a mirror that listens everywhere is reached at the only address of its machine, as a pod without a known name is', () => {
  const { server, fleet } = nodeConfig(folder(), { PATCHMIRROR_SERVER_LISTEN: '0.0.0.0:8080' })
  const address = (of: string, family: 'IPv4' | 'IPv6' = 'IPv4', internal = false) =>
    ({ address: of, netmask: '', family, mac: '', internal, cidr: null, scopeid: 0 }) as NetworkInterfaceInfo
  const lo = [address('127.0.0.1', 'IPv4', true), address('::1', 'IPv6', true)]
  const pod = [address('10.42.0.7'), address('fe80::1', 'IPv6')]
  const of = (interfaces: () => Record<string, NetworkInterfaceInfo[]>, certFile: string | null = null) =>
    addressForMirrors({ server: { ...server, certFile }, fleet }, 'http://localhost:8080', interfaces)
  const byName = `http://${hostname()}:8080`
  expect(of(() => ({ lo, eth0: pod }))).toBe('http://10.42.0.7:8080')
  expect(of(() => ({ lo, eth0: pod, docker0: [address('172.17.0.1')] }))).toBe(byName)
  expect(of(() => ({ lo, eth0: pod }), 'cert.pem')).toBe(byName) // which a certificate may name
  const forbidden = () => {
    throw new Error('A system error occurred: uv_interface_addresses returned EAFNOSUPPORT')
  }
  expect(of(forbidden)).toBe(byName)
})

test('what is no address of a mirror is read as none', async () => {
  const { store, add } = openStore()
  const given = ['http://a:1', 'ftp://a', 'http://user:key@a', '/etc/passwd', `http://${'a'.repeat(600)}`]
  for (const [i, address] of given.entries()) await add(`${i}0`.repeat(16), address)
  expect((await listReaders(store)).map(({ address }) => address)).toEqual(['http://a:1', null, null, null, null])
})
