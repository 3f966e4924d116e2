import { describe, expect } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { shaped } from '../../sandbox/service/shapes/shape.ts'
import type { IndexForm, Validators } from '../../sandbox/service/shapes/forms.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { ARCHIVE, INDEX, bench, contentsOf, expectSound, verify } from '../fixtures.ts'

const NOTHING = { images: 0, tags: 0, packages: 0, tickets: 0, avrs: 0, users: 0, subscriptions: 0 }
const RECORDS = 12
const UNSTAMPED = ['ids', 'objects', 'keyed', 'groups'] as const
const STAMPED = ['map', 'lines'] as const

function benchOf(index: IndexForm, validators: Validators = 'both', env = {}): Promise<Bench> {
  const shape = shaped('wire', { index, http: { validators } })
  return bench({ sandbox: { records: RECORDS, large: 0, service: { ...NOTHING, shape } }, env })
}

async function mirrored(index: IndexForm, validators: Validators = 'both'): Promise<Bench> {
  const made = await benchOf(index, validators)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(differences(made)).toEqual([])
  made.sandbox.requests.clear()
  return made
}

const pathsOf = ({ sandbox }: Bench): string[] => [...sandbox.requests].map(({ path }) => path)

const json = (value: unknown): Fault => ({
  kind: 'body',
  body: typeof value === 'string' ? value : JSON.stringify(value),
  type: 'application/json',
})

describe.each(telling([...UNSTAMPED, ...STAMPED], 'ids', 'lines'))('an index in the form %s', (form) => {
  bothTest('is mirrored and served as upstream has it, before and after changes', async () => {
    const made = await mirrored(form)
    await expectSound(made.dir)
    const { feed } = made.sandbox
    const changed = feed.change(2)
    feed.add(1)
    feed.remove(1)
    const report = await made.run('osv')
    expect(report).toMatchObject({
      state: 'complete',
      facts: { added: 1, changed: changed.length, removed: 1 },
    })
    expect(differences(made)).toEqual([])
    await expectSound(made.dir)
  })

  bothTest('costs no more than two conditional requests, and no write, when nothing changed', async () => {
    const made = await mirrored(form)
    const before = contentsOf(made.dir)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect([...made.sandbox.requests].every(({ status }) => status === 304)).toBe(true)
    expect(pathsOf(made).length).toBeLessThanOrEqual(2)
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

describe('an index without stamps', () => {
  test('shows no change, which the archive does', async () => {
    const made = await mirrored('ids')
    const index = made.sandbox.feed.index()
    const [id = ''] = made.sandbox.feed.change(1)
    expect(made.sandbox.feed.index().equals(index)).toBe(true)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { changed: 1 } })
    expect(made.store.osv.readEntry(id)?.modified).toBe(made.sandbox.feed.modified(id))
    expect(differences(made)).toEqual([])
  })

  bothTest.each(telling(['date', 'none'] as const, 'date'))(
    'is mirrored from a service whose validators are %s',
    async (validators) => {
      const made = await mirrored('ids', validators)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      made.sandbox.feed.change(1)
      expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { changed: 1 } })
      expect(differences(made)).toEqual([])
    },
  )

  test('has the stamps of the records themselves', async () => {
    const made = await mirrored('ids')
    for (const id of made.sandbox.feed.ids())
      expect(made.store.osv.readEntry(id)?.modified).toBe(made.sandbox.feed.modified(id))
  })

  longTest('is compared record by record where few are listed and there is no archive', async () => {
    const made = await benchOf('ids')
    made.sandbox.faults.set(ARCHIVE, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    made.sandbox.feed.change(1)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { changed: 1 } })
    const { message } = await made.run('osv')
    expect(message).toMatch(/without stamps: each record was fetched and compared$/)
    made.sandbox.faults.clear()
    expect(differences(made)).toEqual([])
  })

  test('is not confirmed while the archive fails', async () => {
    const made = await mirrored('ids')
    made.sandbox.faults.set(ARCHIVE, { kind: 'status', status: 500 })
    expect(await made.run('osv')).toMatchObject({ state: 'failed', code: 'upstream_status' })
  })

  test('is served with the stored stamps while a record is missing', async () => {
    const made = await benchOf('ids')
    const [id = '', other = ''] = made.sandbox.feed.ids()
    made.sandbox.feed.freezeArchive()
    const [added = ''] = made.sandbox.feed.add(1)
    made.sandbox.faults.set(new RegExp(`/${added}\\.json$`), { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    const served = JSON.parse(made.index()?.toString() ?? '') as { id: string; modified: string }[]
    expect(served.find((one) => one.id === added)).toBeUndefined()
    expect(served).toContainEqual({ id, modified: made.sandbox.feed.modified(id) })
    expect(served).toContainEqual({ id: other, modified: made.sandbox.feed.modified(other) })
    expect(made.store.osv.isMissing(added)).toBe(true)
    expect(made.store.osv.isMissing(id)).toBe(false)
    await expectSound(made.dir)
  })

  test('is narrowed to the scope by what the records say now', async () => {
    const shape = shaped('wire', { index: 'ids' })
    const sandbox = { records: 0, large: 0, service: { ...NOTHING, shape } }
    const env = { PATCHMIRROR_OSV_SCOPE: 'npm' }
    const made = await bench({ sandbox, env })
    const record = (id: string, ecosystem: string, modified: string): string =>
      JSON.stringify({ id, modified, affected: [{ package: { ecosystem, name: 'a' } }] })
    const { feed } = made.sandbox
    feed.put('A-1', record('A-1', 'npm', '2026-01-01T00:00:00Z'))
    feed.put('A-2', record('A-2', 'PyPI', '2026-01-01T00:00:00Z'))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect([made.content('A-1') !== null, made.content('A-2')]).toEqual([true, null])
    feed.put('A-2', record('A-2', 'npm', '2026-01-02T00:00:00Z'))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.content('A-2')?.equals(feed.record('A-2'))).toBe(true)
  })
})

describe('an index that cannot be read', () => {
  const REFUSED: [string, unknown, string][] = [
    ['an error', { error: 'unauthorized', status: 401 }, 'not a JSON array'],
    ['a list of other words', ['alpine', 'debian'], 'have no id'],
    ['ids and the next page', { data: ['CVE-2026-1'], next: 'abc' }, 'one page of several'],
    ['ids and a larger total', { data: ['CVE-2026-1'], total: 437 }, 'one page of several'],
    ['ids and no last page', { data: ['CVE-2026-1'], is_last: false }, 'one page of several'],
    ['an empty object', {}, 'not a JSON array'],
    ['lines that end within one', '"CVE-2026-1"\n"CVE-20', 'not a JSON array'],
    ['ids among other things', [{ cve: 'CVE-2026-1' }, { x: 1 }], '1 of 2 entries have no id'],
  ]
  bothTest.each(telling(REFUSED, 'ids and the next page'))('empties nothing when it is %s', async (_, index, why) => {
    const made = await mirrored('ids')
    const before = contentsOf(made.dir)
    made.sandbox.faults.set(INDEX, json(index))
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_shape' })
    expect(report.message).toContain(why)
    expect(contentsOf(made.dir)).toEqual(before)
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  })

  test.each<[string, Record<string, string>, string]>([
    ['a link', { link: '</external/osv/all.json?page=2>; rel="next"' }, 'one page of several'],
    ['a total', { 'x-total-count': String(RECORDS) }, 'one page of several'],
    ['a flag', { 'x-incomplete-results': '1' }, 'one page of several'],
    ['a warning', { warning: '110 - "Response is Stale"' }, 'it may not be whole'],
  ])(
    'as its headers name more, or an old answer, in %s removes nothing, and fails by name',
    async (_, headers, why) => {
      const made = await mirrored('objects')
      const body = JSON.stringify(made.sandbox.feed.ids().slice(0, 3))
      made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json', headers })
      const report = await made.run('osv')
      expect(report).toMatchObject({ state: 'failed', code: 'upstream_shape' })
      expect(report.message).toContain(why)
      made.sandbox.faults.clear()
      expect(differences(made)).toEqual([])
    },
  )

  test('that may be one page of several is mirrored as a part, and removes nothing', async () => {
    const made = await mirrored('ids')
    const [gone = '', ...left] = made.sandbox.feed.ids()
    const [added = ''] = made.sandbox.feed.add(1)
    const page = (ids: readonly string[]): Fault => json({ data: ids, numFound: 437 })
    made.sandbox.faults.set(INDEX, page([...left, added]))
    const refused = await made.run('osv')
    expect(refused).toMatchObject({ state: 'quarantined' })
    expect(refused.message).toContain('the index may be one page of several: numFound says 437 items')
    expect(made.store.osv.readEntry(gone)).not.toBeNull()
    made.sandbox.faults.clear()
    made.sandbox.faults.set(INDEX, page([gone, ...left, added]))
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { added: 1 } })
    expect(made.store.osv.readEntry(added)).not.toBeNull()
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('as lines of which the response does not show the end removes nothing; as one value it is read', async () => {
    const lines = await mirrored('lines')
    lines.sandbox.feed.remove(1)
    lines.sandbox.faults.set(INDEX, { kind: 'unframed' })
    const report = await lines.run('osv')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_shape' })
    expect(report.message).toContain('it may be cut off')
    lines.sandbox.faults.clear()
    expect(await lines.run('osv')).toMatchObject({ state: 'complete' })
    const map = await mirrored('map')
    map.sandbox.feed.add(1)
    map.sandbox.faults.set(INDEX, { kind: 'unframed' })
    expect(await map.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(map)).toEqual([])
  })

  test('quarantines what it would remove in any form', async () => {
    const made = await benchOf('ids', 'both', { PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 1' })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    made.sandbox.faults.set(INDEX, json(made.sandbox.feed.ids().slice(0, 6)))
    expect(await made.run('osv')).toMatchObject({ state: 'quarantined' })
    made.sandbox.faults.clear()
    expect(differences(made)).toEqual([])
  })

  test('leaves a damaged store to the verification, which reads any form', async () => {
    const made = await mirrored('keyed')
    const report = await verify(made.dir)
    expect(report.disagreements).toEqual([])
    expect(report.records).toBe(RECORDS)
  })
})
