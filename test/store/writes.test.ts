import { describe, expect } from 'vitest'
import { START, record, scratch, writes } from './fixtures.ts'
import { openWrites } from '../../src/store/writes.ts'
import { longTest, test } from '../support/tables.ts'

describe('a transaction', () => {
  const kinds = ['transaction', 'fill'] as const
  test.each(kinds)('(%s) is committed when its work returns so, else rolled back', async (kind) => {
    const store = writes()
    const transaction = store[kind]
    const put = (id: string, commit: boolean) =>
      transaction(() => {
        store.osv.insertRecord(record(id), 1)
        return Promise.resolve({ commit })
      })
    expect(await put('R-1', true)).toEqual({ commit: true })
    expect(await put('R-2', false)).toEqual({ commit: false })
    const failing = transaction(() => {
      store.osv.insertRecord(record('R-3'), 1)
      return Promise.reject(new Error('half-way'))
    })
    await expect(failing).rejects.toThrow('half-way')
    const throwing = transaction(() => {
      store.osv.insertRecord(record('R-4'), 1)
      throw new Error('at once')
    })
    await expect(throwing).rejects.toThrow('at once')
    expect([...store.osv.eachPair()].map(([id]) => id)).toEqual(['R-1'])
  })

  test('does not include what another source writes meanwhile', async () => {
    const store = writes()
    let finish = (): void => undefined
    const slow = store.transaction(async () => {
      store.osv.insertRecord(record('R-1'), 1)
      await new Promise<void>((resolve) => (finish = resolve))
      return { commit: false }
    })
    const run = store.exclusive(() => store.runs.startRun(START))
    await new Promise(setImmediate)
    finish()
    await slow
    expect(await run).toBe(1)
    expect(store.runs.readRun(1)?.endedAt).toBeNull()
    expect(store.osv.countRecords()).toBe(0)
  })

  test('waits for those requested before it, failed ones included', async () => {
    const store = writes()
    const order: string[] = []
    const done = [
      store.transaction(async () => {
        await new Promise(setImmediate)
        order.push('first')
        return { commit: true }
      }),
      store.exclusive(() => {
        order.push('second')
        throw new Error('second')
      }),
      store.exclusive(() => void order.push('third')),
      store.transaction(() => {
        order.push('fourth')
        return Promise.resolve({ commit: false })
      }),
    ]
    const outcomes = await Promise.allSettled(done)
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(order).toEqual(['first', 'second', 'third', 'fourth'])
  })
})

describe('the staging table', () => {
  test('gives the last version of each record once, until it is cleared', () => {
    const { staging } = writes().osv
    staging.stage(record('R-2'))
    staging.stage(record('R-1', 'old'))
    staging.stage({ ...record('R-1', 'new'), asOf: null })
    staging.stage({ ...record('R-3'), fix: true })
    const damaged = { ...record('R-4'), body: Buffer.from('damaged') }
    staging.stage(damaged)
    const seen: unknown[] = []
    staging.eachStaged((staged) => seen.push(staged))
    expect(seen).toEqual([
      { ...record('R-1', 'new'), asOf: null, fix: false },
      { ...record('R-2'), fix: false },
      { ...record('R-3'), fix: true },
      damaged,
    ])
    staging.clear()
    staging.eachStaged(() => seen.push('more'))
    expect(seen.length).toBe(4)
  })

  test('lets its records be moved into the store during iteration', () => {
    const store = writes()
    for (let i = 0; i < 100; i++) store.osv.staging.stage(record(`R-${i}`))
    store.osv.staging.eachStaged((staged) => store.osv.insertRecord(staged, 1))
    expect(store.osv.countRecords()).toBe(100)
  })

  test('belongs to its connection: no other connection sees it, and the next start finds it empty', () => {
    const dir = scratch()
    const first = openWrites(dir)
    first.osv.staging.stage(record('R-1'))
    const seen: string[] = []
    writes(dir).osv.staging.eachStaged(({ id }) => seen.push(id))
    first.close()
    writes(dir).osv.staging.eachStaged(({ id }) => seen.push(id))
    expect(seen).toEqual([])
  })
})

describe('a gathered write', () => {
  const paths = (dir: string): number => {
    const other = openWrites(dir)
    try {
      return other.catalog.listMissingPaths().length
    } finally {
      other.close()
    }
  }
  const lack = (store: ReturnType<typeof openWrites>, path: string): Promise<void> =>
    store.gathered(100, () =>
      store.catalog.replaceMissingPaths(() => false, [{ path, resource: 'tags', reason: null }]),
    )

  test('is committed before anything else is written', async () => {
    const dir = scratch()
    const store = openWrites(dir)
    await lack(store, '/v1/tags/1')
    await lack(store, '/v1/tags/2')
    expect(store.catalog.listMissingPaths()).toHaveLength(2)
    await store.exclusive(() => store.runs.startRun(START))
    expect(paths(dir)).toBe(2)
    await lack(store, '/v1/tags/3')
    await store.transaction(() => Promise.resolve({ commit: false }))
    expect(paths(dir)).toBe(3)
    store.close()
  })

  test('is committed soon without a further call', async () => {
    const dir = scratch()
    const store = openWrites(dir)
    await lack(store, '/v1/tags/1')
    await expect.poll(() => paths(dir), { interval: 20 }).toBe(1)
    store.close()
  })

  longTest('is committed at once when the limit of gathered writes is reached', async () => {
    const dir = scratch()
    const store = openWrites(dir)
    const lackOne = (path: string): Promise<void> =>
      store.gathered(2, () =>
        store.catalog.replaceMissingPaths(() => false, [{ path, resource: 'tags', reason: null }]),
      )
    await lackOne('/v1/tags/1')
    await lackOne('/v1/tags/2')
    const third = lackOne('/v1/tags/3')
    expect(paths(dir)).toBe(2)
    await third
    store.close()
    expect(paths(dir)).toBe(3)
  })

  test('is committed when the store is closed', async () => {
    const dir = scratch()
    const store = openWrites(dir)
    await lack(store, '/v1/tags/1')
    store.close()
    expect(paths(dir)).toBe(1)
  })

  test('is committed although another gathered write fails', async () => {
    const dir = scratch()
    const store = openWrites(dir)
    await lack(store, '/v1/tags/1')
    const failing = store.gathered(100, () => {
      throw new Error('refused')
    })
    await expect(failing).rejects.toThrow('refused')
    await lack(store, '/v1/tags/2')
    store.close()
    expect(paths(dir)).toBe(2)
  })
})
