import { expect, test } from 'vitest'
import { PATIENT, SECRET, becomesReadable, isServed, open, send, serve, synced, webhooksOf } from '../e2e/receiving.ts'
import { relayAndKill } from '../features/relay/killed-relay.ts'
import { coalesceAtRandom } from '../webhooks/refresh/coalesce-random.ts'
import { scratch, startInbox } from '../webhooks/inbox/inboxes.ts'
import { receiving } from '../webhooks/receive/receivers.ts'

const EVENTS = 2_000

test('two thousand events within half a minute cause at most two refreshes, and all are settled', async () => {
  const world = await open()
  world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
  const served = await serve(world, { LIMIT_WEBHOOKS_DEBOUNCE_MS: '10000' })
  await synced(served)
  const tags = [world.sandbox.service.addTag(), world.sandbox.service.addTag(), world.sandbox.service.addTag()]
  const left = Array.from({ length: EVENTS }, (_, i) => tags[i % tags.length] ?? '')
  const sender = async (): Promise<void> => {
    for (let tag = left.pop(); tag !== undefined; tag = left.pop())
      expect(await send(world, served.hook, tag)).toBe(202)
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: 32 }, sender))
  const halfMinutes = Math.floor((performance.now() - began) / 30_000) // none: events wait that long at most
  await expect
    .poll(async () => (await webhooksOf(served)).counts, PATIENT)
    .toMatchObject({
      pending: 0,
      done: EVENTS,
    })
  expect((await webhooksOf(served)).refresh.refreshes).toBeLessThanOrEqual(2 + halfMinutes)
  for (const tag of tags) expect(await isServed(served, tag)).toBe(200)
}, 240_000)

test('a tag that the service announces in the vendor dialect is readable with its SBOM once the mirror runs', async () => {
  const retryDelaysMs = Array.from({ length: 300 }, () => 200)
  await becomesReadable(await open({ dialect: 'vendor', retryDelaysMs }), 'vendor')
})

test('an event that comes before its tag is listed is looked for again without a command', async () => {
  const world = await open()
  const served = await serve(world)
  await synced(served)
  const made = await world.patchmirror('webhooks', 'register', '--url', served.hook)
  expect(made.code, made.err).toBe(0)
  await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(1)
  world.sandbox.service.deliveries.faults.set({ kind: 'early' })
  const tag = world.sandbox.service.addTag()
  await expect.poll(async () => (await webhooksOf(served)).counts?.pending, PATIENT).toBe(1)
  world.sandbox.service.deliveries.reveal()
  await expect.poll(() => isServed(served, tag), PATIENT).toBe(200)
  await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(2)
})

test('ten thousand events in ten seconds are all stored', async () => {
  const { deliver, inbox } = await receiving({}, await startInbox(scratch()))
  let next = 0
  const sender = async (): Promise<number> => {
    let accepted = 0
    while (next < 10_000) if ((await deliver({ id: `evt_${next++}` })).status === 202) accepted++
    return accepted
  }
  const accepted = await Promise.all(Array.from({ length: 64 }, sender))
  expect(accepted.reduce((sum, count) => sum + count)).toBe(10_000)
  expect(await inbox.counts()).toMatchObject({ pending: 10_000 })
})

test('whatever happens, no event is lost and two refreshes never run at once', async () => {
  await coalesceAtRandom(1_000)
})

test('a relay that is killed between sending and writing down loses nothing, and renames nothing', async () => {
  await relayAndKill(60, 12)
})
