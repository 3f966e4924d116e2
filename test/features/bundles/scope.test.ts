import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { commandHost } from '../../support/hosted.ts'
import { bench } from '../../sync/fixtures.ts'
import { below, carry, folder, serveFolder } from './air-gap.ts'

const run = commandHost()

longTest('a mirror of a part of OSV says so at home and across the air gap', async () => {
  const env = { PATCHMIRROR_OSV_SCOPE: 'npm,GHSA-,!ROOT-OS-UBUNTU*' }
  const made = await bench({ sandbox: { records: 40, large: 0 }, env })
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  const there = below()
  await there.take((await carry(made.dir, folder())).files)
  const { scope: text } = there.store.snapshots.readSnapshot('osv') ?? {}
  expect(text).toContain('GHSA-')
  for (const { store } of [made, there]) expect(store.runs.listRuns(1)).toMatchObject([{ facts: { scope: text } }])
  const [outside = ''] = [...made.store.osv.eachOutside()].map(([id]) => id)
  const scope = 'include="GHSA-,npm", exclude="ROOT-OS-UBUNTU*", vendors="Root"'
  const shown = await run(['show', outside], { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  expect(shown.err).toContain('upstream lists this record, and it is out of the scope')
  expect(shown.code).toBe(3)
  const other = await run(['show', 'ROOT-OS-UBUNTU-2204-CVE-2020-1'], { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  expect([other.code, other.err]).toEqual([3, expect.stringContaining('ids of this form are out of')])
  // By another id, or by a package of another ecosystem, it may be outside.
  const ask = (...words: string[]) => run(words, { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  const outsideToo = expect.stringContaining('outside of osv.scope are not mirrored, and may name it') as string
  for (const words of [
    ['show', 'CVE-1999-1'],
    ['search', 'CVE-1999-1'],
    ['search', 'pkg:pypi/none'],
  ])
    expect(await ask(...words)).toMatchObject({ code: 3, err: outsideToo })
  const part = 'the mirror has only a part of the records: include GHSA-, npm; exclude ROOT-OS-UBUNTU*'
  const changes = (...more: string[]) =>
    run(['changes', '--since', '1', ...more], { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  expect((await changes()).out).toContain(part)
  expect(JSON.parse((await changes('--json')).out)).toMatchObject({
    sources: [{ name: 'osv', scope: 'include GHSA-, npm; exclude ROOT-OS-UBUNTU*' }],
  })
  const listed = await run(['status'], { PATCHMIRROR_DATA_DIR: there.dir }, '/')
  expect(listed.out).toContain('osv: only records in scope are mirrored (include GHSA-, npm; exclude')
  const known = await serveFolder(made.dir, made.config)
  const carried = await serveFolder(there.dir, there.config)
  for (const get of [known, carried]) {
    const index = await get('/external/osv/all.json')
    expect([index.status, index.headers['x-mirror-scope']]).toEqual([200, scope])
    expect(index.body.toString()).not.toContain(`"${outside}"`)
    const status = JSON.parse((await get('/-/status')).body.toString()) as { sources: object[] }
    expect(status.sources).toContainEqual(
      expect.objectContaining({
        name: 'osv',
        scope: { include: ['GHSA-', 'npm'], exclude: ['ROOT-OS-UBUNTU*'] },
      }),
    )
    for (const [id, why] of [
      [outside, get === known ? 'upstream lists this record, and it is out of' : 'it is out of'],
      ['ROOT-OS-UBUNTU-2204-CVE-2020-1', 'ids of this form are out of'],
      ['GHSA-none', 'upstream does not list it, or it is out of'],
    ] as const) {
      const reply = await get(`/external/osv/${encodeURIComponent(id)}.json`)
      expect([id, reply.status]).toEqual([id, 404])
      expect(reply.body.toString()).toContain(`${why} the scope of this mirror (osv.scope`)
    }
  }
  const plain = await made.runWith({ PATCHMIRROR_OSV_SCOPE: '' }, 'osv')
  expect(plain).toMatchObject({ state: 'complete' })
  await there.take((await carry(made.dir, folder())).files)
  expect(there.store.snapshots.readSnapshot('osv')).toMatchObject({ records: 40, scope: null })
})

test('what all records could name is not found only where all of them were searched', async () => {
  const env = { PATCHMIRROR_OSV_SCOPE: 'npm' }
  const part = await bench({ sandbox: { records: 20, large: 0 }, env })
  await part.run('osv')
  const whole = await bench({ sandbox: { records: 20, large: 0 } })
  await whole.run('osv')
  const ask = (dir: string, words: string[], more = {}) => run(words, { PATCHMIRROR_DATA_DIR: dir, ...more }, '/')
  expect(await ask(part.dir, ['search', 'pkg:npm/none'])).toMatchObject({ code: 1 })
  expect(await ask(part.dir, ['search', 'pkg:pypi/none'])).toMatchObject({ code: 3 })
  const none = expect.stringContaining('images and tags are not mirrored here') as string
  expect(await ask(whole.dir, ['search', 'none'])).toMatchObject({ code: 1, err: none })
  expect(await ask(whole.dir, ['show', 'none'])).toMatchObject({ code: 1 })
  const unsearched = expect.stringContaining('packages and other ids were not searched') as string
  const noIndex = { PATCHMIRROR_VIEWS_SERVE: 'vex' }
  expect(await ask(whole.dir, ['show', 'none'], noIndex)).toMatchObject({ code: 3, err: unsearched })
})
