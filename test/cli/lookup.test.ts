import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { DAY_MS } from '../../src/base/time.ts'
import { SANDBOX_KEYS } from '../sandbox/service/credentials.ts'
import { openShortReads } from '../../src/store/reads.ts'
import type { MatchResult } from '../../src/features/match/result.ts'
import { readStatements } from '../../src/documents/vex/statements.ts'
import { acquireLock } from '../../src/store/database/lock.ts'
import { openWrites } from '../../src/store/writes.ts'
import { makeOsvViews } from '../../src/features/scanners/views/osv/views.ts'
import { scratch } from '../config/loading.ts'
import { FILLED_AT, openFilledStore } from '../support/filled-store.ts'
import { commandHost } from '../support/hosted.ts'
import { createBench } from '../support/mirror.ts'
import { longTest, test } from '../support/tables.ts'

const run = commandHost()
const SERVICE = { images: 2, tags: 3, packages: 0, tickets: 9, avrs: 0, subscriptions: 0 }

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-lookup-'))
/** A number of a listed patch that no double can represent, as the service writes it. */
let reference = ''
beforeAll(async () => {
  const bench = await createBench({
    dir,
    sandbox: { records: 5, service: SERVICE },
    env: {
      PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
      PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
      PATCHMIRROR_CATALOG_SCOPE: 'all',
    },
  })
  bench.sandbox.faults.set(/\/provenance$/, { kind: 'status', status: 400 })
  expect(await bench.run('catalog')).toMatchObject({ state: 'partial' })
  const authorization = `Bearer ${SANDBOX_KEYS.readonly}`
  const listed = await fetch(`${bench.sandbox.url}/v1/patches`, { headers: { authorization } })
  reference = /"upstream_reference": ?(\d+)/.exec(await listed.text())?.[1] ?? ''
  await bench.close()
  const store = openFilledStore(dir)
  const records = { ...RECORDS, 'VEX-1': vexRecord() }
  store.publishOsv({ ...records, 'GONE-1': GONE })
  store.publishOsv(records)
  store.close()
  await buildViews()
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const GONE = '{"id":"GONE-1","affected":[{"package":{"ecosystem":"npm","name":"lodash"}}]}'
const RECORDS = {
  'GHSA-1': recordOf('GHSA-1', ['CVE-2026-1', 'CVE-2026-2']),
  'GHSA-2': recordOf('GHSA-2', ['CVE-2026-2']),
}

/** What a mirrored VEX document says that a package is not affected by. */
let ruledOut = { vulnerability: '', product: '', document: '' }

/** A record of the vulnerability that a mirrored VEX document rules out. */
function vexRecord(): string {
  const reads = openShortReads(dir)
  const said = (reads?.vex.listVexDocuments() ?? []).flatMap((one) => {
    const statements = readStatements(reads?.vex.readVexContent(one) ?? Buffer.alloc(0))
    if (!Array.isArray(statements)) return []
    return statements
      .filter(({ status }) => status === 'not_affected')
      .map(({ vulnerabilities: [vulnerability = ''], products: [product] }) => ({
        vulnerability,
        product: product?.names[0]?.purl ?? '',
        document: one.digest,
      }))
  })
  reads?.close()
  ruledOut = said[0] ?? ruledOut
  const [, name = ''] = /^pkg:deb\/debian\/([^@]+)@/.exec(ruledOut.product) ?? []
  const affected = [
    {
      package: { ecosystem: 'Debian:12', name },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }] }],
    },
  ]
  const aliases = [ruledOut.vulnerability]
  const severity = [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }]
  const own = { severity, database_specific: { severity: 'LOW' } }
  return JSON.stringify({
    id: 'VEX-1',
    modified: '2026-06-01T00:00:00Z',
    aliases,
    affected,
    ...own,
  })
}

function recordOf(id: string, aliases: readonly string[]): string {
  const affected = Array.from({ length: 3 }, (_, at) => ({
    package: { ecosystem: 'npm', name: at === 0 ? 'lodash' : `other-${at}` },
    ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '4.17.21' }] }],
  }))
  const summary = 'A summary \u001b[2Jof it'
  const references = [{ type: 'WEB', url: 'https://example.com/a' }]
  const more = { database_specific: { reviewedAt: 1_700_000_000_000 } }
  return JSON.stringify({ id, modified: '2026-06-01T00:00:00Z', aliases, summary, affected, references, ...more })
}

async function buildViews(): Promise<void> {
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: [], pause })
  reads.close()
}

const ask = (...args: string[]) => run(args, { PATCHMIRROR_DATA_DIR: dir }, '/')
const json = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await ask(...args, '--json')).out) as Record<string, unknown>

describe('search', () => {
  longTest(
    'finds records by id, other id and purl, packages, tags and digests, each as a table and as JSON',
    async () => {
      expect((await ask('search', 'ghsa-1')).out).toMatch(/^record .*\nGHSA-1 +2026-07-01 \S+ +id\n/)
      expect(await json('search', 'CVE-2026-2')).toMatchObject({
        records: [
          { id: 'GHSA-1', by: 'other id' },
          { id: 'GHSA-2', by: 'other id' },
        ],
        more: false,
      })
      expect(await json('search', 'lodash')).toMatchObject({
        packages: [{ name: 'lodash', ecosystem: 'npm', records: 2 }],
      })
      expect(await json('search', 'pkg:npm/lodash@1.0.0')).toMatchObject({
        records: [{ id: 'GHSA-1' }, { id: 'GHSA-2' }],
      })
      const { tags } = (await json('list', 'tags')) as { tags: { digest: string }[] }
      expect(await json('search', tags[0]?.digest ?? '')).toMatchObject({
        items: [{ list: '/v1/tags', digest: tags[0]?.digest }],
      })
    },
  )

  test('finds the records of the source package that a purl names, as match and changes do', async () => {
    const [, name = ''] = /^pkg:deb\/debian\/([^@]+)@/.exec(ruledOut.product) ?? []
    for (const purl of [`pkg:deb/debian/x@1?upstream=${name}`, `pkg:deb/debian/${name}@1?upstream=x`])
      expect(await json('search', purl)).toMatchObject({ records: [{ id: 'VEX-1', by: 'package' }] })
    expect(await json('search', 'pkg:deb/debian/x@1?upstream=y')).toMatchObject({ found: false })
  })

  test('says that more exist than --limit shows, and how old the sources are', async () => {
    const { out } = await ask('search', 'CVE-2026-2', '--limit', '1')
    expect(out).toContain('--limit 5 shows more')
    expect(out).toMatch(/^osv: snapshot [\da-f]{12}, as of 2026-07-01 00:00:00Z, \d+ d/m)
    expect(out).not.toContain('GHSA-2')
    expect(await ask('search', 'x', '--limit', '0')).toMatchObject({ code: 2 })
  })
})

describe('show', () => {
  test('prints a record with its packages, fixes and references, by its id or an id that only it names', async () => {
    for (const name of ['GHSA-1', 'CVE-2026-1']) {
      const { code, out } = await ask('show', name, '--limit', '2')
      expect([name, code]).toEqual([name, 0])
      expect(out).toMatch(/^lodash +npm +from 0 before 4\.17\.21 +4\.17\.21$/m)
      expect(out).toContain('… and 1 more: --limit 3, or --json')
      expect(out).toContain('https://example.com/a')
      expect(out).not.toContain('\u001b')
    }
    const record: unknown = JSON.parse(RECORDS['GHSA-1'])
    const seen = { at: '2026-07-01T00:00:00.000Z', exact: true }
    const dates = {
      state: 'present',
      firstSeen: seen,
      fixSeen: seen,
      changed: seen,
      removedAt: null,
    }
    expect(await json('show', 'GHSA-1')).toMatchObject({ kind: 'record', record, dates })
    const { out } = await ask('show', 'GHSA-1')
    expect(out).toMatch(/^first seen here +2026-07-01 00:00:00Z\nfix first seen +2026-07-01 0/m)
  })

  test('names the records of a package by its name or a purl, as search does', async () => {
    for (const name of ['lodash', 'pkg:npm/lodash']) {
      const shown = await ask('show', name)
      const found = await ask('search', name)
      const withoutAge = ({ out }: { out: string }): string => out.replace(/\d+ \w+ old/g, '')
      expect([name, shown.code, withoutAge(shown)]).toEqual([name, found.code, withoutAge(found)])
      expect([shown.code, shown.out]).toEqual([0, expect.stringMatching(/^(record|package) /m)])
    }
    expect((await ask('show', 'no-such-package')).code).toBe(1)
  })

  test('prints a tag by its reference, its digest and its id', async () => {
    const { tags } = (await json('list', 'tags')) as { tags: { id: string; digest: string }[] }
    const [tag] = tags
    const { repository, name } = await json('show', tag?.id ?? '')
    const reference = `${String(repository)}:${String(name)}`
    for (const text of [reference, `cr.example.com/${reference}`, tag?.digest ?? '']) {
      expect([text, await json('show', text)]).toMatchObject([text, { kind: 'tag', id: tag?.id }])
    }
    const { out } = await ask('show', reference)
    expect(out).toMatch(/^sbom +stored +\S/m)
    expect(out).toMatch(/^provenance +could not be fetched(?: +-)+$/m)
    expect(out).toMatch(/^provenance +\S.*\/provenance.*400/m) // the reason that the run gave
  })

  longTest(
    'finds a digest by its first eight digits, within a repository too, and lists what several digits may be',
    async () => {
      const { tags } = (await json('list', 'tags')) as { tags: { id: string; digest: string }[] }
      const { id, digest } = tags[0] ?? { id: '', digest: '' }
      const { repository } = await json('show', id)
      const digits = digest.slice('sha256:'.length)
      const short = [`sha256:${digits.slice(0, 12)}`, digits.slice(0, 8).toUpperCase(), digits]
      for (const text of [...short, `${String(repository)}@${digits.slice(0, 12)}`])
        expect([text, await json('show', text)]).toMatchObject([text, { kind: 'tag', id }])
      expect(await ask('show', digits.slice(0, 7))).toMatchObject({ code: 1 })
      expect(await ask('show', `other@${digits}`)).toMatchObject({ code: 1 })
      const reads = openShortReads(dir)
      expect(reads?.reads.catalog.listDigestsFrom('sha256:', 9)).toHaveLength(3) // all that begin so
      reads?.close()
    },
  )

  test('lists the tags of a repository with digest, date and id', async () => {
    const { tags } = (await json('list', 'tags')) as { tags: { id: string; digest: string }[] }
    const { repository } = await json('show', tags[0]?.id ?? '')
    const { code, out } = await ask('show', `cr.example.com/${String(repository)}`)
    expect(code).toBe(0)
    expect(out).toMatch(/^\S+:\S+ +[\da-f]{12} +\d{4}-\d\d-\d\d +\S+$/m)
    const found = await json('show', String(repository))
    expect(found).toMatchObject({ kind: 'repository', total: 2 })
    expect(found['tags']).toContainEqual(tags[0])
  })
})

interface Report {
  components: { 'bom-ref': string; name: string; purl: string }[]
  vulnerabilities: { id: string; affects: { ref: string; versions: object[] }[] }[]
}

interface Sarif {
  runs: {
    results: {
      ruleId: string
      locations: { logicalLocations: { fullyQualifiedName: string }[] }[]
      partialFingerprints: Record<string, string>
    }[]
  }[]
}

describe('match', () => {
  test('of a package URL leads to what is about a package', async () => {
    const { code, err } = await ask('match', 'pkg:npm/lodash@1.0.0')
    expect([code, err]).toEqual([2, expect.stringContaining('"patchmirror show pkg:npm/lodash@1.0.0"')])
    expect((await ask('show', 'pkg:npm/lodash@1.0.0')).code).toBe(0)
  })

  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-sboms-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string, document: unknown): string => {
    const path = join(folder, name)
    writeFileSync(path, typeof document === 'string' ? document : JSON.stringify(document))
    return path
  }
  const component = (name: string, purl?: string) => ({ name, purl, 'bom-ref': name })
  const sbom = file('sbom.json', {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    metadata: { component: { name: 'app' } },
    components: [
      component('lodash', 'pkg:npm/lodash@4.17.0'),
      component('fixed', 'pkg:npm/lodash@4.17.21'),
      component('file'),
    ],
  })

  test('prints the findings of an SBOM with their fixes, what was not judged, and the snapshot', async () => {
    const { code, out } = await ask('match', sbom)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^CycloneDX 1\.6, app: 3 packages, 2 findings in 1 of them \(2 of no stated severity\); 2 with a fix; 1 not judged/,
    )
    expect(out).toMatch(/^unknown +lodash +4\.17\.0 +4\.17\.21 +GHSA-1 +CVE-2026-1, CVE-2026-2$/m)
    expect(out).toMatch(/^1 +it has no package URL \(purl\) +file$/m)
    expect(out).toMatch(/^osv: snapshot [\da-f]{12}, published .*, as of 2026-07-01 00:00:00Z, \d+ d/m)
    expect(await json('match', sbom)).toMatchObject({
      counts: { components: 3, packages: 3, vulnerable: 1, findings: 2, fixable: 2, notJudged: 1 },
      findings: [{ id: 'GHSA-1', fixed: ['4.17.21'], component: { refs: ['lodash'] } }, { id: 'GHSA-2' }],
      notJudged: [{ code: 'no_purl', name: 'file' }],
      snapshot: { asOf: '2026-07-01T00:00:00.000Z', quarantined: 0, scope: null },
    })
  })

  test('components with the same bom-ref are kept apart in every format', async () => {
    const names = ['lodash@4.17.0', 'lodash@4.17.21', 'lodash@4.17.1', 'none@1.0.0']
    const components = names.map((name) => ({ ...component('same', `pkg:npm/${name}`), name }))
    const nested = [{ name: 'parent', 'bom-ref': 'same', components }]
    const of = file('same.json', { bomFormat: 'CycloneDX', specVersion: '1.6', components: nested })
    const affected = ['4.17.0', '4.17.1']
      .flatMap((version) => ['GHSA-1', 'GHSA-2'].map((id) => `${id} pkg:npm/lodash@${version}`))
      .sort()
    const { counts, findings, notJudged } = (await json('match', of)) as unknown as MatchResult
    expect(counts).toMatchObject({ components: 5, packages: 5, vulnerable: 2, findings: 4 })
    expect(findings.map(({ id, component }) => `${id} ${component.purl}`).sort()).toEqual(affected)
    for (const { component } of findings)
      expect(component).toMatchObject({ name: component.purl?.slice(8), refs: ['same'] })
    expect(notJudged.map(({ name }) => name)).toEqual(['parent'])

    const { out } = await ask('match', of)
    const rows = [...out.matchAll(/^unknown +lodash@(\S+) +(\S+) .*(GHSA-\d)/gm)]
    expect(rows.map(([, name, version, id]) => [name === version, `${id} pkg:npm/lodash@${version}`]).sort()).toEqual(
      affected.map((one) => [true, one]),
    )

    const report = JSON.parse((await ask('match', of, '--format', 'cyclonedx')).out) as Report
    const byRef = new Map(report.components.map((one) => [one['bom-ref'], one]))
    expect([byRef.size, report.components.length]).toEqual([2, 2])
    const named = report.vulnerabilities.flatMap(({ id, affects }) =>
      affects.map(({ ref, versions }) => {
        const { name, purl } = byRef.get(ref) ?? {}
        expect(purl).toBe(`pkg:npm/${name}`)
        expect(versions).toEqual([{ version: purl?.split('@')[1], status: 'affected' }])
        return `${id} ${purl}`
      }),
    )
    expect(named.sort()).toEqual(affected)

    const { runs } = JSON.parse((await ask('match', of, '--format', 'sarif')).out) as Sarif
    const results = runs[0]?.results ?? []
    const places = results.map(
      ({ ruleId, locations }) => `${ruleId} ${locations[0]?.logicalLocations[0]?.fullyQualifiedName}`,
    )
    expect(places.sort()).toEqual(affected)
    expect(new Set(results.map(({ partialFingerprints }) => partialFingerprints['patchmirror/v1'])).size).toBe(4)
  })

  test('lists apart what mirrored VEX rules out, and does not fail for it', async () => {
    const { product, document, vulnerability } = ruledOut
    const of = file('vex.json', { bomFormat: 'CycloneDX', specVersion: '1.6', components: [component('d', product)] })
    const { code, out } = await ask('match', of, '--fail-on', 'any')
    expect(code).toBe(0)
    expect(out).toMatch(/no findings; 1 ruled out by VEX\n\nRuled out by VEX:\n/)
    expect(out).toMatch(new RegExp(`^not affected +d +\\S+ +VEX-1 +\\S+ +${document.slice(0, 12)} +-$`, 'm'))
    expect(out).toMatch(/^vex: \d+ documents, snapshot [\da-f]{12}, as of 20/m)
    expect(out).toMatch(/^patches: 9 in the list$/m)
    expect(await json('match', of)).toMatchObject({
      counts: { findings: 0, suppressed: 1 },
      findings: [],
      suppressed: [{ id: 'VEX-1', vex: { status: 'not_affected', product, document, vulnerability } }],
      vex: { notApplied: null, unread: 0 },
    })
    const odd = await ask('match', of, '--no-vex', '--fail-on', 'high')
    expect([odd.code, odd.out]).toEqual([
      1,
      expect.stringMatching(/^critical 9\.8 \(word: low\) +d [^]*^of 1 finding the record's word and its CVSS score/m),
    ])
    expect(await ask('match', of, '--no-vex', '--fail-on', 'any')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^vex: not applied: --no-vex was given$/m) as string,
    })
  })

  longTest('exits with 1 only for findings of the kind of --fail-on', async () => {
    const fail = async (kind: string, of = sbom) => (await ask('match', of, '--fail-on', kind)).code
    expect([await fail('any'), await fail('fixable'), await fail('critical')]).toEqual([1, 1, 3])
    const none = file('none.json', { bomFormat: 'CycloneDX', specVersion: '1.5', components: [] })
    const unread = file('unread.json', { bomFormat: 'CycloneDX', specVersion: '1.5', components: [component('file')] })
    const odd = [component('a', 'pkg:npm/lodahs@4.17.20'), component('b', 'pkg:npm/lodash@workspace:1')]
    const misspelt = file('misspelt.json', { bomFormat: 'CycloneDX', specVersion: '1.5', components: odd })
    for (const [of, why] of [
      [misspelt, 'no package of the SBOM was wholly compared with any record'],
      [none, 'has no components'],
      [unread, 'has no component that could be judged'],
    ] as const) {
      expect(await ask('match', of, '--fail-on', 'any')).toMatchObject({
        code: 3,
        err: expect.stringContaining(why) as string,
      })
      expect(await ask('match', of)).toMatchObject({ code: 0, out: expect.stringContaining(why) as string })
      for (const form of [['--json'], ['--format', 'sarif'], ['--format', 'cyclonedx']])
        expect((await ask('match', of, ...form)).out).toContain(why)
    }
    const clean = file('clean.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('fixed', 'pkg:npm/lodash@4.17.21')],
    })
    expect(await fail('any', clean)).toBe(0)
    expect(await ask('match', sbom, '--fail-on', 'high')).toMatchObject({
      err: expect.stringMatching(
        /--fail-on high, but that is not certain: the records of 2 findings state no severity/,
      ) as string,
    })
  })

  test('exits with 1 for packages that are not judged with --fail-on unjudged, with 3 for other kinds, and says how many are not', async () => {
    const odd = file('odd.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [
        component('fixed', 'pkg:npm/lodash@4.17.21'),
        component('old', 'pkg:npm/lodash@workspace:1'),
        component('none'),
      ],
    })
    const share = /2 of 3 packages were not judged, or not completely/
    expect(await ask('match', odd, '--fail-on', 'unjudged')).toMatchObject({
      code: 1,
      err: expect.stringMatching(share) as string,
    })
    expect(await ask('match', odd, '--fail-on', 'any')).toMatchObject({
      code: 3,
      err: expect.stringMatching(/not certain: 2 of 3 packages were not judged, or not completely/) as string,
    })
    const byCpe = { ...component('curl'), cpe: 'cpe:2.3:a:haxx:curl:8.1:*:*:*:*:*:*:*' }
    const known = file('cpe.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('fixed', 'pkg:npm/lodash@4.17.21'), byCpe],
    })
    for (const kind of ['any', 'fixable', 'high', 'critical'])
      expect(await ask('match', known, '--fail-on', kind)).toMatchObject({
        code: 3,
        err: expect.stringContaining('1 of 2 packages was not judged') as string,
      })
    expect(await ask('match', odd)).toMatchObject({ code: 0, err: '' })
    const clean = file('judged.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('fixed', 'pkg:npm/lodash@4.17.21'), { type: 'file', name: 'a.txt' }],
    })
    expect(await ask('match', clean, '--fail-on', 'unjudged')).toMatchObject({ code: 0, err: '' })
  })

  test('takes the release of packages that name none from --distro, and refuses one that is not known', async () => {
    const of = file('deb.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('x', 'pkg:deb/debian/x@1.0')],
    })
    const reasons = async (...args: string[]) =>
      ((await json('match', of, ...args)) as unknown as MatchResult).notJudged.map(({ reason }) => reason)
    expect(await reasons('--distro', 'buster')).toEqual([expect.stringMatching(/Debian:10$/)])
    expect(await ask('match', of, '--distro', 'nonesuch-9')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--distro names no release .* nonesuch-9; .*debian-12, bookworm/) as string,
    })
  })

  longTest('says that listed records are missing, and is not certain of an SBOM without findings then', async () => {
    const of = file('missing.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('fixed', 'pkg:npm/lodash@4.17.21')],
    })
    const fail = () => ask('match', of, '--fail-on', 'any')
    expect([(await fail()).code, (await json('match', of))['gaps']]).toEqual([0, []])
    const store = openFilledStore(dir)
    onTestFinished(() => {
      store.damage("DELETE FROM osv_missing; UPDATE snapshot SET whole = 1 WHERE source = 'osv'")
      store.damage('DELETE FROM run WHERE id = (SELECT max(id) FROM run)')
      store.close()
    })
    store.damage("UPDATE snapshot SET whole = 0 WHERE source = 'osv'")
    expect((await fail()).out).toMatch(
      /^osv: .*; partial: some listed records are missing or outdated, it is not known how many/m,
    )
    store.damage("INSERT INTO osv_missing (id) VALUES ('LOST-1'), ('OLD-1')")
    const { snapshot } = (await json('match', of)) as unknown as MatchResult
    const facts = { lacking: 2, unusableEntries: 1 }
    store.addRun('osv', 1, { state: 'partial', snapshot: snapshot.id, endedAt: 2, facts })
    const why = 'partial: 3 listed records are missing or outdated'
    expect(await fail()).toMatchObject({
      code: 3,
      out: expect.stringMatching(new RegExp(`^osv: snapshot .*; ${why}$`, 'm')) as string,
      err: expect.stringContaining(
        `nothing found is of the kind of --fail-on any, but that is not certain: ${why}`,
      ) as string,
    })
    expect(await ask('match', of)).toMatchObject({ code: 0, out: expect.stringContaining(why) as string })
    expect((await ask('match', sbom, '--fail-on', 'any')).code).toBe(1)
    const gaps = [{ code: 'records', reason: why }]
    expect(await json('match', of)).toMatchObject({ gaps, snapshot: { partial: true, missing: 3 } })
    for (const format of ['cyclonedx', 'sarif']) expect((await ask('match', of, '--format', format)).out).toContain(why)
    for (const args of [['changes', '--since', '1'], ['show', 'GHSA-1'], ['status']])
      expect((await ask(...args)).out).toMatch(new RegExp(`^osv: .*${why}$`, 'm'))
  })

  test('is not certain of what VEX rules out while documents are missing, nor of fixes while patches are', async () => {
    const { product } = ruledOut
    const of = file('vex.json', { bomFormat: 'CycloneDX', specVersion: '1.6', components: [component('d', product)] })
    const store = openFilledStore(dir)
    onTestFinished(() => {
      store.damage("DELETE FROM catalog_lacking WHERE path IN ('/v1/tags/x/vex', '/v1/patches')")
      store.close()
    })
    store.damage(
      `INSERT INTO catalog_lacking (path, resource, reason) VALUES ('/v1/tags/x/vex', 'tags', '500'), ('/v1/patches', 'lists', 'no answer')`,
    )
    const said = await ask('match', of, '--fail-on', 'any')
    expect(said).toMatchObject({
      code: 3,
      err: expect.stringContaining('1 document of VEX is missing or outdated') as string,
    })
    expect(said.out).toMatch(/^vex: .*; partial: 1 document of VEX is missing or outdated$/m)
    expect(said.out).toMatch(/^patches: 9 in the list; partial: .*: no answer$/m)
    // Nothing is ruled out of what has findings, or has none: only a fix may be known that is not listed here.
    expect((await ask('match', of, '--no-vex', '--fail-on', 'any')).code).toBe(1)
    expect((await ask('match', of, '--no-vex', '--fail-on', 'fixable')).code).toBe(3)
  })

  test('is not certain of anything while the records are dated later than the clock', async () => {
    const of = file('late.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      components: [component('fixed', 'pkg:npm/lodash@4.17.21')],
    })
    const store = openFilledStore(dir)
    onTestFinished(() => store.close())
    const date = (at: number) => {
      store.damage(`UPDATE snapshot SET as_of = ${at} WHERE source = 'osv'`)
    }
    onTestFinished(() => date(FILLED_AT))
    date(Date.now() + 400 * DAY_MS)
    const { code, out, err } = await ask('match', of, '--fail-on', 'any')
    const why = "later than this machine's clock"
    expect([code, err]).toEqual([3, expect.stringContaining(why)])
    expect(out).toMatch(new RegExp(`^osv: snapshot .*, as of [^,]*; ${why}`, 'm'))
    expect(await json('match', of)).toMatchObject({ snapshot: { ageSeconds: null }, gaps: [{ code: 'age' }] })
  })

  test('prints one headline, whatever the name of the SBOM', async () => {
    const name = 'app: 1 packages\n\n::error::x\u001b[2J'
    const forged = file('forged.json', {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      metadata: { component: { name } },
      components: [],
    })
    const { out } = await ask('match', forged)
    expect(out).toMatch(
      /^CycloneDX 1\.5, app: 1 packages ::error::x \[2J: 0 packages, none judged\n\nthe SBOM has no components: .*\n\nosv: /,
    )
  })

  longTest('exits with 2 for what is no SBOM or no option, and with 3 where the index is missing', async () => {
    const wrong: [string[], RegExp][] = [
      [[join(folder, 'none')], /there is no such file/],
      [[folder], /cannot be read/],
      [['/dev/zero'], /the SBOM cannot be read: it is larger than 64 MiB/],
      [[file('bom.xml', '<bom/>')], /the SBOM cannot be read: it is XML/],
      [[sbom, '--fail-on', 'huge'], /--fail-on takes one of any, fixable, high, critical, unjudged, not huge/],
      [[sbom, '--format', 'constructor'], /--format takes one of table, json, cyclonedx, sarif, not constructor/],
      [[sbom, '--format', 'table', '--json'], /exclude each other/],
    ]
    for (const [args, err] of wrong)
      expect(await ask('match', ...args)).toMatchObject({ code: 2, err: expect.stringMatching(err) as string })
    const off = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_VIEWS_SERVE: 'vex' }
    expect(await run(['match', sbom], off, '/')).toMatchObject({
      code: 3,
      err: expect.stringContaining('views.serve has neither bucket nor query') as string,
    })
  })
})

test.each([
  ['search', 'CVE-2026-1'],
  ['show', 'CVE-2026-1'],
  ['list', 'records', '--ecosystem', 'npm'],
])('"patchmirror %s %s" builds the index of packages where no daemon has built it', async (...args) => {
  const own = mkdtempSync(join(tmpdir(), 'patchmirror-unbuilt-'))
  onTestFinished(() => rmSync(own, { recursive: true, force: true }))
  const store = openFilledStore(own)
  store.publishOsv(RECORDS)
  store.close()
  const env = { PATCHMIRROR_DATA_DIR: own }
  const first = await run(args, env, '/')
  expect([first.code, first.err]).toEqual([0, expect.stringContaining('building the index')])
  expect(first.out).toContain('GHSA-1')
  expect(await run(args, env, '/')).toMatchObject({ code: 0, err: '', out: first.out })
})

longTest(
  'an index of packages of an earlier snapshot is built again, or beside a daemon, which does that, named',
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'patchmirror-index-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true }))
    const ranges = [{ type: 'SEMVER', events: [{ introduced: '0' }] }]
    const publish = (...names: string[]): void => {
      const store = openFilledStore(home)
      const affected = (name: string) => [{ package: { ecosystem: 'npm', name }, ranges }]
      const of = (name: string) => JSON.stringify({ id: `P-${name}`, affected: affected(name) })
      store.publishOsv(Object.fromEntries(names.map((name) => [`P-${name}`, of(name)])))
      store.close()
    }
    const ask = (...args: string[]) =>
      run(args, { PATCHMIRROR_DATA_DIR: home, PATCHMIRROR_SERVER_STALE_ACTION: 'serve' }, '/')
    publish('one')
    expect(await ask('search', 'two')).toMatchObject({ code: 1 })
    publish('one', 'two')
    const daemon = acquireLock(home, 'serve')
    onTestFinished(() => daemon.release())
    for (const command of ['search', 'show']) {
      const { code, err } = await ask(command, 'two')
      expect([code, err]).toEqual([3, expect.stringContaining('those of the earlier snapshot')])
    }
    const listed = await ask('list', 'records', '--ecosystem', 'npm', '--csv')
    expect([listed.code, listed.err]).toEqual([0, expect.stringContaining('those of the earlier snapshot')])
    daemon.release()
    const found = await ask('search', 'two')
    expect([found.code, found.err]).toEqual([0, expect.stringContaining('no daemon runs that builds it')])
    expect((await ask('list', 'records', '--ecosystem', 'npm', '--csv')).out).toContain('P-two')
    publish('one', 'two', 'three')
    const bom = join(home, 'bom.json')
    const purl = 'pkg:npm/three@1.0.0'
    writeFileSync(
      bom,
      JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components: [{ name: 'three', purl }] }),
    )
    expect((await ask('match', bom, '--json')).out).toContain('P-three')
  },
)

/** The repository of a mirrored tag. */
async function aRepository(): Promise<string> {
  const [, first = ''] = (await ask('list', 'tags', '--limit', '1', '--csv')).out.split('\n')
  return first.split(':')[0] ?? ''
}

describe('a list', () => {
  test('of tags or patches is read page by page with the filters of the API', async () => {
    const first = (await json('list', 'patches', '--limit', '5')) as { patches: unknown[]; next: string }
    expect(first.patches).toHaveLength(5)
    expect((await ask('list', 'patches', '--limit', '5')).out).toContain(`5 of 9; the next page`)
    const second = await json('list', 'patches', '--limit', '5', '--after', first.next)
    expect(second).toMatchObject({ next: null, total: 9 })
    const open = (await json('list', 'patches', '--status', 'open,done')) as {
      patches: { ticket_status: string }[]
    }
    expect(open.patches.filter(({ ticket_status }) => !/^(open|done)$/.test(ticket_status))).toEqual([])
    expect(await ask('list', 'patches', '--severity', 'huge')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--severity: unknown "huge"; it is one of: critical, high, medium, low') as string,
    })
    expect(await json('list', 'tags', 'no/such/image')).toMatchObject({ found: false, reason: 'not_found' })
  })

  test('of the tags of an image takes the names that the search takes, and no single tag', async () => {
    const { items } = (await json('search', await aRepository())) as { items: { repository: string; name: string }[] }
    const [{ repository, name } = { repository: '', name: '' }] = items
    const own = await json('list', 'tags', repository)
    expect(own).toMatchObject({ found: true })
    const { tags } = own as { tags: unknown[] }
    expect(tags.length).toBeGreaterThan(0)
    const purl = `pkg:oci/${repository.split('/').at(-1)}?repository_url=registry.test/${repository}`
    for (const one of [`registry.test/${repository}`, purl])
      expect(await json('list', 'tags', one)).toMatchObject({ found: true, tags })
    expect(await json('list', 'tags', `${repository}:${name}`)).toMatchObject({ found: false, reason: 'not_found' })
  })

  test('as JSON has every number with all its digits', async () => {
    expect(String(Number(reference))).not.toBe(reference)
    expect((await ask('list', 'patches', '--json')).out).toMatch(new RegExp(`: ?${reference}\\b`))
  })
})

test('a name of several tags says so first, and is not called unknown', async () => {
  const { tags } = (await json('list', 'tags')) as { tags: { image: { repository: string } }[] }
  const names = tags.map(({ image }) => image.repository)
  const [several = ''] = names.filter((name, at) => names.indexOf(name) !== at)
  for (const args of [['vex'], ['changes', '--tag']])
    expect(await ask(...args, several)).toMatchObject({
      code: 1,
      err: expect.stringMatching(new RegExp(`^patchmirror: several tags are named ${several}: `)) as string,
    })
})

test.each([
  [['changes', '2999-01-01'], '--since is in the future: 2999-01-01'],
  [
    ['changes', '--purl', 'npm/express'],
    '"npm/express" is no package URL: write pkg:TYPE/NAME, such as pkg:npm/express',
  ],
  [['list', 'tags', '--after', 'garbage'], '--after is not a cursor of this mirror'],
  [['search', ' '], 'a search takes 1 to 1000 characters, not 0'],
])('%j is refused by the words of the command line: %s', async (args, words) => {
  expect(await ask(...args)).toMatchObject({ code: 2, err: expect.stringContaining(words) as string })
})

describe('since', () => {
  const AT = '2026-07-01T00:00:00.000Z'
  const SHOWN = '2026-07-01 00:00:00Z'

  test('lists the records first seen last, also removed ones', async () => {
    const { code, out } = await ask('list', 'records')
    expect(code).toBe(0)
    expect(out).toMatch(new RegExp(`^GHSA-1 +${SHOWN} +${SHOWN} +present$`, 'm'))
    expect(out).toMatch(new RegExp(`^GONE-1 +${SHOWN} +no fix named yet +removed$`, 'm'))
    const few = await ask('list', 'records', '--limit', '1')
    expect(few.out).toContain('the newest 1 of 4 records; --csv and --json print all\n\nosv: ')
  })

  longTest('exports all of them as CSV and JSON, or those of an ecosystem', async () => {
    const { out } = await ask('list', 'records', '--csv')
    expect(out.trimEnd().split('\n')).toEqual([
      'id,state,first_seen,first_seen_exact,fix_seen,fix_seen_exact,changed,changed_exact,removed,returned,upstream_published,upstream_modified',
      ...['GHSA-1', 'GHSA-2'].map((id) => `${id},present,${AT},true,${AT},true,${AT},true,,,,2026-06-01T00:00:00Z`),
      `GONE-1,removed,${AT},true,,,${AT},true,${AT},,,`,
      `VEX-1,present,${AT},true,,,${AT},true,,,,2026-06-01T00:00:00Z`,
    ])
    const records = async (...args: string[]) =>
      (await json('list', 'records', ...args))['records'] as { id: string; upstream: unknown }[]
    const listed = await records()
    expect(listed.map(({ id }) => id)).toEqual(['GHSA-1', 'GHSA-2', 'GONE-1', 'VEX-1'])
    expect(listed[0]?.upstream).toMatchObject({ published: null, modified: '2026-06-01T00:00:00Z' })
    expect(await records('--ecosystem', 'npm')).toHaveLength(2)
    expect(await records('--limit', '3')).toHaveLength(3)
    expect(await json('list', 'records')).toMatchObject({ found: true, sources: [{ name: 'osv' }] })
    expect((await ask('list', 'records', '--csv', '--ecosystem', 'PyPI')).out.split('\n')).toHaveLength(2)
    for (const [name, message] of [
      ['nope', 'the ecosystem nope is none that'],
      ['NPM', 'the ecosystem NPM is none that the OSV schema defines: it is written npm\n'],
      ['debian:12', 'is none that the OSV schema defines: it is written Debian:12\n'],
      ['Debiann', 'is none that the OSV schema defines, such as npm, PyPI or Debian:12\n'],
      ['Foo:npm', 'the ecosystem Foo: is none that'],
      [':npm', 'the ecosystem : is none that'],
      ['Debian:12', 'no list of Debian:12 alone: use --ecosystem Debian\n'],
      ['Root:npm', 'no list of Root:npm alone: use --ecosystem npm\n'],
      ['Root:npm:1', 'use --ecosystem npm\n'],
      ['Root:Maven', 'use --ecosystem Root\n'], // there is no record of Maven
    ] as const)
      expect(await ask('list', 'records', '--ecosystem', name)).toMatchObject({
        code: 2,
        out: '',
        err: expect.stringContaining(message) as string,
      })
    const whole = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_VIEWS_SERVE: 'bucket,query,vex,findings' } // no view npm has what a vendor patched
    const ofVendor = await run(['list', 'records', '--ecosystem', 'Root:npm'], whole, '/')
    expect([ofVendor.code, ofVendor.err]).toEqual([2, expect.stringContaining('use --ecosystem Root\n')])
    expect((await ask('list', 'records', '--ecosystem', 'Root')).code).toBe(0)
    const none = await ask('list', 'records', '--package', 'none')
    expect([none.code, none.out]).toEqual([0, expect.stringMatching(/^no record fits; .* are compared as a whole/)])
    expect(none.out).toContain('removed records are in no index and have no severity')
    const bySeverity = await json('list', 'records', '--severity', 'critical')
    expect(bySeverity['incomplete']).toMatch(/removed records are in no index.*no severity of them is known: 2 records/)
    expect(await json('list', 'records')).toMatchObject({ incomplete: null })
    const removed = await ask('list', 'records', '--status', 'removed', '--package', 'lodash')
    expect([removed.code, removed.err]).toEqual([
      2,
      expect.stringContaining('--status removed goes with --since alone'),
    ])
    expect(await ask('list', 'records', '--csv', '--json')).toMatchObject({ code: 2 })
  })
})

test.each([
  [['--cve', 'CVE-2026-1'], ['GHSA-1']],
  [
    ['--cve', 'cve-2026-2'],
    ['GHSA-1', 'GHSA-2'],
  ],
  [
    ['--cve', 'CVE-2026-2', '--package', 'other-1'],
    ['GHSA-1', 'GHSA-2'],
  ],
  [['--cve', 'CVE-2026-2', '--ecosystem', 'Debian'], []],
  [
    ['--package', 'lodash'],
    ['GHSA-1', 'GHSA-2'],
  ],
  [['--package', 'none'], []],
  [['--severity', 'critical,high'], ['VEX-1']],
  [['--severity', 'low'], []],
  [['--status', 'removed'], ['GONE-1']],
  [['--status', 'present', '--cve', 'CVE-2026-1'], ['GHSA-1']],
  [
    ['--since', '2026-07-01'],
    ['GHSA-1', 'GHSA-2', 'GONE-1', 'VEX-1'],
  ],
  [['--since', '2026-07-02'], []],
])('list records %j is %j', async (args, ids) => {
  const { records } = (await json('list', 'records', ...args)) as { records: { id: string }[] }
  expect(records.map(({ id }) => id)).toEqual(ids)
})

test.each([
  [['--severity', 'huge'], '--severity takes critical, high, medium, low, none, not huge'],
  [['--status', 'gone'], '--status takes present or removed, not gone'],
  [['--since', '30'], '(30d?)'],
  [['--since', '2999-01-01'], 'is in the future'],
])('list records %j is exit 2, and nothing is printed', async (args, said) => {
  const asked = await ask('list', 'records', '--csv', ...args)
  expect([asked.code, asked.out, asked.err]).toEqual([2, '', expect.stringContaining(said)])
})

test.each([
  [['list', 'patches', '--limit', '2'], 'CVE,source_package,ecosystem,severity,ticket,patch,updated', 2],
  [['list', 'tags', '--limit', '2'], 'tag,digest,updated,id', 2],
  [['changes', '--since', '2026-01-01'], 'change,name,what,when,last_in_snapshot', 1],
])('%j prints its rows as CSV, with all that is to be known of them beside it', async (args, head, rows) => {
  const { code, out, err } = await ask(...args, '--csv')
  const lines = out.trimEnd().split('\n')
  expect([code, lines[0], lines.length]).toEqual([0, head, rows + 1])
  expect(err).toMatch(args.includes('--limit') ? /--after/ : /older than sync.maxAgeHours/)
  expect(await ask(...args, '--csv', '--json')).toMatchObject({ code: 2, out: '' })
})

test('show lists the records that name a CVE where there are several', async () => {
  const { code, out } = await ask('show', 'CVE-2026-2')
  expect(code).toBe(0)
  for (const id of ['GHSA-1', 'GHSA-2']) expect(out).toMatch(new RegExp(`^${id} .*other id`, 'm'))
})

longTest(
  'what is not there is exit 1, and what this mirror cannot know is exit 3, with different reasons',
  async () => {
    const gone = await ask('show', 'GONE-1')
    expect(gone).toMatchObject({ code: 1, err: expect.stringContaining('upstream removed') as string })
    const removed = 'removed 2026-07-01 00:00:00Z'
    const seen = 'first seen here 2026-07-01 00:00:00Z'
    expect(gone.err).toContain(`the record GONE-1: ${removed}, ${seen}`)
    expect(await ask('show', 'NONE-1')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^patchmirror: not found: /) as string,
    })
    expect(await ask('search', 'none')).toMatchObject({ code: 1 })
    const empty = { PATCHMIRROR_DATA_DIR: join(scratch(), 'data') }
    const bom = join(scratch(), 'bom.json')
    writeFileSync(bom, '{"bomFormat":"CycloneDX","specVersion":"1.6"}')
    for (const args of [
      ['search', 'x'],
      ['show', 'x'],
      ['list', 'tags'],
      ['list', 'patches'],
      ['match', bom],
    ]) {
      const { code, err } = await run(args, empty, '/')
      expect([args, code, err]).toEqual([args, 3, expect.stringMatching(/^patchmirror: no snapshot yet: /)])
    }
    expect((await run(['changes'], empty, '/')).code).toBe(3)
    expect((await run(['list', 'records'], empty, '/')).code).toBe(3)
    const old = {
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=1',
      PATCHMIRROR_SERVER_STALE_ACTION: 'osv=refuse',
    }
    for (const args of [
      ['show', 'GHSA-1'],
      ['match', bom],
    ]) {
      const refused = await run([...args, '--json'], old, '/')
      expect([refused.code, JSON.parse(refused.out)]).toMatchObject([3, { reason: 'stale' }])
    }
    const why = 'older than sync.maxAgeHours (1); shown although staleAction is refuse, since these are dates alone\n'
    const listed = await run(['list', 'records'], old, '/')
    const exported = await run(['list', 'records', '--csv'], old, '/')
    expect([listed.code, listed.out.includes('GHSA-1'), listed.out.endsWith(why)]).toEqual([0, true, true])
    expect([exported.code, exported.out.split('\n')[0], exported.err.endsWith(why)]).toEqual([
      0,
      expect.stringMatching(/^id,/),
      true,
    ])
  },
)

/** Changes the store by SQL until the test ends. */
function change(sql: string, back: string): void {
  const set = (one: string): void => {
    const store = openFilledStore(dir)
    store.damage(one)
    store.close()
  }
  set(sql)
  onTestFinished(() => set(back))
}

test('what a mirror with a scope has no record of is exit 3, with the scope: it cannot know', async () => {
  const set = (scope: string): string => `UPDATE snapshot SET scope = ${scope} WHERE source = 'osv'`
  const scope = JSON.stringify({ include: ['Root:npm'], exclude: [], vendors: ['Root'] })
  change(set(`'${scope}'`), set('NULL'))
  for (const args of [
    ['changes', '--since', '1', '--purl', 'pkg:pypi/none'],
    ['list', 'records', '--cve', 'CVE-2026-999', '--csv'],
    ['list', 'records', '--package', 'none'],
  ]) {
    const { code, out, err } = await ask(...args)
    expect([args, code, out, err]).toEqual([args, 3, '', expect.stringContaining('outside of osv.scope')])
  }
  expect((await ask('list', 'records', '--cve', 'CVE-2026-1')).out).toContain('GHSA-1')
})

test('a record that was removed is not shown as removed where it is listed again and could not be stored', async () => {
  const missing = `UPDATE snapshot SET whole = 0 WHERE source = 'osv'; INSERT INTO osv_missing (id) VALUES ('GONE-1')`
  change(missing, `UPDATE snapshot SET whole = 1 WHERE source = 'osv'; DELETE FROM osv_missing`)
  const { code, err } = await ask('show', 'GONE-1')
  expect([code, err]).toEqual([3, expect.stringMatching(/^patchmirror: not mirrored yet: GONE-1: /)])
  const exported = await ask('export-db', 'osv-scanner', join(scratch(), 'db'), '--json')
  expect([exported.code, exported.err]).toEqual([
    0,
    expect.stringContaining('partial: some listed records are missing'),
  ])
})

test.each([
  ['is cut', "SET frame = json_set(frame, '$.partial', 'PART')", "SET frame = json_remove(frame, '$.partial')", 'PART'],
  ['is not stored', "SET path = '/v1/-'", "SET path = '/v1/tags'", '/v1/tags is not stored'],
])('that no tag has a name is not said where the list of tags %s', async (_, sql, back, why) => {
  change(
    `UPDATE catalog_list ${sql} WHERE path = '/v1/tags'`,
    `UPDATE catalog_list ${back} WHERE path IN ('/v1/tags', '/v1/-')`,
  )
  for (const command of ['show', 'search']) {
    const { code, err } = await ask(command, 'no-such:1.0')
    expect([command, code, err]).toEqual([command, 3, expect.stringContaining(`is not known to be complete (${why}`)])
    expect(await ask(command, 'CVE-1999-1')).toMatchObject({ code: 1 }) // no image is called so
  }
  const { code, err } = await ask('changes', '--since', '1', '--tag', 'no-such:1.0')
  expect([code, err]).toEqual([3, expect.stringContaining(why)])
})

test('a removed record is shown with the date that came with its bundle, not with that of the import', async () => {
  const by = (more: string): string => `UPDATE osv_tombstone SET removed_at = removed_at ${more} WHERE id = 'GONE-1'`
  change(by('+ 5000'), by('- 5000'))
  expect((await ask('show', 'GONE-1')).err).toContain('removed 2026-07-01 00:00:00Z')
})

longTest(
  'a lookup says that its data is older than the settings allow, and that a newer state is quarantined, or rejected',
  async () => {
    const endOfRun = {
      state: 'complete',
      code: null,
      message: null,
      facts: {},
      endedAt: 1,
      asOf: null,
      snapshot: null,
    } as const
    const bom = join(dir, 'quarantined.json')
    writeFileSync(bom, JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components: [] }))
    const lookups = [
      ['show', 'GHSA-1'],
      ['changes', '--since', '1'],
      ['match', bom],
    ]
    const marksOf = async (env: Record<string, string>): Promise<string[]> => {
      const said: string[] = []
      for (const args of lookups) said.push((await run(args, { PATCHMIRROR_DATA_DIR: dir, ...env }, '/')).out)
      return said.map((out) => /^osv: snapshot .*, as of [^,;]+, [^,;]+ old(.*)$/m.exec(out)?.[1] ?? 'no line')
    }
    const young = { PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=87600' }
    const old = '; older than sync.maxAgeHours (26)'
    const waiting = '; a newer state is quarantined: "patchmirror approve" or "reject" decides'
    expect(await marksOf({})).toEqual([old, old, old])
    expect(await marksOf(young)).toEqual(['', '', ''])
    const store = openWrites(dir)
    const runId = store.runs.startRun({ source: 'osv', kind: 'sync', trigger: 'command', startedAt: 1 })
    const none = Buffer.alloc(0)
    const refused = {
      source: 'osv',
      path: 'osv',
      reason: 'too much',
      sha256: none,
      body: none,
      etag: null,
      lastModified: null,
      asOf: 1,
    } as const
    try {
      store.quarantine.keepQuarantine({ ...refused, runId })
      expect(await marksOf({})).toEqual(lookups.map(() => old + waiting))
      expect(await marksOf(young)).toEqual(lookups.map(() => waiting))
      expect((await ask('show', 'NONE-1')).err).toContain(old + waiting)
      store.runs.endRun(runId, { ...endOfRun, state: 'quarantined' })
      store.quarantine.decideQuarantine(runId, 'rejected', 1)
      const rejected = `; a newer state is rejected (run ${runId}): nothing newer is published until upstream corrects it`
      const more = ', or the settings of its scope change'
      expect(await marksOf(young)).toEqual(lookups.map(() => rejected + more))
      expect((await ask('export-db', 'osv-scanner', join(scratch(), 'db'))).err).toContain(rejected.slice(2))
    } finally {
      store.quarantine.decideQuarantine(runId, 'rejected', 1)
      const after = store.runs.startRun({ source: 'osv', kind: 'sync', trigger: 'command', startedAt: 2 })
      store.runs.endRun(after, endOfRun)
      store.close()
    }
  },
)

describe('changes', () => {
  test('says in words what changed since a snapshot or a time, and names the time', async () => {
    const found = await ask('changes', '--since', '1')
    expect([found.code, found.out]).toEqual([
      0,
      expect.stringMatching(
        /^changes since snapshot [0-9a-f]{12}, to .*\n\n2026-07-01 00:00:00Z {2}GONE-1\n {2}record removed\n/,
      ),
    ])
    expect(await json('changes', '--since', '1')).toMatchObject({
      since: null,
      changes: [{ id: 'GONE-1', change: 'removed', differences: [{ kind: 'record_removed' }] }],
    })
    const hex = await ask('changes', '--since', '1', '--ecosystem', 'Hex')
    expect([hex.code, hex.err]).toEqual([3, expect.stringMatching(/what changed about Hex is not known/)])
    const unknown = await ask('changes', '--since', '1', '--purl', 'pkg:npm/lodas')
    expect([unknown.code, unknown.out, unknown.err]).toEqual([
      3,
      '',
      expect.stringMatching(/pkg:npm\/lodas is not known/),
    ])
    const none = await ask('changes', '--since', '2026-07-01T02:00:00+02:00', '--purl', 'pkg:npm/lodash')
    expect(none.out).toContain('changes since 2026-07-01 00:00:00Z, to')
    expect(none.out).toContain('nothing changed')
  })

  test('takes the packages of an SBOM, or of the mirrored SBOM of a tag', async () => {
    const bom = join(dir, 'bom.json')
    const listing = (...purls: (string | undefined)[]): void =>
      writeFileSync(
        bom,
        JSON.stringify({
          bomFormat: 'CycloneDX',
          specVersion: '1.6',
          components: purls.map((purl) => ({ name: 'x', purl })),
        }),
      )
    listing('pkg:npm/lodash@1.0.0', 'pkg:npm/none@1', 'pkg:docker/x@1', 'no purl', undefined)
    const found = await ask('changes', '--since', '1', '--sbom', bom)
    expect(found.out).toMatch(
      /of the 2 packages in the SBOM of \S+bom\.json, .*; without a purl of an ecosystem that OSV records name: 3\n\n.{20} {2}GONE-1\n/,
    )
    listing('pkg:npm/none@1')
    expect(await json('changes', '--since', '1', '--sbom', bom)).toMatchObject({
      changes: [],
      packages: { packages: 1, unknown: 0 },
    })
    writeFileSync(bom, 'no SBOM')
    expect((await ask('changes', '--sbom', bom)).code).toBe(2)
    listing('pkg:docker/x@1')
    const unknown = await ask('changes', '--sbom', bom)
    expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining('lists no package')])

    const { tags } = (await json('list', 'tags')) as { tags: { id: string; digest: string }[] }
    const [tag = { id: '', digest: '' }] = tags
    for (const name of [tag.id, tag.digest.slice(0, 19)])
      expect(await json('changes', '--since', '1', '--tag', name)).toMatchObject({ changes: [], notJudged: 0 })
    for (const [args, message] of [
      [['--tag', 'none'], /no mirrored tag/],
      [['--tag', tag.id, '--sbom', bom], /exclude each other/],
    ] as const)
      expect((await ask('changes', ...args)).err).toMatch(message)
  })

  test('says where the log does not reach back, and which times it accepts', async () => {
    const young = await ask('changes', '--since', '2020-01-01')
    expect(young).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^changes since 2020-01-01 .*\nthis mirror was first filled with osv on 2026-.*Z: before that nothing was stored/,
      ) as string,
    })
    const begun = await ask('changes', '--since', '2026-07-01T00:00:00.000Z')
    expect(begun.code).toBe(0)
    expect((await ask('changes', '30')).err).toContain('what changed since 30 (30d?) is not known here')
    expect(await ask('changes', 'someday')).toMatchObject({
      code: 2,
      err: expect.stringContaining('a weekday') as string,
    })
    expect(await ask('changes', '--since', 'abcdef012345')).toMatchObject({
      code: 3,
      err: expect.stringContaining('(data.historyDays); use --since 2026-07-01T00:00:00.000Z') as string,
    })
    expect(await ask('changes', '--since', '9999-01-01')).toMatchObject({ code: 2 })
  })
})
