import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { createBench } from '../../support/mirror.ts'
import { commandHost } from '../../support/hosted.ts'
import { type Served, closeAll, jsonOf, serve } from '../served.ts'

const run = commandHost()
const RECORDS = '/external/osv/ROOT-*.json'
let served: Served
let dir = ''
let failed = ''
let absent = ''

/** A mirror of a feed whose newest two records could not be stored. */
beforeAll(async () => {
  const bench = await createBench({ sandbox: { records: 20, large: 0 } })
  dir = bench.dir
  await bench.run('osv')
  ;[failed = '', absent = ''] = bench.sandbox.feed.add(2)
  bench.sandbox.faults.set(`/external/osv/${absent}.json`, { kind: 'status', status: 404 })
  bench.sandbox.faults.set(RECORDS, { kind: 'status', status: 500 })
  expect(await bench.run('osv')).toMatchObject({ state: 'partial' })
  served = await serve(() => undefined, {
    dir,
    keep: true,
    people: (config) => createWeb({ config, version: '9.9.9' }),
  })
  return () => bench.close()
})
afterAll(closeAll)

const ask = (...args: string[]) => run(args, { PATCHMIRROR_DATA_DIR: dir }, dir)
const STORED = 'upstream lists this record, and the mirror could not store it: '

longTest('a record that upstream lists is not denied where it could not be stored', async () => {
  for (const path of [`/external/osv/${failed}.json`, `/-/records/${failed}`]) {
    const reply = await served.get(path)
    expect([path, reply.status]).toEqual([path, 503])
    expect(jsonOf(reply)).toMatchObject({ error: 'not_ready', message: expect.stringContaining(STORED) as string })
  }
  const gone = await served.get(`/-/records/${absent}`)
  expect([gone.status, jsonOf(gone)['message']]).toEqual([
    404,
    expect.stringContaining(`${STORED}upstream lists it but answers 404`),
  ])
  for (const verb of ['show', 'search']) {
    const { code, err } = await ask(verb, failed)
    expect([verb, code, err]).toEqual([verb, 3, expect.stringMatching(`${STORED}.*upstream answered 500`)])
  }
  for (const path of [`search?q=${failed}`, `record?id=${failed}`]) {
    const page = await served.get(`/-/ui/${path}`, { accept: 'text/html' })
    expect([path, page.body.toString()]).toEqual([path, expect.stringContaining(STORED.slice(1))])
  }
})

longTest('a record that upstream does not list is denied also while others are missing', async () => {
  expect((await served.get('/-/records/ROOT-NONE')).status).toBe(404)
  const { code, err } = await ask('show', 'ROOT-NONE')
  expect([code, err]).toEqual([1, expect.stringContaining('no record of this mirror is named ROOT-NONE')])
})

test('where the missing records are not stored, as after an import, no record is denied for certain', async () => {
  const db = new Database(databasePath(dir))
  db.exec("UPDATE upstream_state SET body = NULL WHERE path = '/external/osv/all.json'")
  db.close()
  served.server.snapshotChanged()
  for (const verb of ['show', 'search']) {
    const { code, err } = await ask(verb, 'ROOT-NONE')
    expect([verb, code, err]).toEqual([verb, 3, expect.stringContaining('upstream may have it')])
  }
  const beginning = await ask('search', 'ROOT-')
  expect([beginning.code, beginning.out.includes('upstream may have it')]).toEqual([0, false])
  const reply = await served.get('/-/records/ROOT-NONE')
  expect([reply.status, jsonOf(reply)['message']]).toEqual([404, expect.stringContaining('upstream may have it')])
})
