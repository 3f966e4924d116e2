import { describe, expect, test } from 'vitest'
import { contentOf } from '../../../src/store/database/gzip.ts'
import { NOW, quarantine, sha256, writes } from '../fixtures.ts'

const PATH = '/external/osv/all.json'

describe('a quarantine', () => {
  test('keeps the refused document byte for byte until a decision', () => {
    const store = writes()
    store.quarantine.keepQuarantine(quarantine(1, '["kept"]'))
    const kept = store.quarantine.readQuarantine(1)
    expect(kept).toEqual({ ...quarantine(1, '["kept"]'), decision: null })
    expect(contentOf(kept?.body ?? Buffer.alloc(0), 8).toString()).toBe('["kept"]')
    expect(store.quarantine.listOpenQuarantines()).toEqual([
      { runId: 1, source: 'osv', path: PATH, reason: 'too many removals' },
    ])
    expect(store.quarantine.readQuarantine(2)).toBeNull()
  })

  test('is decided once, but a rejection can be undone', () => {
    const store = writes()
    store.quarantine.keepQuarantine(quarantine(1))
    expect(store.quarantine.decideQuarantine(1, 'rejected', NOW)).toBe(true)
    expect(store.quarantine.readQuarantine(1)?.decision).toBe('rejected')
    expect(store.quarantine.decideQuarantine(1, 'approved', NOW)).toBe(true)
    expect(store.quarantine.decideQuarantine(1, 'rejected', NOW)).toBe(false)
    expect(store.quarantine.decideQuarantine(9, 'approved', NOW)).toBe(false)
    expect(store.quarantine.readQuarantine(1)?.decision).toBe('approved')
    expect(store.quarantine.listOpenQuarantines()).toEqual([])
  })

  test('is superseded by a valid version of its document, and may still be approved', () => {
    const store = writes()
    for (const [run, path] of [
      [1, PATH],
      [2, '/other'],
      [3, PATH],
    ] as const) {
      store.quarantine.keepQuarantine({ ...quarantine(run, String(run)), path })
    }
    store.quarantine.decideQuarantine(3, 'rejected', NOW)
    store.quarantine.supersedeQuarantines(PATH, NOW)
    const decisions = [1, 2, 3].map((run) => store.quarantine.readQuarantine(run)?.decision)
    expect(decisions).toEqual(['superseded', null, 'rejected'])
    expect(store.quarantine.decideQuarantine(1, 'approved', NOW)).toBe(true)
  })

  test('of the same content is found while it is open or rejected, so that it is kept once', () => {
    const store = writes()
    const { sha256: digest } = quarantine(1, 'x')
    store.quarantine.keepQuarantine(quarantine(1, 'x'))
    expect(store.quarantine.findQuarantine(PATH, digest)?.runId).toBe(1)
    expect(store.quarantine.findQuarantine('/other', digest)).toBeNull()
    expect(store.quarantine.findQuarantine(PATH, sha256('y'))).toBeNull()
    store.quarantine.decideQuarantine(1, 'rejected', NOW)
    expect(store.quarantine.findQuarantine(PATH, digest)?.decision).toBe('rejected')
    store.quarantine.keepQuarantine(quarantine(2, 'z'))
    store.quarantine.decideQuarantine(2, 'approved', NOW)
    expect(store.quarantine.findQuarantine(PATH, sha256('z'))).toBeNull()
  })

  test('is removed some time after its decision, unless it is open or rejected', () => {
    const store = writes()
    for (const run of [1, 2, 3, 4]) store.quarantine.keepQuarantine(quarantine(run, String(run)))
    store.quarantine.decideQuarantine(1, 'approved', NOW)
    store.quarantine.decideQuarantine(2, 'rejected', NOW)
    store.quarantine.decideQuarantine(3, 'approved', NOW + 10)
    store.quarantine.forgetQuarantines(NOW + 10)
    expect([1, 2, 3, 4].map((run) => store.quarantine.readQuarantine(run) !== null)).toEqual([false, true, true, true])
  })
})
