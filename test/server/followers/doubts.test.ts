import { afterAll, beforeAll, describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { atomEntries } from '../../support/atom.ts'
import { commandHost } from '../../support/hosted.ts'
import { type Served, FILLED_AT, closeAll, jsonOf, serve } from '../served.ts'

const about = (fixed: string): string =>
  JSON.stringify({
    affected: [
      {
        package: { ecosystem: 'npm', name: 'lodash' },
        ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed }] }],
      },
    ],
  })

const RUN = 7
const DOUBT = 'doubtful: it has fewer affected versions than before (affectedLost, run 7)'
const run = commandHost()
let served: Served
let doubted = ''

/** Three snapshots; of the second, the guard doubted what it says of one record. */
beforeAll(async () => {
  served = await serve((store) => store.publishOsv({ a: about('2.0.0'), b: about('2.0.0') }), {
    people: (config) => createWeb({ config, version: '9.9.9' }),
  })
  served.store.publishOsv({ a: about('1.0.0'), b: about('2.0.1') }, FILLED_AT + 1000)
  const store = openWrites(served.dir)
  try {
    doubted = store.snapshots.readSnapshot('osv')?.id ?? ''
    await store.exclusive(() => {
      const before = store.changes.lastLogged() - 1
      store.changes.noteDoubts('osv', before, { run: RUN, doubted: { affectedLost: ['a'] } })
    })
  } finally {
    store.close()
  }
  served.store.publishOsv({ a: about('1.0.0'), b: about('2.0.2') }, FILLED_AT + 2000)
  served.server.snapshotChanged()
})
afterAll(closeAll)

async function changesOf(query: string): Promise<Record<string, unknown>[]> {
  const reply = await served.get(`/-/changes?${query}`)
  expect([query, reply.status]).toEqual([query, 200])
  return jsonOf(reply)['changes'] as Record<string, unknown>[]
}

async function page(path: string, accept = 'text/html'): Promise<string> {
  const { status, body } = await served.get(`/-/ui/${path}`, { accept })
  expect(status).toBe(200)
  return body.toString()
}

describe('a change that was published although the guard doubted it', () => {
  test.each(['since=1', 'since=1&detail=differences', 'since=1&purl=pkg:npm/lodash'])(
    'has its doubts in the answer to %s, and no other has any',
    async (query) => {
      const [a, b] = await changesOf(query)
      const doubt = { kind: 'affectedLost', snapshot: doubted, run: RUN }
      expect(a).toMatchObject({ id: 'a', snapshot: doubted, doubts: [doubt] })
      expect(b).toMatchObject({ id: 'b' })
      expect(b).not.toHaveProperty('doubts')
    },
  )

  test('is not doubted in what changed after it', async () => {
    expect(await changesOf('since=2')).toEqual([expect.not.objectContaining({ doubts: expect.anything() as unknown })])
  })

  longTest('is doubted beside its name on the pages, and on the list of snapshots', async () => {
    for (const path of ['changes?source=osv&since=1', 'changes?entry=2']) {
      const html = await page(path)
      expect([path, html.split(DOUBT).length - 1]).toEqual([path, 1])
      expect(html).toContain('fix lowered from 2.0.0 to 1.0.0')
    }
    const all = 'doubtful: 1 record has fewer affected versions than before (affectedLost, run 7)'
    expect(await page('changes')).toContain(all)
    expect(await page('changes?entry=2')).toContain(all)
    expect(await page('changes?entry=3')).not.toContain('doubtful')
  })

  longTest('is doubted in the feeds, with and without a filter', async () => {
    const items = atomEntries(await page('changes.atom', 'application/atom+xml'))
    expect(items.map(({ title }) => title)).toEqual([
      'osv: 1 changed',
      'osv: 2 changed, doubtful',
      'osv: first snapshot of this source',
    ])
    expect(items[1]?.content).toContain(`\nchanged a: ${DOUBT}\nchanged b`)
    const atom = await page('changes.atom?purl=pkg:npm/lodash', 'application/atom+xml')
    expect(atom).toContain('<title>pkg:npm/lodash: 4 differences, doubtful</title>')
    expect(atom.split(`a: ${DOUBT}`)).toHaveLength(2)
  })

  longTest('is doubted by the command', async () => {
    const env = { PATCHMIRROR_DATA_DIR: served.dir }
    const { out: text, err } = await run(['changes', '--since', '1'], env, '/')
    expect(err).toBe('')
    expect(text).toContain(`a\n  ${DOUBT}\n  npm lodash: fix lowered from 2.0.0 to 1.0.0`)
    expect(text.split('doubtful')).toHaveLength(2)
  })
})
