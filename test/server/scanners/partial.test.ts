import { expect, test } from 'vitest'
import { openShortReads } from '../../../src/store/reads.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { servedToAll } from '../served.ts'
import { heldRecord } from './served-osv.ts'

const RECORD = heldRecord('A-1', 'npm', 'a', '2.0.0')
const openWith = (whole: 0 | 1) =>
  servedToAll((store) => {
    store.publishOsv({ [RECORD.id]: RECORD.text })
    store.damage(`UPDATE snapshot SET whole = ${whole} WHERE source = 'osv'`)
  })

test.each([
  ['whole', openWith(1), null],
  ['partial', openWith(0), 'records'],
] as const)('many records at once say of a %s snapshot whether listed ones are missing', async (_, open, value) => {
  const served = await open()
  const reads = openShortReads(served.dir)
  if (reads === null) throw new Error('no database')
  await makeOsvViews({ dataDir: served.dir, reads: reads.reads, vendors: [], pause: () => Promise.resolve() })
  reads.close()
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${served.port}${path}`, post)
    await answer.arrayBuffer()
    return [path, answer.status, answer.headers.get('x-mirror-incomplete')]
  }
  const named = { package: { ecosystem: 'npm', name: 'b' } }
  expect(await ask('/osv/v1/query', named)).toEqual(['/osv/v1/query', 200, value])
  expect(await ask('/osv/v1/querybatch', { queries: [named] })).toEqual(['/osv/v1/querybatch', 200, value])
  for (const path of ['/external/osv/all.json', '/osv/npm/all.zip']) expect(await ask(path)).toEqual([path, 200, value])
  const one = '/external/osv/A-1.json'
  expect(await ask(one)).toEqual([one, 200, null])
})
