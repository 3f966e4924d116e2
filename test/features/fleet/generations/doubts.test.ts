import { expect, test } from 'vitest'
import { openReader } from '../../../../src/store/database/open.ts'
import { createReads } from '../../../../src/store/reads.ts'
import { findDoubtful, whyWithheld } from '../../../../src/store/runs/rejected.ts'
import { createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { INDEX } from '../../../sync/fixtures.ts'
import { attack } from '../../../sync/osv/attacks.ts'
import { createNode, leader, publish } from './nodes.ts'

test('what the mirror that leads published although its guard doubted it is known to its readers', async () => {
  const bench = await leader()
  const store = createMemoryBucket().client()
  await publish(store, bench.dir)
  const reader = createNode(store)
  await reader.catchUp()
  attack(bench, (doc) => (doc.modified = '2999-01-01T00:00:00Z'), 1, '2999-01-01T00:00:00Z')
  expect((await bench.run('osv')).facts['doubts']).toBe(1)
  await publish(store, bench.dir)
  await reader.catchUp()
  const db = openReader(reader.dir)
  if (db === null) throw new Error('there is no database')
  const reads = createReads(db)
  const run = findDoubtful(reads, 'osv', Date.now())
  expect(run?.message).toContain(
    'doubtful at the mirror that made the bundle: 1 record has a date of modification far in the future (futureModified)',
  )
  const row = reads.changes.readLatestLogged('osv')
  expect(reads.changes.readDoubts(row?.id ?? 0)?.counts).toEqual({ futureModified: 1 })
  db.close()
})

test('what the mirror that leads withholds is known to its readers at once, and so is that it ended', async () => {
  const bench = await leader()
  const store = createMemoryBucket().client()
  await publish(store, bench.dir)
  const reader = createNode(store)
  await reader.catchUp()
  const published = async () => {
    const { outcome } = await publish(store, bench.dir)
    await reader.catchUp()
    const db = openReader(reader.dir)
    if (db === null) throw new Error('there is no database')
    const why = whyWithheld(createReads(db), 'osv')
    db.close()
    return [outcome, why]
  }
  bench.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0 })
  expect(await bench.run('osv')).toMatchObject({ state: 'quarantined' })
  const why = 'a newer state is quarantined or rejected at the mirror that made the bundle'
  expect(await published()).toEqual(['published', why])
  expect(await bench.run('osv')).toMatchObject({ state: 'quarantined' })
  expect(await published()).toEqual(['unchanged', why])
  bench.sandbox.faults.clear()
  expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
  expect(await published()).toEqual(['published', null])
  expect(await published()).toEqual(['unchanged', null])
})
