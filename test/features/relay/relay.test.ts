import { describe, expect } from 'vitest'
import { RELAY_TARGET } from '../../../src/base/reports/transfer.ts'
import { relayStatus } from '../../../src/server/status/status.ts'
import { faultsBy } from '../../support/openapi.ts'
import { NOW } from '../../store/fixtures.ts'
import { type Target, bench, target } from './targets.ts'
import { longTest, test } from '../../support/tables.ts'

const MINUTE = 60_000
const DAY = 86_400_000

const logId = (id: string): string => id.replace(/.*_/, '')

const stateOf = ({ outbox }: ReturnType<typeof bench>, at = 0) => outbox.listTargets()[at]

describe('a received event', () => {
  test('is relayed with its own id and bytes, and a new signature', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    const body = '{ "id": "ü",\r\n "type":"io.service.cr.image.created.v1" }'
    made.deliver('msg_1', { body })
    await made.round()
    expect(to.got).toHaveLength(1)
    expect(to.got[0]).toMatchObject({ id: 'msg_1', signed: true, timestamp: NOW / 1000 })
    expect(to.got[0]?.body.toString()).toBe(body)
    expect(to.got[0]?.headers['content-type']).toBe('application/cloudevents+json')
    expect(stateOf(made)).toMatchObject({ state: 'ok', pending: 0, deliveredAt: NOW })
    await made.round()
    expect(to.got).toHaveLength(1)
  })

  test('of another form is relayed too, with the content type of its form', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    for (const [at, body] of ['', '[{"id":1}]', 'a=b', '{"event":"x"}'].entries())
      made.deliver(`msg_${at}`, { body, type: null })
    await made.round()
    const sent = to.got.map(({ headers, body }) => [headers['content-type'], body.toString()])
    expect(sent.sort()).toEqual([
      ['application/cloudevents+json', '{"event":"x"}'],
      ['application/cloudevents-batch+json', '[{"id":1}]'],
      ['application/octet-stream', ''],
      ['application/octet-stream', 'a=b'],
    ])
    expect(to.got.every(({ signed }) => signed)).toBe(true)
  })

  test('waits until the refresh that covers it is done', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    const row = made.deliver('msg_1', { state: 'pending' })
    await made.round()
    expect(to.got).toHaveLength(0)
    made.done(row)
    await made.round()
    expect(to.ids()).toEqual(['msg_1'])
  })

  test('that was received at two endpoints is relayed once', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    made.deliver('msg_1', { endpoint: 'other' })
    await made.round()
    await made.round()
    expect(to.ids()).toEqual(['msg_1'])
  })

  test('is stored for readers of events when no target accepts it', async () => {
    const to = await target()
    for (const made of [bench(), bench({ targets: [to.url], events: ['snapshot'] })]) {
      made.deliver('msg_1')
      await made.round()
      expect(made.outbox.listEvents(0, 10)).toMatchObject([{ id: 1, webhookId: 'msg_1' }])
    }
    expect(to.got).toHaveLength(0)
  })
})

describe('a published snapshot', () => {
  test('is sent as a CloudEvent with its changes, from the first start', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    await made.publish('s1', ['a', 'b'])
    await made.round()
    expect(to.got).toHaveLength(0)
    await made.publish('s2', ['b', 'c'])
    await made.round()
    const [got] = to.got
    expect(got?.signed).toBe(true)
    expect(JSON.parse(String(got?.body))).toMatchObject({
      specversion: '1.0',
      id: got?.id,
      type: 'io.patchmirror.snapshot.published.v1',
      subject: 'osv',
      time: new Date(NOW).toISOString(),
      data: {
        source: 'osv',
        snapshot: 's2',
        previous: 's1',
        complete: true,
        changes: [
          { id: 'b', change: 'changed' },
          { id: 'c', change: 'added' },
        ],
      },
    })
    expect(got?.id).toMatch(/^pm_[0-9a-f]{16}_2$/)
  })

  longTest('that was published while the relay was stopped is sent after its start', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    await made.round()
    made.relay.stop()
    await made.publish('s1', ['a'])
    await made.publish('s2', ['b'])
    const again = await made.restart()
    await again.round()
    await again.round()
    expect(to.ids().map(logId)).toEqual(['1', '2'])
  })

  longTest('that was published without any target is not sent to a later target', async () => {
    const to = await target()
    const made = bench()
    await made.round()
    for (const id of ['s1', 's2']) await made.publish(id, [id])
    await made.round()
    const again = await made.restart({ targets: [to.url], events: ['webhook'] })
    await again.publish('s3', ['c'])
    await again.round()
    const last = await again.restart({ events: ['snapshot'] })
    await last.publish('s4', ['d'])
    await last.round()
    expect(to.ids().map(logId)).toEqual(['4'])
  })

  longTest('that was published before a target was added is sent to the earlier targets alone', async () => {
    const [there, comes] = await Promise.all([target(), target()])
    const made = bench({ targets: [there.url] })
    await made.round()
    for (const id of ['s1', 's2']) await made.publish(id, [id])
    const again = await made.restart({ targets: [there.url, comes.url] })
    await again.round()
    await again.publish('s3', ['c'])
    await again.round()
    expect(there.ids().map(logId)).toEqual(['1', '2', '3'])
    expect(comes.ids().map(logId)).toEqual(['3'])
  })

  test('is sent to a target that was removed and added again only if it is newer', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    await made.round()
    const without = await made.restart({ targets: [] })
    await without.round()
    await without.publish('s1', ['a'])
    const again = await without.restart({ targets: [to.url] })
    await again.round()
    await again.publish('s2', ['b'])
    await again.round()
    expect(to.ids().map(logId)).toEqual(['2'])
  })
})

describe('a relay target', () => {
  longTest('that fails is tried again with growing pauses, under the same id and with a new time', async () => {
    const to = await target(500)
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    await made.round()
    for (const seconds of [5, 30, 120, 600]) {
      made.pass(seconds * 1000 - 1)
      await made.round()
      const before = to.got.length
      made.pass(1)
      await made.round()
      expect(to.got.length - before).toBe(1)
    }
    expect(stateOf(made)).toMatchObject({ state: 'failing', since: NOW, failures: 5, pending: 1 })
    expect(
      made.outbox
        .listTargets()
        .map((one) => relayStatus({ ...one, name: 'ci' }))
        .flatMap((one) => faultsBy(RELAY_TARGET, one)),
    ).toEqual([])
    expect(stateOf(made)?.reason).toBe('it answered 500')
    to.manner = 200
    made.pass(2 * 1800_000)
    await made.round()
    expect(stateOf(made)).toMatchObject({ state: 'ok', since: null, failures: 0, pending: 0 })
    expect(new Set(to.ids())).toEqual(new Set(['msg_1']))
    expect(new Set(to.got.map(({ timestamp }) => timestamp)).size).toBe(to.got.length)
    expect(to.got.every(({ signed }) => signed)).toBe(true)
  })

  test('that fails several requests at once is counted as failing once', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url], concurrency: 4 })
    for (let n = 0; n < 9; n++) made.deliver(`msg_${n}`)
    await made.round()
    expect([to.got.length, stateOf(made)?.failures]).toEqual([4, 1])
    made.pass(5_000)
    await made.round()
    expect([to.got.length, stateOf(made)?.failures]).toEqual([5, 2])
    expect((stateOf(made)?.dueAt ?? 0) - NOW).toBe(35_000)
  })

  test('that sends Retry-After is given that time', async () => {
    const to = await target((response) => response.writeHead(429, { 'Retry-After': '3600' }).end())
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    made.deliver('msg_2')
    await made.round()
    const asked = to.got.length
    made.pass(3_599_000)
    await made.round()
    expect(to.got).toHaveLength(asked)
    made.pass(1000)
    to.manner = 204
    await made.round()
    await made.round()
    expect(new Set(to.ids())).toEqual(new Set(['msg_1', 'msg_2']))
    expect(stateOf(made)?.pending).toBe(0)
  })

  test('that answers 410 receives nothing until it is enabled', async () => {
    const to = await target(410)
    const made = bench({ targets: [to.url] })
    for (const n of [1, 2, 3]) made.deliver(`msg_${n}`)
    await made.round()
    expect(stateOf(made)).toMatchObject({ state: 'disabled', since: NOW, pending: 0, givenUp: 3 })
    const tried = to.got.length
    made.pass(DAY)
    made.deliver('msg_4')
    await made.publish('s1', ['a'])
    await made.round()
    expect(to.got).toHaveLength(tried)
    expect(stateOf(made)).toMatchObject({ state: 'disabled', pending: 0, givenUp: 5 })
    to.manner = 204
    expect(made.enable(stateOf(made)?.id ?? 0)).toBe(true)
    expect(made.enable(99)).toBe(false)
    made.deliver('msg_5')
    await made.round()
    expect(to.ids().at(-1)).toBe('msg_5')
    expect(stateOf(made)).toMatchObject({ state: 'ok', since: null })
  })

  test('that redirects is not followed', async () => {
    const elsewhere = await target()
    const to = await target((response) => response.writeHead(307, { Location: elsewhere.url }).end())
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    await made.round()
    expect(elsewhere.got).toHaveLength(0)
    expect(stateOf(made)).toMatchObject({ state: 'failing', pending: 1 })
  })

  longTest('that refuses one event receives the others meanwhile', async () => {
    const to = await target((response, { id }) => response.writeHead(id === 'bad' ? 400 : 204).end())
    const made = bench({ targets: [to.url], concurrency: 1 })
    for (const id of ['msg_1', 'bad', 'msg_2']) made.deliver(id)
    for (let n = 0; n < 3; n++) await made.round()
    expect(to.ids()).toEqual(['msg_1', 'bad', 'msg_2'])
    expect(stateOf(made)).toMatchObject({ state: 'ok', pending: 1, reason: 'it answered 400' })
  })

  test.each<[string, (to: Target) => void, RegExp]>([
    ['resets the connection', (to) => (to.manner = (response) => response.destroy()), /^no answer/],
    ['never answers', (to) => (to.manner = () => undefined), /^no answer within 200 ms$/],
    ['is not there', () => undefined, /^no answer \(ECONNREFUSED\)$/],
  ])('that %s is failing, and the reason contains no token', async (what, spoil, reason) => {
    const to = await target()
    spoil(to)
    if (what === 'is not there') await to.close()
    const made = bench({ targets: [to.url], timeoutMs: 200 })
    made.deliver('msg_1')
    await made.round()
    expect(stateOf(made)).toMatchObject({ state: 'failing', failures: 1, pending: 1 })
    expect(stateOf(made)?.reason).toMatch(reason)
    expect(stateOf(made)?.reason).not.toContain('private')
  })

  test('that is slow does not delay the others', async () => {
    const held: (() => void)[] = []
    const slow = await target((response) => held.push(() => response.writeHead(204).end()))
    const quick = await target()
    const made = bench({ targets: [slow.url, quick.url], concurrency: 2, timeoutMs: 20_000 })
    for (let n = 0; n < 10; n++) made.deliver(`msg_${n}`)
    await expect
      .poll(() => {
        made.relay.poll()
        return quick.got.length
      })
      .toBe(10)
    expect(slow.got.length).toBeLessThanOrEqual(2)
    slow.manner = 204
    for (const release of held) release()
    await expect
      .poll(() => {
        made.relay.poll()
        return new Set(slow.ids()).size
      })
      .toBe(10)
  })

  longTest('whose answer does not end has received the event, and is disconnected', async () => {
    const cut = Promise.withResolvers<undefined>()
    const to = await target((response) => {
      response
        .once('close', () => cut.resolve(undefined))
        .writeHead(200)
        .write('so')
    })
    const made = bench({ targets: [to.url], timeoutMs: 60_000 })
    made.deliver('msg_1')
    await made.round()
    await cut.promise
    expect(stateOf(made)).toMatchObject({ state: 'ok', pending: 0 })
  })

  test('that works again receives the pending events in order, one at a time at first', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url], concurrency: 4 })
    for (let n = 0; n < 6; n++) made.deliver(`msg_${n}`)
    await made.round()
    const first = to.got.length
    made.pass(10 * MINUTE)
    await made.round()
    expect(to.got.length - first).toBe(1) // a failing target is asked with one request, not with all that waits
    to.manner = 204
    to.got.length = 0
    for (let n = 0; n < 8; n++) {
      made.pass(30 * MINUTE)
      await made.round()
    }
    expect(to.ids()).toHaveLength(6)
    expect(new Set(to.ids()).size).toBe(6)
    expect(to.ids().slice(1)).toEqual([...to.ids().slice(1)].sort())
  })

  longTest('that was down for a long time receives the pending events when it is enabled', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url], concurrency: 1 })
    made.deliver('old')
    for (let hours = 0; hours < 30; hours += 3) {
      await made.round()
      made.pass(180 * MINUTE)
    }
    await made.round()
    to.manner = 204
    made.enable(stateOf(made)?.id ?? 0)
    await made.round()
    expect([to.ids().at(-1), stateOf(made)?.pending]).toEqual(['old', 0])
  })

  longTest('that works again receives events with long pauses within a minute', async () => {
    const to = await target((response, { id }) => response.writeHead(id === 'odd' ? 503 : 204).end())
    const made = bench({ targets: [to.url], concurrency: 1 })
    made.deliver('odd')
    await made.round()
    for (let n = 1; n <= 8; n++) {
      made.deliver(`msg_${n}`)
      made.pass(MINUTE) // its own pauses have long grown to hours, but others were taken in between
      for (let look = 0; look < 3; look++) await made.round()
      made.pass(5_000)
      await made.round()
      expect(to.ids().filter((id) => id === 'odd')).toHaveLength(n + 1)
    }
    expect(stateOf(made)?.pending).toBe(1)
  })

  longTest('that never works again loses its events after the configured days, and they are counted', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    for (let hours = 0; hours < 104; hours += 4) {
      await made.round()
      made.pass(4 * 60 * MINUTE)
    }
    expect(stateOf(made)).toMatchObject({ state: 'failing', pending: 0, givenUp: 1 })
    expect(made.outbox.listEvents(0, 10)).toEqual([])
    expect(made.outbox.lastEvent()).toBe(1)
    expect(to.got.length).toBeGreaterThan(10)
  })

  longTest('that never works again loses its events also behind one that a clock a year ahead had dated', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url] })
    made.pass(365 * DAY)
    made.deliver('msg_1')
    await made.round()
    made.pass(-365 * DAY)
    made.deliver('msg_2')
    for (let hours = 0; hours < 92; hours += 4) {
      await made.round()
      made.pass(4 * 60 * MINUTE)
    }
    expect(stateOf(made)).toMatchObject({ pending: 2, givenUp: 0 })
    for (let hours = 0; hours < 16; hours += 4) {
      await made.round()
      made.pass(4 * 60 * MINUTE)
    }
    expect(stateOf(made)).toMatchObject({ state: 'failing', pending: 0, givenUp: 2 })
  })

  test.each([
    ['a month', 30 * DAY],
    ['some hours', 600 * MINUTE],
  ])('is tried again after the usual pauses when the clock was set back by %s', async (_, ms) => {
    const to = await target(503)
    const made = bench({ targets: [to.url], concurrency: 1 })
    made.deliver('first')
    await made.round()
    made.deliver('second')
    made.pass(-ms)
    await made.round()
    expect(to.got).toHaveLength(1)
    expect((stateOf(made)?.dueAt ?? 0) - (NOW - ms)).toBe(5_000)
    made.pass(5_000)
    await made.round()
    await made.round()
    expect(to.got).toHaveLength(2)
    expect((stateOf(made)?.dueAt ?? 0) - (NOW - ms)).toBe(35_000)
    to.manner = 204
    for (let n = 0; n < 3; n++) {
      made.pass(10 * MINUTE)
      await made.round()
    }
    expect(stateOf(made)).toMatchObject({ state: 'ok', pending: 0, givenUp: 0 })
  })

  test('receives pending events after the clock jumped forward, before any is given up', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    await made.round()
    made.pass(100 * DAY)
    await made.round()
    expect(stateOf(made)).toMatchObject({ pending: 1, givenUp: 0 })
    expect(to.got).toHaveLength(2)
    made.pass(10 * MINUTE)
    await made.round()
    expect(stateOf(made)).toMatchObject({ pending: 0, givenUp: 1 })
  })

  test('keeps its events when a later one was dated by a clock that was behind', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url] })
    made.deliver('msg_1')
    await made.round()
    made.pass(-1000 * DAY)
    made.deliver('msg_2')
    await made.round()
    made.pass(1000 * DAY + 10 * MINUTE)
    for (let n = 0; n < 4; n++) {
      await made.round()
      made.pass(10 * MINUTE)
    }
    expect(stateOf(made)).toMatchObject({ pending: 2, givenUp: 0 })
  })

  test('is logged once when it begins to fail, works again, or is disabled', async () => {
    const to = await target(503)
    const made = bench({ targets: [to.url] })
    for (const id of ['msg_1', 'msg_2']) made.deliver(id)
    for (let n = 0; n < 4; n++) {
      await made.round()
      made.pass(10 * MINUTE)
    }
    expect(made.turns).toEqual(['1 failing'])
    const again = await made.restart()
    await again.round()
    expect(again.turns).toEqual([])
    to.manner = 204
    again.pass(DAY)
    for (let n = 0; n < 3; n++) await again.round()
    expect(again.turns).toEqual(['1 ok'])
    to.manner = 410
    again.deliver('msg_3')
    await again.round()
    expect(again.turns).toEqual(['1 ok', '1 disabled'])
  })

  test('that is removed from the settings receives nothing more, and a new one receives later events', async () => {
    const [gone, stays, comes] = await Promise.all([target(503), target(), target()])
    const made = bench({ targets: [gone.url, stays.url] })
    made.deliver('msg_1')
    await made.round()
    const again = await made.restart({ targets: [stays.url, comes.url] })
    again.deliver('msg_2')
    again.pass(DAY)
    await again.round()
    expect([stays.ids(), comes.ids()]).toEqual([['msg_1', 'msg_2'], ['msg_2']])
    expect(gone.got).toHaveLength(1)
    expect(again.outbox.listTargets().map(({ state }) => state)).toEqual(['paused', 'ok', 'ok'])
  })
})

/** Returns a function that reports whether a round after some work asked the outbox for targets. */
function watchAsking(made: ReturnType<typeof bench>) {
  let asked = 0
  const { listTargets } = made.outbox
  made.outbox.listTargets = () => {
    asked++
    return listTargets()
  }
  return async (work: () => void): Promise<boolean> => {
    const before = asked
    work()
    await made.round()
    return asked > before
  }
}

test('a poll asks the outbox nothing while nobody wrote and nothing waits, until a minute is over', async () => {
  const to = await target()
  const made = bench({ targets: [to.url] })
  const asksIn = watchAsking(made)
  expect(await asksIn(() => undefined)).toBe(true) // the first one
  expect(await asksIn(() => undefined)).toBe(false)
  expect(await asksIn(() => made.deliver('msg_1'))).toBe(true)
  expect(to.ids()).toEqual(['msg_1'])
  await made.round()
  expect(await asksIn(() => undefined)).toBe(false)
  expect(await asksIn(() => made.pass(MINUTE))).toBe(true)
  expect(await asksIn(() => made.pass(-60 * MINUTE))).toBe(true) // the clock was corrected
})

test('a poll asks the outbox nothing while what waits is not due yet', async () => {
  const to = await target(500)
  const made = bench({ targets: [to.url] })
  const asksIn = watchAsking(made)
  made.deliver('msg_1')
  for (const [sent, seconds] of [5, 30].entries()) {
    await made.round()
    expect(to.got).toHaveLength(sent + 1)
    await made.round() // its result was stored
    expect(await asksIn(() => made.pass(seconds * 1000 - 1))).toBe(false)
    expect(await asksIn(() => made.pass(1))).toBe(true)
  }
  to.manner = 410
  made.pass(30 * MINUTE)
  await made.round()
  await made.round()
  expect(stateOf(made)?.state).toBe('disabled')
  expect(await asksIn(() => made.pass(MINUTE - 1))).toBe(false)
})
