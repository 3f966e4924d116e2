import { describe, expect, test } from 'vitest'
import type { RunRequest } from '../../src/sync/context.ts'
import { type RequestOutcome, createRunQueue } from '../../src/sync/run-queue.ts'
import { targetOf } from './refreshes.ts'

const REFRESH: RunRequest = { source: 'catalog', kind: 'refresh', trigger: 'webhook' }
const SYNC: RunRequest = { source: 'catalog', kind: 'sync', trigger: 'schedule' }

function queue() {
  const started: RunRequest[] = []
  const told: RequestOutcome[] = []
  const state = { alive: true }
  const requests = createRunQueue(
    (request) => void started.push(request),
    () => state.alive,
  )
  const ask = (request: RunRequest): void => requests.ask(request, (outcome) => void told.push(outcome))
  return { requests, started, told, state, ask }
}

describe('run requests of one source', () => {
  test('wait for the current run, and are merged into one run of the most thorough kind', () => {
    const { requests, started, ask } = queue()
    ask(REFRESH)
    const a = targetOf({ tag: 'a' })
    const b = targetOf({ tag: 'b' })
    ask({ ...REFRESH, targets: [a] })
    ask(SYNC)
    ask({ ...REFRESH, targets: [a, b] })
    expect(started).toEqual([REFRESH])
    requests.ended('catalog', { failure: 'over' })
    expect(started.slice(1)).toEqual([{ ...SYNC, targets: [a, b] }])
  })

  test('keep a repair that waits: no other kind fetches what is damaged again', () => {
    const { requests, started, ask } = queue()
    const damaged = { answers: ['/v1/me'], lists: [], documents: [] }
    const repairs: RunRequest[] = [
      { source: 'catalog', kind: 'repair', trigger: 'schedule', damaged },
      { source: 'osv', kind: 'repair', trigger: 'schedule', suspectIds: ['A'], full: true },
    ]
    for (const repair of repairs) {
      const { source } = repair
      for (const order of [
        [repair, 'sync'],
        ['sync', repair],
        ['reconcile', repair],
      ] as const) {
        ask({ source, kind: 'sync', trigger: 'schedule' })
        for (const one of order) ask(typeof one === 'string' ? { source, kind: one, trigger: 'schedule' } : one)
        requests.ended(source, { failure: 'over' })
        expect(started.at(-1)).toEqual(repair)
        for (let left = 0; left < 2; left++) requests.ended(source, { failure: 'over' })
      }
    }
  })

  test('keep a reconcile of the catalog that waits: it runs after the others, which request other things', () => {
    const { requests, started, ask } = queue()
    const reconcile: RunRequest = { source: 'catalog', kind: 'reconcile', trigger: 'schedule' }
    ask(SYNC)
    ask(reconcile)
    ask(REFRESH)
    ask(reconcile)
    for (let left = 0; left < 4; left++) requests.ended('catalog', { failure: 'over' })
    expect(started).toEqual([SYNC, REFRESH, reconcile])
  })

  test('give each waiting caller one outcome, that of the run which served it', () => {
    const { requests, told, ask } = queue()
    ask(REFRESH)
    ask(REFRESH)
    ask(SYNC)
    requests.ended('catalog', { failure: 'one' })
    expect(told).toEqual([{ failure: 'one' }])
    requests.ended('catalog', { failure: 'two' })
    requests.ended('catalog', { failure: 'nobody’s' })
    requests.fail('late')
    expect(told).toEqual(['one', 'two', 'two'].map((failure) => ({ failure })))
  })

  test('all fail when the thread exits, and the next thread executes only runs that had not started', () => {
    const { requests, started, told, state, ask } = queue()
    ask(SYNC)
    ask(REFRESH)
    state.alive = false
    requests.fail('it died')
    expect(told).toEqual([{ failure: 'it died' }, { failure: 'it died' }])
    requests.ask({ ...SYNC, source: 'osv' })
    expect(started).toEqual([SYNC])
    state.alive = true
    requests.startWaiting()
    expect(started.slice(1)).toEqual([REFRESH, { ...SYNC, source: 'osv' }])
    requests.ended('catalog', { failure: 'done' })
    expect(told).toHaveLength(2)
  })
})
