import { expect } from 'vitest'
import { bench, target } from './targets.ts'
import { DAY } from '../../sync/fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

/** A relay with a target that refuses each event: what is sent to it waits. */
async function waiting(name = 'ci=') {
  const old = await target(401)
  const made = bench({ targets: [`${name}${old.url}`] })
  for (const id of ['msg_1', 'msg_2']) made.deliver(id)
  await made.round()
  return { old, made }
}

test('a target whose URL is corrected receives what waits for its name at once', async () => {
  const { old, made } = await waiting()
  const tried = old.got.length
  const to = await target()
  const again = await made.restart({ targets: [`ci=${to.url}`] })
  await again.round()
  expect(to.ids()).toEqual(['msg_1', 'msg_2'])
  expect(old.got).toHaveLength(tried)
  expect(again.outbox.listTargets()).toMatchObject([{ id: 1, name: 'ci', state: 'ok', pending: 0, givenUp: 0 }])
  expect(again.turns).toEqual([])
})

longTest(
  'targets that change their URLs with each other, or take that of another one, receive what waits for them',
  async () => {
    const [a, b] = await Promise.all([target(401), target(401)])
    const made = bench({ targets: [`a=${a.url}`, `b=${b.url}`] })
    made.deliver('msg_1')
    await made.round()
    const changed = await made.restart({ targets: [`a=${b.url}`, `b=${a.url}`] })
    const urls = changed.outbox.listTargets().map(({ name, url }) => [name, url])
    expect(urls).toEqual([
      ['a', b.url],
      ['b', a.url],
    ])
    const one = await changed.restart({ targets: [`b=${b.url}`] }) // that of a, which is no target any more
    a.manner = b.manner = 204
    const tried = b.got.length
    await one.round()
    expect(b.ids().slice(tried)).toEqual(['msg_1'])
    expect(one.outbox.listTargets()).toMatchObject([{ name: 'b', url: b.url, pending: 0 }])
  },
)

test.each(['', 'ci='])('a start without targets keeps what waits for "%s", until it is back', async (name) => {
  const { old, made } = await waiting(name)
  const tried = old.got.length
  const without = await made.restart({ targets: [] })
  without.deliver('msg_3') // there is no target when it comes
  without.pass(DAY)
  await without.round()
  expect(without.turns).toEqual(['1 paused: 2 wait, 0 given up'])
  expect(without.outbox.listTargets()).toMatchObject([{ id: 1, state: 'paused', pending: 2, givenUp: 0 }])
  expect(old.got).toHaveLength(tried)
  old.manner = 204
  const again = await without.restart({ targets: [`${name}${old.url}`] })
  await again.round()
  expect(old.ids().slice(tried)).toEqual(['msg_1', 'msg_2'])
  expect(again.outbox.listTargets()).toMatchObject([{ id: 1, state: 'ok', pending: 0 }])
})

test('what waits for a target that does not come back is given up, counted, and told when the target is forgotten', async () => {
  const { made } = await waiting()
  const without = await made.restart({ targets: [] })
  const prune = async (): Promise<void> => {
    await without.round() // after a jump of the clock nothing is given up for some minutes
    without.pass(DAY / 24)
    await without.round()
  }
  without.pass(4 * DAY)
  await prune()
  expect(without.outbox.listTargets()).toMatchObject([{ id: 1, state: 'paused', pending: 0, givenUp: 2 }])
  without.pass(4 * DAY)
  await prune()
  expect(without.outbox.listTargets()).toEqual([])
  expect(without.turns).toEqual(['1 paused: 2 wait, 0 given up', '1 forgotten: 0 wait, 2 given up'])
})
