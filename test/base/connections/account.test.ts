import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Share, type Shortage, createAccount } from '../../../src/base/connections/account.ts'

const MIB = 2 ** 20

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A client of the account, of which the test decides how much moves. */
interface Client {
  readonly share: Share
  moved: number
  ended: boolean
}

function accountOf(bytes: number) {
  const short: Shortage[] = []
  const account = createAccount({ bytes, onShort: (why) => short.push(why) })
  const client = (address: string, hasKey = false): Client => {
    const share = account.hold({ address: () => address, hasKey: () => hasKey })
    const made: Client = { share, moved: 0, ended: false }
    share.waits(
      () => made.moved,
      () => (made.ended = true),
    )
    return made
  }
  return { account, short, client }
}

/** Lets seconds pass in which these clients move a megabyte each. */
function pass(seconds: number, ...moving: readonly Client[]): void {
  for (let second = 0; second < seconds; second++) {
    for (const one of moving) one.moved += MIB
    vi.advanceTimersByTime(1000)
  }
}

describe('when the bytes for clients are used up,', () => {
  test('the client that sends too slowly makes room, not one that keeps sending', () => {
    const { client, short } = accountOf(16 * MIB)
    const slow = client('a')
    const fast = client('b')
    const next = client('c')
    expect([slow.share.take(7 * MIB), fast.share.take(7 * MIB)]).toEqual([true, true])
    pass(3, fast)
    expect(next.share.take(6 * MIB)).toBe(true)
    expect([slow.ended, fast.ended, short]).toEqual([true, false, ['slow']])
  })

  test('a client is refused when it would take from one that keeps no more than it', () => {
    const { client, short } = accountOf(16 * MIB)
    const first = client('a')
    const second = client('b')
    first.share.take(8 * MIB)
    pass(3, first)
    expect([second.share.take(8 * MIB), first.ended, short]).toEqual([false, false, ['refused']])
  })

  test('an address that keeps more than another makes room for it, however fast it is', () => {
    const { client } = accountOf(16 * MIB)
    const first = client('a')
    const second = client('a')
    const other = client('b')
    first.share.take(6 * MIB)
    second.share.take(8 * MIB)
    pass(3, first, second)
    expect(other.share.take(4 * MIB)).toBe(true)
    expect([first.ended, second.ended].filter(Boolean)).toHaveLength(1)
  })

  test('a client with a key takes the room of one without, and never the other way round', () => {
    const { client } = accountOf(16 * MIB)
    const stranger = client('a')
    const keyed = client('b', true)
    const again = client('c')
    stranger.share.take(10 * MIB)
    pass(3, stranger)
    expect([keyed.share.take(12 * MIB), stranger.ended]).toEqual([true, true])
    pass(3, keyed)
    expect([again.share.take(6 * MIB), keyed.ended]).toEqual([false, false])
  })

  test('small requests still get room, and what is worked on stays', () => {
    const { client } = accountOf(16 * MIB)
    const large = client('a')
    const small = client('b')
    const more = client('c')
    large.share.take(14 * MIB)
    large.share.works()
    pass(20)
    expect([small.share.take(64 * 1024), more.share.take(MIB), large.ended]).toEqual([...[true, false, false]])
  })

  test('a client of which nothing moves for ten seconds is ended, without pressure it is not', () => {
    const { client, short } = accountOf(16 * MIB)
    const idle = client('a')
    const moving = client('b')
    idle.share.take(6 * MIB)
    pass(20)
    expect(idle.ended).toBe(false)
    moving.share.take(4 * MIB)
    pass(12, moving)
    expect([idle.ended, moving.ended, short]).toEqual([true, false, ['stopped']])
  })
})

/** What the system takes of an answer at once, and the steps in which it takes more for one megabit a second (measured, Linux). */
const STEPS = { burst: 3.8 * MIB, bytes: 1.4 * MIB, firstAfter: 9, every: 12 }

/** Lets a client read one megabit a second, as it is seen on this side. */
function readSteadily(client: Client, second: number): void {
  const isStep = second >= STEPS.firstAfter && (second - STEPS.firstAfter) % STEPS.every === 0
  if (isStep) client.moved += STEPS.bytes
}

function reading(client: Client): Client {
  const { share } = client
  share.sends(
    () => client.moved,
    () => (client.ended = true),
  )
  client.moved += STEPS.burst
  return client
}

test('a client that reads one megabit a second is never ended under pressure; one that reads nothing is, after ten seconds', () => {
  const { client, short } = accountOf(16 * MIB)
  const steady = client('a')
  const silent = client('a')
  const crowd = client('b')
  for (const one of [reading(steady), reading(silent)]) one.share.take(6 * MIB)
  const endedAt: number[] = []
  for (let second = 1; second <= 300; second++) {
    readSteadily(steady, second)
    pass(1, crowd)
    if (crowd.share.take(9 * MIB)) crowd.share.give(9 * MIB)
    if (silent.ended) endedAt.push(second)
  }
  // What the system took at once was seen in the first second.
  expect([endedAt[0], steady.ended]).toEqual([11, false])
  expect(new Set(short)).toEqual(new Set(['refused', 'stopped']))
})

test('a client that stops to read is ended, though it had read before', () => {
  const { client, short } = accountOf(16 * MIB)
  const stops = reading(client('a'))
  stops.share.take(9 * MIB)
  for (let second = 1; second <= 60; second++) {
    readSteadily(stops, second)
    pass(1)
  }
  expect(stops.ended).toBe(false)
  pass(31)
  expect([stops.ended, short]).toEqual([true, ['stopped']])
})

test('a body that comes with one megabit a second, a second at a time, is not taken for slow', () => {
  const { client } = accountOf(16 * MIB)
  const steady = client('a')
  const other = client('b')
  steady.share.take(7 * MIB)
  for (let tenth = 1; tenth <= 600; tenth++) {
    if (tenth % 10 === 3) steady.moved += 125_000
    vi.advanceTimersByTime(100)
    if (other.share.take(9 * MIB)) other.share.give(9 * MIB)
  }
  expect(steady.ended).toBe(false)
})

test('one document that is larger than all bytes together is sent where no other large one waits', () => {
  const { client, account } = accountOf(16 * MIB)
  const large = client('a')
  const second = client('b')
  large.share.sends(
    () => large.moved,
    () => (large.ended = true),
  )
  expect(large.share.take(100 * MIB)).toBe(true)
  pass(1, large)
  expect(second.share.take(2 * MIB)).toBe(false)
  expect(client('c').share.take(1024)).toBe(true)
  large.share.release()
  expect([second.share.take(2 * MIB), account.bytes()]).toEqual([true, 2 * MIB + 1024])
})

test('what waits for its turn makes room only for an address that holds less', () => {
  const { client } = accountOf(16 * MIB)
  const queued = client('a')
  const same = client('a')
  const other = client('b')
  queued.share.take(14 * MIB)
  const state = { isEnded: false }
  queued.share.queues(() => (state.isEnded = true))
  pass(60)
  expect([same.share.take(2 * MIB), state.isEnded]).toEqual([false, false])
  expect([other.share.take(2 * MIB), state.isEnded]).toEqual([true, true])
})

test('what was released or ended takes nothing more, and what it share is given back once', () => {
  const { client, account } = accountOf(16 * MIB)
  const one = client('a')
  one.share.take(4 * MIB)
  one.share.give(MIB)
  expect(account.bytes()).toBe(3 * MIB)
  one.share.release()
  one.share.give(MIB)
  expect([one.share.take(1), account.bytes()]).toEqual([false, 0])
})
