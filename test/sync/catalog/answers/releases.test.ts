import { describe, expect } from 'vitest'
import { type Said, type Saying, plainBench } from '../../../support/catalog/plain-service.ts'
import { bothTest, telling, test } from '../../../support/tables.ts'

const NO_CATALOG = { PATCHMIRROR_UPSTREAM_CATALOG_URL: '' }

const VERSIONS = ['1.0.0', '1.0.1', '1.0.2', '1.1.0', '1.2.0']
const LIMITS = { PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5' }

const versionsOf = (name: string): string => `/packages/ecosystems/npm/packages/${name}/versions`

/** What lists of vulnerabilities answer then, and the headers of lists of versions. */
interface Others {
  cves: unknown
  headers: Record<string, string>
}

/** A mirror of packages with the same versions, which all changed since its first sync; `listed` says what each list of versions answers then. */
async function changed(names: readonly string[], listed: unknown, { cves, headers = {} }: Partial<Others> = {}) {
  let n = 0
  const others = () => (n === 0 ? {} : headers)
  const paths: Record<string, Saying> = {
    '/v1/packages/': () => ({
      body: { data: names.map((name) => ({ id: name, name, ecosystem: 'npm', version: '1.2.0', n })) },
    }),
  }
  for (const name of names) {
    paths[`/v1/packages/${name}/`] = () => ({ body: { id: name, name } })
    paths[versionsOf(name)] = () => ({ body: n === 0 ? VERSIONS : listed, headers: others() })
    for (const version of VERSIONS) {
      const known = { cves: ['CVE-2024-1', 'CVE-2024-2'] }
      paths[`${versionsOf(name)}/${version}/cves`] = () => ({ body: (n === 0 ? undefined : cves) ?? known })
      paths[`${versionsOf(name)}/${version}/details`] = () => ({ body: { version } })
    }
  }
  const made = await plainBench(paths, LIMITS)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  n++
  const report = await made.run('catalog', { full: cves !== undefined })
  const statusOf = async (path: string) => (await made.ask(path)).status
  return { made, report, statusOf }
}

describe('a list of versions that is shorter', () => {
  test('in several packages at once is quarantined, though each package stays', async () => {
    const { report, statusOf, made } = await changed(['a', 'b', 'c', 'd'], ['1.2.0'])
    expect(report).toMatchObject({ state: 'quarantined', facts: { plannedRemoved: 32 } })
    expect(report.message).toContain('32 of 40 answers about versions')
    expect(await statusOf(`${versionsOf('a')}/1.0.0/cves`)).toBe(200)
    const approved = made.store.quarantine.readQuarantine(report.id)
    if (approved === null) throw new Error('nothing is in quarantine')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect(await statusOf(`${versionsOf('a')}/1.0.0/cves`)).toBe(404)
  })

  test('below the limits is believed, and named among what the window counts', async () => {
    const { report } = await changed(['a'], VERSIONS.slice(1))
    expect(report).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 2 } })
  })

  test('because other versions replace its own is believed', async () => {
    const others = VERSIONS.map((version) => `${version}1`)
    expect((await changed(['a', 'b', 'c', 'd'], others)).report).toMatchObject({ state: 'complete' })
  })
})

describe('an answer of the package catalog that says itself that it is one page of several', () => {
  const SOME = VERSIONS.slice(1)
  const items = SOME.map((version) => ({ version }))
  const PAGES: [string, unknown, Record<string, string>?][] = [
    ['a total', { items, total: 9 }],
    ['a cursor', { data: items, cursor: { after: 'abc' } }],
    ['the next page', { versions: SOME, next: '/versions?page=2' }],
    ['a flag', { versions: SOME, has_more: true }],
    ['a note', { versions: SOME, status: 'partial' }],
    ['a Link', SOME, { link: '</versions?page=2>; rel="next"' }],
    ['a count in a header', SOME, { 'x-total-count': '9' }],
  ]
  bothTest.each(telling(PAGES, 'a total', 'a Link'))('by %s removes no version', async (_, listed, headers = {}) => {
    const { report, statusOf } = await changed(['a'], listed, { headers })
    expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(report.message).toContain('1 could not be fetched')
    expect(await statusOf(`${versionsOf('a')}/1.0.0/cves`)).toBe(200)
    expect(await statusOf(`${versionsOf('a')}/9.0.0/cves`)).toBe(503) // it may be on another page
  })

  const FOLLOWED: [string, (at: number) => Said][] = [
    [
      'a cursor',
      (at) => ({
        body: { data: items.slice(at, at + 2), cursor: { after: at < 2 ? String(at + 2) : null }, total: 4 },
      }),
    ],
    [
      'a Link',
      (at) => ({ body: SOME.slice(at, at + 2), headers: at < 2 ? { link: `<?after=${at + 2}>; rel="next"` } : {} }),
    ],
  ]
  bothTest.each(telling(FOLLOWED, 'a cursor'))(
    'by %s is read to its last page, and served as one',
    async (kind, say) => {
      const { made } = await changed(['a'], null)
      let isDown = true
      const atOf = (url: URL): number => Number(url.searchParams.get('after') ?? 0)
      made.say({ [versionsOf('a')]: (url) => (isDown && atOf(url) > 0 ? { status: 500 } : say(atOf(url))) })
      expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
      expect(await (await made.ask(versionsOf('a'))).json()).toEqual(VERSIONS)
      isDown = false
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      const all = { data: items, cursor: { after: null }, total: 4 }
      expect(await (await made.ask(versionsOf('a'))).json()).toEqual(kind === 'a Link' ? SOME : all)
      expect(await made.run('catalog')).toMatchObject({ facts: { fetched: 0 } })
    },
  )

  const TWICE: [string, (page: number) => object][] = [
    [
      'the first page again behind the last',
      (page) => ({ versions: SOME.slice(2 * page - 2, 2 * page), page, total_pages: 2, total: 5 }),
    ],
    [
      'an item that moved to the next page',
      (page) => ({ versions: page === 1 ? SOME.slice(0, 2) : SOME.slice(1, 3), page, total_pages: 2, total: 4 }),
    ],
  ]
  test.each(TWICE)('is not taken for whole by %s', async (_, say) => {
    const { made } = await changed(['a'], null)
    made.say({ [versionsOf('a')]: ({ searchParams }) => ({ body: say(Number(searchParams.get('page') ?? 1)) }) })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(await (await made.ask(versionsOf('a'))).json()).toEqual(VERSIONS)
  })

  test('has the artifact sets mirrored that a later page names', async () => {
    const cves = `${versionsOf('a')}/1.0.0/cves`
    const sbomOf = (set: string): string => `/v1/avrs/${set}/artifacts/sbom`
    const sets = ['one', 'two']
    const made = await plainBench({
      '/v1/packages/': () => ({ body: { data: [{ id: 'a', name: 'a', ecosystem: 'npm', version: '1.0.0' }] } }),
      '/v1/packages/a/': () => ({ body: { id: 'a' } }),
      [cves]({ searchParams }) {
        const at = Number(searchParams.get('after') ?? 0)
        const data = [{ id: `CVE-2024-${at}`, avr_id: sets[at] }]
        return { body: { data, cursor: { after: at === 0 ? '1' : null }, total: 2 } }
      },
      ...Object.fromEntries(sets.map((set) => [sbomOf(set), () => ({ body: { ...SBOM, serialNumber: set } })])),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    for (const set of sets) expect([set, (await made.ask(sbomOf(set))).status]).toEqual([set, 200])
  })

  test('is none where it counts what it lists, each version once for each architecture', async () => {
    const items = VERSIONS.flatMap((version) => ['amd64', 'arm64'].map((arch) => ({ version, arch })))
    const { report } = await changed(['a'], { items, total: items.length })
    expect(report).toMatchObject({ state: 'complete' })
  })

  const LISTS: [string, unknown, boolean][] = [
    ['fewer vulnerabilities than it counts', { cves: ['CVE-2024-1'], total: 2 }, true],
    ['no vulnerability, and a cursor', { data: [], cursor: { after: 'abc' } }, true],
    ['as many in two lists as it counts', { fixed: ['CVE-2024-1'], open: [{ id: 'CVE-2024-2' }], total: 2 }, false],
    ['as many by their ids as it counts', { cves: { 'CVE-2024-1': {}, 'CVE-2024-2': {} }, total_count: 2 }, false],
  ]
  bothTest.each(telling(LISTS, 'no vulnerability, and a cursor', 'as many in two lists as it counts'))(
    'does not replace what is stored, with %s: %s',
    async (_, cves, isPage) => {
      const { report, made } = await changed(['a'], VERSIONS, { cves })
      expect(report.state).toBe(isPage ? 'partial' : 'complete')
      const served = await (await made.ask(`${versionsOf('a')}/1.0.0/cves`)).json()
      expect(served).toEqual(isPage ? { cves: ['CVE-2024-1', 'CVE-2024-2'] } : cves)
    },
  )
})

bothTest.each(telling([['its details'], ['the versions of its name'], ['its own entry']], 'its details'))(
  'a provenance of an architecture that %s names no more is kept with all others, until that is approved',
  async (where) => {
    let n = 0
    const ids = ['a', 'b']
    const archs = (place: string) => (place === where && n === 0 ? { architectures: ['amd64'] } : {})
    const entry = (id: string) => ({ id, name: id, ecosystem: 'npm', version: '1.0.0', n, ...archs('its own entry') })
    const paths: Record<string, Saying> = { '/v1/packages/': () => ({ body: { data: ids.map(entry) } }) }
    for (const id of ids) {
      const version = `${versionsOf(id)}/1.0.0`
      paths[`/v1/packages/${id}/`] = () => ({ body: { id } })
      paths[versionsOf(id)] = () => ({ body: [{ version: '1.0.0', ...archs('the versions of its name') }] })
      paths[`${version}/details`] = () => ({ body: { version: '1.0.0', n, ...archs('its details') } })
      paths[`${version}/provenance/amd64`] = () => ({
        body: { _type: STATEMENT, predicateType: 'x', subject: [], predicate: {} },
      })
    }
    const made = await plainBench(paths)
    const statusOf = async () => (await made.ask(`${versionsOf('a')}/1.0.0/provenance/amd64`)).status
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await statusOf()).toBe(200)
    n++
    const refused = await made.run('catalog')
    expect([refused.state, await statusOf()]).toEqual(['quarantined', 200])
    const approved = made.store.quarantine.readQuarantine(refused.id)
    if (approved === null) throw new Error('nothing is in quarantine')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect(await statusOf()).toBe(404)
  },
)

const SBOM = { bomFormat: 'CycloneDX', specVersion: '1.5' }
const STATEMENT = 'https://in-toto.io/Statement/v1'

describe('an answer that lists nothing where something is stored', () => {
  const CVES = `${versionsOf('a')}/1.0.0/cves`
  const PATCHES = '/v1/packages/a/artifacts/patches'
  const PATCH = { name: 'fix', patch: '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n' }

  /** A mirror of two packages of which the first one's path answers `empty` after the first run, as do others where `all`. */
  async function emptied(path: string, full: unknown, empty: unknown, { all = false } = {}) {
    let n = 0
    const ids = ['a', 'b']
    const ofEach = (say: (id: string) => Record<string, Saying>) =>
      Object.assign({}, ...ids.map(say)) as Record<string, Saying>
    const made = await plainBench({
      '/v1/packages/': () => ({
        body: { data: ids.map((id) => ({ id, name: id, ecosystem: 'npm', version: '1.0.0', n })) },
      }),
      ...ofEach((id) => ({
        [`/v1/packages/${id}/`]: () => ({ body: { id } }),
        [versionsOf(id)]: () => ({ body: ['1.0.0'] }),
        [path.replace(/\ba\b/, id)]: () => ({ body: n > 0 && (all || id === 'a') ? empty : full }),
      })),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    n++
    const served = async (): Promise<unknown> => (await made.ask(path)).json()
    return { made, served }
  }

  bothTest.each(
    telling<[string, string, unknown, unknown]>(
      [
        ['a list in an object', CVES, { cves: ['CVE-2024-1'] }, { cves: [], total: 0, next: null }],
        ['a bare list', CVES, ['CVE-2024-1'], []],
        ['a list of patches', PATCHES, { patches: [PATCH] }, { patches: [] }],
      ],
      'a list in an object',
      'a list of patches',
    ),
  )('as %s, is believed when a second run finds the same: %s', async (_, path, full, empty) => {
    const { made, served } = await emptied(path, full, empty)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(await served()).toEqual(full)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await served()).toEqual(empty)
  })

  test('as all others of its kind is quarantined, and what is stored stays until that is approved', async () => {
    const { made, served } = await emptied(CVES, ['CVE-2024-1'], [], { all: true })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    const refused = await made.run('catalog')
    expect(refused).toMatchObject({ state: 'quarantined' })
    expect(await made.run('catalog')).toMatchObject({ state: 'quarantined', facts: { quarantine: refused.id } })
    expect(await served()).toEqual(['CVE-2024-1'])
    const approved = made.store.quarantine.readQuarantine(refused.id)
    if (approved === null) throw new Error('nothing is in quarantine')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect(await served()).toEqual([])
  })
})

test('a patch with a message about what was missing is a whole one', async () => {
  const path = '/v1/packages/a/artifacts/patches'
  const patch = { patch: '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n', message: 'fix: a note is missing, read timed out' }
  const made = await plainBench(
    {
      '/v1/packages/': () => ({ body: { data: [{ id: 'a', name: 'a', ecosystem: 'npm' }] } }),
      '/v1/packages/a/': () => ({ body: { id: 'a' } }),
      [path]: () => ({ body: patch }),
    },
    NO_CATALOG,
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await (await made.ask(path)).json()).toEqual(patch)
})

test('a list of patch files that is one page of several does not replace the stored one', async () => {
  const path = '/v1/packages/a/artifacts/patches'
  let n = 0
  const files = (count: number) => ({
    patches: Array.from({ length: count }, (_, at) => ({ text: `--- a/${at}\n+++ b/${at}\n@@ -1 +1 @@\n-a\n+b\n` })),
  })
  const made = await plainBench(
    {
      '/v1/packages/': () => ({ body: { data: [{ id: 'a', name: 'a', ecosystem: 'npm', n }] } }),
      '/v1/packages/a/': () => ({ body: { id: 'a' } }),
      [path]: () => ({ body: n === 0 ? files(3) : { ...files(1), total: 3 } }),
    },
    NO_CATALOG,
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  n++
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(await (await made.ask(path)).json()).toEqual(files(3))
})
