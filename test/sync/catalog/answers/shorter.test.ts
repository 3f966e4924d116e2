import { describe, expect } from 'vitest'
import { type Said, type Saying, plainBench } from '../../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'

const LIST = '/packages/ecosystems/npm/packages/a/versions'
const CVES = `${LIST}/1.0.0/cves`
const ALL = ['CVE-2024-1', 'CVE-2024-2', 'CVE-2024-3']
const LEFT = ALL.slice(0, 1)

describe('a list of vulnerabilities that is shorter', () => {
  interface Named {
    details?: readonly string[]
    listed?: readonly string[]
  }

  /** A mirror of a version of which one of three vulnerabilities is left, after its first sync; what else names them says `before`, and then `now`. */
  async function shortened(before: Named, now: Named, cves: () => unknown = () => LEFT) {
    let named = before
    let n = 0
    const made = await plainBench({
      '/v1/packages/': () => ({
        body: { data: [{ id: 'a', name: 'a', ecosystem: 'npm', version: '1.0.0', n, cves: named.listed }] },
      }),
      '/v1/packages/a/': () => ({ body: { id: 'a' } }),
      [LIST]: () => ({ body: ['1.0.0'] }),
      [CVES]: () => ({ body: { cves: n === 0 ? ALL : cves() } }),
      [`${LIST}/1.0.0/details`]: () => ({ body: { version: '1.0.0', cves: named.details } }),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    named = now
    n++
    const report = await made.run('catalog')
    const served = async (): Promise<unknown> => (await made.ask(CVES)).json()
    return { made, report, served }
  }

  const CONTRADICTED: [string, Named][] = [
    ['details of the version', { details: ALL }],
    ['listed package', { listed: ALL }],
  ]
  bothTest.each(telling(CONTRADICTED, 'details of the version'))(
    'than its %s is believed when a second sync finds the same',
    async (_, named) => {
      const { made, report, served } = await shortened(named, named)
      expect(report).toMatchObject({
        state: 'partial',
        facts: { lackingIds: [expect.stringContaining('lists CVE-2024-2 no more, which the service still names')] },
      })
      expect(await served()).toEqual({ cves: ALL })
      expect(await made.run('catalog', { kind: 'refresh' })).toMatchObject({ state: 'partial' })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await served()).toEqual({ cves: LEFT })
    },
  )

  longTest('than its details is as it was once the service is right again', async () => {
    let cves = LEFT
    const { made, report, served } = await shortened({ details: ALL }, { details: ALL }, () => cves)
    expect(report).toMatchObject({ state: 'partial' })
    cves = ALL
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await served()).toEqual({ cves: ALL })
  })

  const FIXED: [string, Named, Named][] = [
    ['nothing else names', {}, {}],
    ['its details name no more', { details: ALL }, { details: LEFT }],
    ['its details and its package name no more', { details: ALL, listed: ALL }, { details: LEFT, listed: LEFT }],
    ['its details name beside others', { details: [...ALL, 'CVE-2020-1'] }, { details: [...ALL, 'CVE-2020-1'] }],
  ]
  bothTest.each(telling(FIXED, 'nothing else names', 'its details name no more'))(
    'by fixed ones, which %s, is believed at once',
    async (_, before, now) => {
      const { report, served } = await shortened(before, now)
      expect(report).toMatchObject({ state: 'complete' })
      expect(await served()).toEqual({ cves: LEFT })
    },
  )

  test('at one reading alone is not taken', async () => {
    let readings = 0
    const { report, served } = await shortened({}, {}, () => (readings++ === 0 ? LEFT : ALL))
    expect(report).toMatchObject({ state: 'complete' })
    expect(await served()).toEqual({ cves: ALL })
  })

  longTest('in a reconcile is left to the next sync while its details still name what it lacks', async () => {
    const { made, served } = await shortened({ details: ALL }, { details: ALL }, () => ALL)
    made.say({ [CVES]: () => ({ body: { cves: LEFT } }) })
    expect(await made.run('catalog', { kind: 'reconcile', full: true })).toMatchObject({ facts: { contradicted: 1 } })
    expect(await served()).toEqual({ cves: ALL })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
  })
})

describe('a list of versions that is as long as a page', () => {
  const VERSIONS = Array.from({ length: 130 }, (_, at) => `1.0.${at}`)
  const number = ({ searchParams }: URL, name: string, otherwise: number): number =>
    Number(searchParams.get(name) ?? otherwise)
  const rows = (from: number, count: number): { version: string }[] =>
    VERSIONS.slice(from, from + count).map((version) => ({ version }))

  /** A mirror of a package that changes at each reading, and whose list of versions is what `say` gives. */
  async function listed(say: (url: URL) => Said['body']) {
    let n = 0
    const paths: Record<string, Saying> = {
      '/v1/packages/': () => ({ body: { data: [{ id: 'a', name: 'a', ecosystem: 'npm', version: '1.0.0', n: n++ }] } }),
      '/v1/packages/a/': () => ({ body: { id: 'a' } }),
      [LIST]: (url) => ({ body: say(url) }),
    }
    for (const version of VERSIONS) paths[`${LIST}/${version}/cves`] = () => ({ body: { version, cves: ALL } })
    const made = await plainBench(paths)
    return { made, report: await made.run('catalog'), last: `${LIST}/${VERSIONS.at(-1)}/cves` }
  }

  const CAPPED: [string, (url: URL) => Said['body']][] = [
    ['a limit', (url) => VERSIONS.slice(0, number(url, 'limit', 100))],
    ['an offset', (url) => rows(number(url, 'offset', 0), 100)],
    ['a page number', (url) => ({ versions: rows(100 * (number(url, 'page', 1) - 1), 100) })],
  ]
  bothTest.each(telling(CAPPED, 'a limit', 'a page number'))('is read with %s', async (_, say) => {
    const { made, report, last } = await listed(say)
    expect(report).toMatchObject({ state: 'complete' })
    expect((await made.ask(last)).status).toBe(200)
  })

  test('is whole where nothing else is given for it, and is not believed to have lost what it listed before', async () => {
    let count = 100
    const { made, report, last } = await listed(() => VERSIONS.slice(0, count))
    expect(report).toMatchObject({ state: 'complete' })
    expect((await made.ask(last)).status).toBe(404)
    count = 130
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    count = 100
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect((await made.ask(last)).status).toBe(200)
    // All thirty go at once, which the guard leaves to a person.
    expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'quarantined' })
  })
})
