import { describe, expect } from 'vitest'
import type { Bench } from '../../support/mirror.ts'
import { createOsvScope } from '../../../src/base/domain/osv-scope.ts'
import { ARCHIVE, INDEX, RECORDS, bench, expectAgreement, expectSound } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const SMALL = { records: 60, large: 0 }

/** Ids of the sandbox's feed whose record names an ecosystem that begins with one of these. */
function idsOf({ sandbox }: Bench, ...ecosystems: string[]): string[] {
  return sandbox.feed.ids().filter((id) => {
    const { affected = [] } = JSON.parse(sandbox.feed.record(id).toString()) as {
      affected?: { package?: { ecosystem?: string } }[]
    }
    return affected.some((one) => ecosystems.some((name) => `${one.package?.ecosystem ?? ''}:`.startsWith(`${name}:`)))
  })
}

function served(made: Bench): string[] {
  const entries = JSON.parse(made.index()?.toString() ?? '[]') as { id: string }[]
  return entries.map(({ id }) => id).sort()
}

const ONLY_NPM = { PATCHMIRROR_OSV_SCOPE: 'npm' }
const LISTED_ONLY_NPM = { include: ['npm'], exclude: [], vendors: ['Root'] }

describe('a scope of OSV', () => {
  test('stores only records of its ecosystems, by the archive, and requests no others again', async () => {
    const made = await bench({
      sandbox: SMALL,
      env: { ...ONLY_NPM, LIMIT_OSV_ARCHIVE_THRESHOLD: '20' },
    })
    const npm = idsOf(made, 'Root:npm').sort()
    expect(npm.length).toBeGreaterThan(0)
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      message: expect.stringContaining(`${60 - npm.length} listed records are out of scope`) as string,
      facts: { listed: 60, outOfScope: 60 - npm.length, records: npm.length },
    })
    expect(made.sandbox.requests.count(ARCHIVE)).toBe(1)
    expect(served(made)).toEqual(npm)
    expect(made.store.snapshots.readSnapshot('osv')).toMatchObject({
      whole: true,
      scope: JSON.stringify(LISTED_ONLY_NPM),
    })
    expectAgreement(made)
    await expectSound(made.dir)

    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
    const [other = ''] = made.sandbox.feed.ids().filter((id) => !npm.includes(id))
    const changed = made.sandbox.feed.record(other)
    made.sandbox.feed.put(other, changed, '2026-08-01T00:00:00Z')
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(1)
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(1)
    expect(served(made)).toEqual(npm)
  })

  test('of the beginnings of ids is judged by the index alone', async () => {
    const made = await bench({ sandbox: SMALL, env: { PATCHMIRROR_OSV_SCOPE: 'root-app-' } })
    const wanted = made.sandbox.feed.ids().filter((id) => /^root-app-/i.test(id))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(served(made)).toEqual(wanted.sort())
    expect(made.sandbox.requests.count(ARCHIVE)).toBe(0)
    expect(made.sandbox.requests.count(RECORDS)).toBe(wanted.length)
    expect([...made.store.osv.eachOutside()]).toEqual([])
  })

  test('that names nothing stored leaves an empty mirror that is complete', async () => {
    const made = await bench({ sandbox: SMALL, env: { PATCHMIRROR_OSV_SCOPE: 'Hex' } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { outOfScope: 60 } })
    made.sandbox.feed.add(1)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { outOfScope: 61 } })
    expect(served(made)).toEqual([])
  })
})

describe('a changed scope', () => {
  test('that leaves nothing of what is stored is quarantined, as by a mistake, and approved as it is', async () => {
    const made = await bench({ sandbox: SMALL })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    const mistaken = { PATCHMIRROR_OSV_SCOPE: 'Hex' }
    const refused = await made.runWith(mistaken, 'osv')
    expect(refused).toMatchObject({ state: 'quarantined' })
    expect(refused.message).toMatch(/^the scope \(osv\.scope\) would remove all 60 records, and nothing else/)
    expect(served(made)).toHaveLength(60)
    expect(await made.runWith(ONLY_NPM, 'osv')).toMatchObject({ state: 'complete' })
    expect(served(made)).toEqual(idsOf(made, 'Root:npm').sort())
    await expectSound(made.dir)
  })

  test('takes effect on a 304, removes without tombstones or quarantine, and can be reverted', async () => {
    const made = await bench({ sandbox: SMALL })
    await made.run('osv')
    const npm = idsOf(made, 'Root:npm').sort()
    expect(await made.runWith(ONLY_NPM, 'osv')).toMatchObject({
      state: 'complete',
      facts: { removed: 0, removedByScope: 60 - npm.length },
    })
    expect(served(made)).toEqual(npm)
    expectAgreement(made)
    const [left = ''] = made.sandbox.feed.ids().filter((id) => !npm.includes(id))
    expect(made.store.osv.readTombstone(left)).toBeNull()
    expect(made.store.osv.isOutside(left)).toBe(true)
    expect(made.sandbox.requests.entries.at(-1)).toMatchObject({ path: INDEX, status: 304 })

    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.index()).toEqual(made.sandbox.feed.index())
    expect([...made.store.osv.eachOutside()]).toEqual([])
    expect(made.store.snapshots.readSnapshot('osv')?.scope).toBeNull()
    await expectSound(made.dir)
  })

  test('does not hide a mass removal by upstream in the same run', async () => {
    const made = await bench({ sandbox: SMALL })
    await made.run('osv')
    made.sandbox.feed.remove(40)
    const env = { PATCHMIRROR_OSV_SCOPE: '!npm' }
    expect(await made.runWith(env, 'osv')).toMatchObject({ state: 'quarantined' })
    expect(made.store.osv.countRecords()).toBe(60)
  })

  longTest('removes a record whose new version is out of scope', async () => {
    const made = await bench({ sandbox: SMALL, env: { PATCHMIRROR_OSV_SCOPE: '!PyPI' } })
    await made.run('osv')
    const [id = ''] = idsOf(made, 'Root:npm')
    const text = made.sandbox.feed.record(id).toString().replaceAll('Root:npm', 'Root:PyPI')
    made.sandbox.feed.put(id, Buffer.from(text), '2026-08-01T00:00:00Z')
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { removedByScope: 1 } })
    expect(served(made)).not.toContain(id)
    expect(made.store.osv.readTombstone(id)).toBeNull()
    expectAgreement(made)
  })
})

test.each([
  [['npm'], [], 'X-1', ['Root:npm'], true],
  [['NPM'], [], 'X-1', ['npm'], true],
  [['npm'], [], 'X-1', ['Other:npm'], false],
  [['npm'], [], 'X-1', ['npmjs'], false],
  [['Ubuntu'], [], 'X-1', ['Ubuntu:22.04:LTS'], true],
  [['Ubuntu:22.04'], [], 'X-1', ['Root:Ubuntu:22.04'], true],
  [['Ubuntu:22.04'], [], 'X-1', ['Ubuntu'], false],
  [['GHSA-'], [], 'ghsa-1', [], true],
  [['GHSA-'], [], 'CVE-1', ['npm'], false],
  [['GHSA-', 'npm'], [], 'CVE-1', ['npm'], true],
  [[], ['npm'], 'CVE-1', ['npm', 'PyPI'], true],
  [[], ['npm', 'pypi'], 'CVE-1', ['npm', 'PyPI'], false],
  [[], ['npm'], 'CVE-1', [], true],
  [['npm'], [], 'CVE-1', [], false],
  [['npm'], ['CVE-*'], 'CVE-1', ['npm'], false],
  [['CVE-'], ['npm'], 'CVE-1', ['npm'], false],
])('include %j, exclude %j: %s of %j is in scope: %s', (include, exclude, id, ecosystems, isIn) => {
  const scope = createOsvScope({ include, exclude, vendors: ['Root'] })
  const affected = ecosystems.map((ecosystem) => ({ package: { ecosystem, name: 'x' } }))
  expect(scope?.includes(id, { id, affected })).toBe(isIn)
})
