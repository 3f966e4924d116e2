import { renameSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bearer } from '../../support/keys.ts'
import { type Node, answersOf, fleetStatus, openFleet, untilFleet } from '../../support/fleet/daemons.ts'

const SYNCED = ['osv', 'feeds', 'catalog'].map((source) => new RegExp(`${source} sync: complete`))

const codeOf = async ({ url }: Node, path: string, init?: RequestInit): Promise<number> => {
  const answer = await fetch(url + path, init)
  await answer.arrayBuffer()
  return answer.status
}
const snapshotOf = async ({ url }: Node): Promise<string | null> =>
  (await fetch(`${url}/external/osv/all.json`)).headers.get('x-mirror-snapshot')

/** Resolves once everything that a leader stored is published and served, and the views are made. */
async function settled(node: Node): Promise<number> {
  const { served } = await untilFleet(
    node,
    ({ served, seen, holdingBackSince }) => served > 0 && served === seen && holdingBackSince === null,
  )
  const vex = '/.well-known/vex-repository.json'
  await expect.poll(() => codeOf(node, vex, { headers: bearer() })).toBe(200)
  await expect.poll(() => codeOf(node, '/osv/ecosystems.txt')).toBe(200)
  return served
}

test('a reader serves byte for byte what the leader published, at its time, and the leader nothing before', async () => {
  const { world, env } = await openFleet(30)
  const leader = await world.host(env('a', 'auto'))
  for (const line of SYNCED) await leader.said(line)
  const reader = await world.host(env('b', 'reader'))
  const first = await settled(leader)
  await untilFleet(reader, ({ served }) => served === first)
  await settled(reader)
  const answers = await answersOf(leader)
  expect(await answersOf(reader)).toEqual(answers)
  const codes = await Promise.all(
    [leader, reader].flatMap((node) => [codeOf(node, '/-/leader'), codeOf(node, '/-/ready')]),
  )
  expect(codes).toEqual([200, 200, 503, 200])
  const refused = await fetch(`${reader.url}/-/webhooks`, { method: 'POST', body: '{}' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30'])
  expect(await refused.text()).toContain('a leads')
  expect(await codeOf(leader, '/-/webhooks', { method: 'POST', body: '{}' })).toBe(401)

  const before = await snapshotOf(leader)
  world.sandbox.feed.add(5)
  world.sandbox.service.addTag()
  const ended = Promise.all([leader.next('osv'), leader.next('catalog')])
  for (const source of ['osv', 'catalog'] as const) leader.agent.requestSync(source, 'sync')
  await ended
  const kept = await answersOf(leader)
  // It is stored, and nothing of it is served, by any thread; a slow machine may be past that time.
  if ((await fleetStatus(leader)).served === first) expect(kept).toEqual(answers)
  const due = await untilFleet(leader, ({ seen }) => seen > first)
  await untilFleet(leader, ({ served }) => served > first)
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(due.activatesAt ?? ''))
  const last = await settled(leader) // a slow machine publishes the two runs one after the other
  await untilFleet(reader, ({ served }) => served === last)
  expect(await snapshotOf(reader)).toBe(await snapshotOf(leader))
  expect(await snapshotOf(leader)).not.toBe(before)

  Object.assign(world.env, env('b', 'reader'))
  const shown = async (): Promise<string> => (await world.patchmirror('fleet', 'status')).out
  await expect.poll(shown).toMatch(new RegExp(`b +- +${last} `))
  expect(await shown()).toMatch(/^lease: a, epoch 1, until/m)
  const own = await world.patchmirror('status')
  expect(own.out).toMatch(/^fleet: b \(reader\) follows; a leads \(epoch 1\)$/m)
})

test('a standby takes over from a leader that is killed, one that was stopped follows, and readers outlive the store', async () => {
  const { world, store, env } = await openFleet(5)
  const first = await world.serve(env('a', 'writer'))
  for (const line of SYNCED) await first.said(line)
  await settled(first)
  const second = await world.serve(env('b', 'standby'))
  const reader = await world.serve(env('c', 'reader'))
  const known = await fleetStatus(first)
  for (const node of [second, reader]) await untilFleet(node, ({ served }) => served === known.served)

  world.sandbox.feed.add(3) // only a new leader's first sync finds them
  first.child.kill('SIGKILL')
  const led = await untilFleet(second, ({ seen, served }) => seen > known.seen && served === seen)
  expect(led.epoch).toBeGreaterThan(known.epoch)
  await untilFleet(reader, ({ served }) => served >= led.served)

  const third = await world.serve(env('d', 'auto'))
  await untilFleet(third, ({ served }) => served >= led.served)
  second.child.kill('SIGSTOP')
  const next = await untilFleet(third, ({ leads }) => leads)
  expect(next.epoch).toBeGreaterThan(led.epoch)
  second.child.kill('SIGCONT')
  await untilFleet(second, ({ leads, leader }) => !leads && leader?.name === 'd')
  await untilFleet(second, ({ served }) => served >= next.served)
  const leading = () => Promise.all([second, third].map((node) => codeOf(node, '/-/leader')))
  await expect.poll(leading).toEqual([503, 200]) // a lease of a busy machine may end before it is renewed
  expect(await snapshotOf(second)).toBe(await snapshotOf(third))

  renameSync(store, `${store}-away`)
  await untilFleet(reader, ({ failing }) => failing !== null)
  await untilFleet(third, ({ leads }) => !leads)
  expect(await codeOf(reader, '/external/osv/all.json')).toBe(200)
  expect(await codeOf(reader, '/-/ready')).toBe(200)
  renameSync(`${store}-away`, store)
  await untilFleet(reader, ({ failing }) => failing === null)
  await Promise.race([second, third].map((node) => untilFleet(node, ({ leads }) => leads)))
})
