import { describe, expect, test } from 'vitest'
import { createStop, whenAborted } from '../../../src/upstream/http/stop-signal.ts'

describe('a stop signal', () => {
  test('calls its listeners once, with the first reason, and not those that were removed', () => {
    const { signal, stop } = createStop()
    const calls: string[] = []
    const removed = (): void => void calls.push('removed')
    signal.addEventListener('abort', () => void calls.push(`first: ${String(signal.reason)}`))
    signal.addEventListener('abort', removed)
    signal.addEventListener('abort', () => void calls.push('last'))
    signal.removeEventListener('abort', removed)
    expect(signal.aborted).toBe(false)
    stop('late')
    stop('again')
    expect(signal).toMatchObject({ aborted: true, reason: 'late' })
    expect(calls).toEqual(['first: late', 'last'])
  })
})

describe('what is called when the signal of a run aborts', () => {
  test('is called once, unless it was taken back', () => {
    const run = new AbortController()
    const calls: number[] = []
    const taken = [1, 2, 3].map((one) => whenAborted(run.signal, () => void calls.push(one)))
    taken[1]?.()
    expect(calls).toEqual([])
    run.abort()
    expect(calls).toEqual([1, 3])
  })

  test('needs one listener of a signal for any number of requests', () => {
    const run = new AbortController()
    let listeners = 0
    const add = run.signal.addEventListener.bind(run.signal)
    run.signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners++
      add(...given)
    }
    for (let i = 0; i < 100; i++) whenAborted(run.signal, () => undefined)()
    expect(listeners).toBe(1)
  })
})
