import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { checkViews } from '../../../src/features/scanners/views/check.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { flipLists, renameInViews } from '../../support/damaged-views.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { record } from '../../features/scanners/views/fixtures.ts'
import { type Served, closeAll, serve } from '../served.ts'

afterEach(closeAll)

const QUERY = { package: { ecosystem: 'npm', name: 'expat' } }

/** A data folder with views, and what is asked for by its server; `told`: what the builder was told of. */
async function open(damage: (dir: string) => void = () => undefined) {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-damage-'))
  const store = openFilledStore(dir)
  store.publishOsv({ A: record('A', '2026-05-01T00:00:00Z', ['npm', 'expat']) })
  store.close()
  const make = (rebuild = false) => performTask({ dataDir: dir, kind: 'osv', vendors: [], rebuild })
  await make()
  damage(dir)
  const told: string[] = []
  const viewsMaker = {
    wanted: () => void told.push('wanted'),
    damaged: (kind: string) => void told.push(kind),
    report: () => [],
  }
  const served = await serve(() => undefined, { dir, viewsMaker })
  return { dir, make, told, served, asked: () => asked(served) }
}

/** How the query API, the lists and the records of the bucket answer. */
async function asked({ port, get }: Served): Promise<unknown[]> {
  const url = `http://127.0.0.1:${port}/osv/v1/query`
  const answer = await fetch(url, { method: 'POST', body: JSON.stringify(QUERY) })
  const { vulns = [] } = (await answer.json()) as { vulns?: { id: string }[] }
  const list = await get('/osv/npm/modified_id.csv')
  const one = await get('/osv/npm/A.json')
  return [answer.status, ...vulns.map(({ id }) => id), list.status, one.status]
}

const SOUND = [200, 'A', 200, 200]

test.each([
  ['another name in their database', (dir: string) => renameInViews(dir, 'expat', 'exqat')],
  ['another byte in their lists', flipLists],
])('views with %s are 503 from the start on, and are to be made again', async (_, damage) => {
  const { make, told, served, asked } = await open(damage)
  expect(await asked()).toEqual([503, 503, 503])
  expect(new Set(told)).toEqual(new Set(['osv']))
  expect(await make()).not.toBeNull()
  served.server.snapshotChanged()
  expect(await asked()).toEqual(SOUND)
})

longTest(
  'views that a check finds damaged while they are served are 503 within a look, and are to be made again',
  async () => {
    const { dir, make, told, served, asked } = await open()
    expect(await asked()).toEqual(SOUND)
    renameInViews(dir, 'expat', 'exqat')
    expect(checkViews(dir)).toEqual([{ kind: 'osv', fault: 'their database is damaged' }])
    served.server.snapshotChanged()
    expect(await asked()).toEqual([503, 503, 503])
    expect(new Set(told)).toEqual(new Set(['osv']))
    expect(checkViews(dir)).toHaveLength(1) // as long as they are not made again
    expect(await make()).not.toBeNull()
    served.server.snapshotChanged()
    expect(await asked()).toEqual(SOUND)
    expect(checkViews(dir)).toEqual([])
  },
)
