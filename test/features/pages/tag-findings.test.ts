import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { surroundingsOf } from '../../../src/base/identity/surroundings.ts'
import { identityOf } from '../../../src/features/match/judging/components.ts'
import type { MatchFinding } from '../../../src/features/match/judging/finding.ts'
import { isFixable } from '../../../src/features/match/judging/patches.ts'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { type RegistryNote, writeRegistryNote } from '../../../src/store/catalog/in-registry.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { affecting, matchSboms, openFindingsBench, sbomOf, vexAbout } from '../findings/fixtures.ts'

const OLD = 'pkg:npm/shared@1.0.0'
const NEW = 'pkg:npm/shared@2.0.0'
const REPOSITORY = 'library/python'
const REGISTRY = 'registry.example/mirror'

/** Tags of one repository, each newer than the one before, with these packages in their SBOMs and VEX that says nothing. */
async function openTags(...sboms: readonly (readonly string[])[]) {
  const bench = await openFindingsBench({ images: 1, tags: 12 })
  const { service } = bench.sandbox
  const all = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  const tags = all.slice(0, sboms.length)
  for (const id of service.ids('tags').filter((one) => !tags.includes(one))) service.remove('tags', id)
  const write = (at: number, kind: 'sbom' | 'vex', content: string): void => {
    const id = tags[at] ?? ''
    service.rotateArtifact('tag', id, kind)
    service.writeArtifact('tag', id, kind, content)
    // Each change moves its date by a second.
    for (let times = 0; times <= 5 * at; times++) service.change('tags', id, { digest: digestOf(at) })
  }
  for (const [at, id] of tags.entries()) {
    service.change('tags', id, { name: `3.${at}` })
    write(at, 'vex', vexAbout('CVE-1999-1', [{ '@id': 'pkg:npm/else@1' }], 'fixed'))
    write(at, 'sbom', sbomOf(`image${at}`, ...(sboms[at] ?? [])))
  }
  /** The name of a tag, and the day of its last change. */
  const named = (at: number) => {
    const day = String(service.read('tags', tags[at] ?? '')['updated_at']).slice(0, 10)
    return { name: `${REPOSITORY}:3.${at}`, day: `of ${day}` }
  }
  const update = async (records: Parameters<typeof bench.publish>[0] = {}) => {
    await bench.crawl()
    await bench.publish(records)
    await bench.judge()
  }
  return { ...bench, service, tags, write, named, update, rowsOf: rowsOf(bench) }
}

const digestOf = (at: number): string => `sha256:${String(at).repeat(64)}`

type Row = Readonly<Record<string, string>>

/** Opens what makes pages of a data folder, for a registry of the settings. */
function openMaker({ dir, config }: Pick<Awaited<ReturnType<typeof openFindingsBench>>, 'dir' | 'config'>) {
  const reads = openShortReads(dir) ?? expect.fail('no database')
  onTestFinished(() => reads.close())
  return (registry: string | null) => {
    const settings = { ...config, images: { ...config.images, registry } }
    const data = { config: settings, version: 'test', style: 's.css', script: 's.js', icon: 'i.svg' }
    return createPageMaker(data, () => reads)
  }
}

/** Makes the page of the findings of a tag, and returns the rows of all of its pages by their columns. */
function rowsOf(bench: Pick<Awaited<ReturnType<typeof openFindingsBench>>, 'dir' | 'config'>) {
  const makerOf = openMaker(bench)
  return (tag: string, registry: string | null = null): Row[] => {
    const make = makerOf(registry)
    const rows: Row[] = []
    for (let query: string | undefined = `id=${tag}`; query !== undefined;) {
      const html = textOf(make, query)
      for (const [, row = ''] of html.matchAll(/<tr role="row">((?:(?!<\/tr>)[^])*<td[^]*?)<\/tr>/g)) {
        const cells = [...row.matchAll(/data-label="([^"]*)">([^]*?)<\/td>/g)]
        rows.push(Object.fromEntries(cells.map(([, name = '', cell = '']) => [name, plainOf(cell)])))
      }
      query = /rel="next" href="[^"?]*\?([^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&')
    }
    return rows
  }
}

function textOf(make: ReturnType<typeof createPageMaker>, query: string): string {
  const now = Date.now() + 60_000 // upstream's dates may be a second ahead
  const asked = { page: 'tag-findings', query, signedIn: true, status: null, now, served: null }
  const { body, status } = make({ ...asked, problem: null, base: '', origin: 'http://localhost' })
  const text = Buffer.from(body).toString()
  expect([query, status, status === 200 ? '' : text]).toEqual([query, 200, ''])
  return text
}

const plainOf = (html: string): string =>
  html
    .replace(/<[^>]+>/g, '')
    .replace(/\s+/g, ' ')
    .trim()

const NOT_JUDGED = ': not judged completely, or not by this record'

/** What the only finding of a tag says of other tags. */
const elsewhere = (rows: readonly Row[]): string => rows.map((one) => one['In other tags']).join('; ')

longTest(
  'the findings of a tag are those of match, with status, severity and fixed versions, page by page',
  async () => {
    const libssl = 'pkg:deb/debian/libssl3@3.0.9-1?arch=amd64&distro=debian-12&upstream=openssl'
    const bench = await openTags([OLD, libssl, 'pkg:npm/clean@1.0.0', 'pkg:npm/first@1.0.0', 'pkg:pypi/Some_Name@1.0'])
    const [tag = ''] = bench.tags
    const many = Array.from({ length: 60 }, (_, at) => [
      `M-${at}`,
      affecting('npm', 'shared', `1.0.${at + 1}`, 'MODERATE'),
    ])
    const records = {
      ...(Object.fromEntries(many) as Record<string, object>),
      'T-1': { ...affecting('npm', 'shared', null, 'CRITICAL'), aliases: ['CVE-2026-77001'] },
      'T-2': affecting('Debian:12', 'openssl', '3.0.11-1'),
      'T-3': affecting('PyPI', 'some-name', '3.0', 'LOW'),
      'T-5': affecting('npm', 'first', '2.0.0', 'LOW'),
      'T-4': { ...affecting('npm', 'shared', '1.5.0'), aliases: ['CVE-2026-77004'] },
    }
    const why = 'vulnerable_code_not_present'
    const vex = JSON.parse(vexAbout('CVE-2026-77004', [{ '@id': OLD }], 'not_affected')) as { statements: object[] }
    const statements = vex.statements.map((one) => ({ ...one, justification: why }))
    bench.write(0, 'vex', JSON.stringify({ ...vex, statements }))
    await bench.update(records)
    const matched = await matchSboms(bench, tag, (sbom, { findings, suppressed }) => {
      const around = surroundingsOf({ systems: sbom.systems, option: null })
      const lineOf = (one: MatchFinding, status: string): string => {
        const facts = { ...one.component, source: one.component.sourcePackage, kind: null }
        const identity = identityOf(facts, around)
        if ('code' in identity) throw new Error(identity.reason)
        const by = one.source === null ? '' : ` by its source package ${one.source}`
        const what = `${identity.name} ${identity.version}${by}`
        return [one.id, what, one.severity.level, status, one.fixed.join(' ') || '–'].join(' | ')
      }
      const open = findings.map((one) => lineOf(one, isFixable(one) ? 'fixable' : 'no fix is known'))
      return [
        ...open,
        ...suppressed.map((one) => lineOf(one, `ruled out by VEX not affected: ${why.replaceAll('_', ' ')}`)),
      ]
    })
    const rows = bench.rowsOf(tag)
    const shown = rows.map((one) =>
      [
        one['Finding']?.replace(/ CVE-.*/, ''),
        ...['Package', 'Severity', 'Status', 'Fixed versions'].map((name) => one[name]),
      ].join(' | '),
    )
    expect(shown.length).toBe(65)
    expect(shown.toSorted()).toEqual(matched.flat().toSorted())
    expect(rows[0]?.['Finding']).toBe('T-1 CVE-2026-77001')
    const severities = rows.slice(0, -1).map((one) => one['Severity'])
    expect([...new Set(severities)]).toEqual(['critical', 'high', 'medium', 'low'])
    expect(severities.slice(-2)).toEqual(['low', 'low'])
    expect(rows.at(-1)?.['Status']).toContain('ruled out by VEX')
    const unknown = rows.map((one) => one['New since']?.replace(/ not before its record, \d{4}-\d\d-\d\d$/, ''))
    expect(new Set(unknown)).toEqual(new Set(['not known']))
    const fitting = (q: string) => bench.rowsOf(`${tag}&q=${q}`).map((one) => one['Finding'])
    expect(fitting('cve-2026-77001')).toEqual(['T-1 CVE-2026-77001'])
    expect(fitting('SHARED')).toHaveLength(62)
    expect(textOf(openMaker(bench)(null), `id=${tag}`)).toContain('1 that no record here is about, in whatever version')
    expect(fitting('openssl')).toEqual(['T-2']) // its package is libssl3
    expect(fitting('none-of-them')).toEqual([])
    const file = textOf(openMaker(bench)(null), `id=${tag}&q=shared&format=json`)
    expect(JSON.parse(file)).toMatchObject({
      complete: true,
      rows: { length: 62, 0: { Finding: 'T-1 (CVE-2026-77001)' } },
    })
    await bench.publish({ 'T-9': affecting('npm', 'shared', null) })
    await bench.judge()
    const later = bench.rowsOf(tag).filter((one) => one['New since']?.startsWith('not known') === false)
    expect(later.map((one) => one['Finding'])).toEqual(['T-9'])
  },
)

longTest(
  'a finding is fixed in the newest other tag that has a fixed version, with what is known of the registry',
  async () => {
    const bench = await openTags([OLD], ['pkg:npm/shared@1.9.0'], [NEW], [OLD])
    const [tag = '', second = ''] = bench.tags
    await bench.update({ 'T-1': affecting('npm', 'shared', '1.5.0') })
    const fixedIn = ({ name, day }: ReturnType<typeof bench.named>): string => `fixed in ${name} ${day}`
    const newest = fixedIn(bench.named(2))
    expect(elsewhere(bench.rowsOf(tag))).toBe(newest)
    const asked = (registry: string | null) => elsewhere(bench.rowsOf(tag, registry))
    const note = (images: RegistryNote['images']) =>
      writeRegistryNote(bench.dir, { registry: REGISTRY, checkedAt: null, incomplete: null, images })
    const nameOf = (at: number): string => `${REPOSITORY}@${digestOf(at)}`
    const at = Date.UTC(2026, 9, 3)
    expect(asked(REGISTRY)).toBe(`${newest}, whether it is in the registry is not known`)
    note({ [nameOf(2)]: { is: 'there', at } })
    expect(asked(REGISTRY)).toBe(`${newest}, which is in the registry here (asked 2026-10-03)`)
    note({ [nameOf(2)]: { is: 'missing', at } })
    expect(asked(REGISTRY)).toBe(`${newest}, which is not in the registry (asked 2026-10-03)`)
    note({ [nameOf(2)]: { is: 'missing', at }, [nameOf(1)]: { is: 'there', at } })
    const other = `${fixedIn(bench.named(1))}, which is in the registry here (asked 2026-10-03)`
    expect(asked(REGISTRY)).toBe(`${newest}, which is not in the registry (asked 2026-10-03) ${other}`)
    expect(asked('other.example/mirror')).toBe(`${newest}, whether it is in the registry is not known`)
    expect(bench.rowsOf(second)).toEqual([])
  },
)

longTest(
  'only where each other tag is judged without a doubt and has a finding, no tag is said to be without it',
  async () => {
    const bench = await openTags([OLD], [OLD], ['pkg:npm/shared@1.2.0'])
    const [tag = '', , last = ''] = bench.tags
    const record = affecting('npm', 'shared', '1.5.0')
    await bench.update({ 'T-1': record })
    expect(elsewhere(bench.rowsOf(tag))).toBe('no mirrored tag of this repository is without it')
    const missing = bench.sandbox.faults.set(`/v1/tags/${last}/sbom`, { kind: 'status', status: 404 })
    bench.write(2, 'sbom', sbomOf('image2', NEW))
    expect((await bench.run('catalog')).state).toBe('partial') // a second run is to find the same
    await bench.update()
    expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 2 other tags${NOT_JUDGED}`)
    missing.clear()
    bench.write(2, 'sbom', sbomOf('image2', 'pkg:npm/shared@not-a-version'))
    await bench.update()
    expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 2 other tags${NOT_JUDGED}`)
    bench.write(2, 'sbom', sbomOf('image2', NEW))
    await bench.crawl()
    expect(elsewhere(bench.rowsOf(tag))).toBe('–') // it is not judged by this catalog yet
    await bench.judge()
    expect(elsewhere(bench.rowsOf(tag))).toContain('fixed in')
    const alias = { ...affecting('npm', 'shared', null), aliases: ['CVE-2026-77001'] }
    await bench.update({ 'T-1': { ...record, aliases: ['CVE-2026-77001'] }, 'T-2': alias })
    expect(elsewhere(bench.rowsOf(tag))).not.toContain('fixed in')
  },
)

longTest('an SBOM of an earlier state of a tag says nothing of what the tag is now', async () => {
  const bench = await openTags([OLD], [NEW])
  const [tag = '', other = ''] = bench.tags
  await bench.update({ 'T-1': affecting('npm', 'shared', '1.5.0') })
  expect(elsewhere(bench.rowsOf(tag))).toContain('fixed in')
  const fault = bench.sandbox.faults.set(`/v1/tags/${other}/sbom`, { kind: 'status', status: 500 })
  bench.service.change('tags', other, { digest: `sha256:${'9'.repeat(64)}` })
  await bench.run('catalog')
  await bench.publish({})
  await bench.judge()
  expect(fault.hits()).toBeGreaterThan(0)
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 1 other tag${NOT_JUDGED}`)
})

longTest('what VEX rules out, an older version or an absent package is no fix', async () => {
  const bench = await openTags([OLD], [OLD])
  const [tag = ''] = bench.tags
  const record = { ...affecting('npm', 'shared', '1.5.0'), aliases: ['CVE-2026-77001'] }
  const vex = vexAbout(
    'CVE-2026-77001',
    [{ '@id': 'pkg:oci/image1@1', subcomponents: [{ '@id': OLD }] }],
    'not_affected',
  )
  bench.write(1, 'vex', vex)
  await bench.update({ 'T-1': record })
  const other = (): string => Object.values(bench.named(1)).join(' ')
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not affected by VEX in ${other()}, with version 1.0.0`)
  bench.write(1, 'sbom', sbomOf('image1', 'pkg:npm/shared@0.5.0'))
  const events = [{ introduced: '0.9.0' }, { fixed: '1.5.0' }]
  const affected = [{ package: { ecosystem: 'npm', name: 'shared' }, ranges: [{ type: 'SEMVER', events }] }]
  await bench.update({ 'T-1': { ...record, affected } })
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not affected in ${other()}, with version 0.5.0`)
  bench.write(1, 'sbom', sbomOf('image1', 'pkg:npm/else@1.0.0'))
  await bench.update()
  expect(elsewhere(bench.rowsOf(tag))).toBe(`the package is not contained in ${other()}, by what its SBOM identifies`)
  const incomplete = JSON.parse(sbomOf('image1', 'pkg:npm/else@1.0.0')) as object
  bench.write(1, 'sbom', JSON.stringify({ ...incomplete, compositions: [{ aggregate: 'incomplete' }] }))
  await bench.update()
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 1 other tag${NOT_JUDGED}`)
  bench.write(1, 'sbom', sbomOf('image1', 'pkg:pypi/shared@9.0'))
  await bench.update()
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 1 other tag${NOT_JUDGED}`)
})

longTest(
  'another release of a distribution fixes a finding only where its record names a fix for that release',
  async () => {
    const of = (version: string, release: number) => `pkg:deb/debian/curl@${version}?distro=debian-${release}`
    const bench = await openTags([of('7.88-1', 12)], [of('8.14-1', 13)])
    const [tag = ''] = bench.tags
    const inRelease = (release: number, fixed: string) =>
      (affecting(`Debian:${release}`, 'curl', fixed) as { affected: object[] }).affected
    await bench.update({
      'T-1': { ...affecting('Debian:12', 'curl', '7.88-2') },
      'T-2': affecting('Debian:13', 'x', null),
    })
    expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 1 other tag${NOT_JUDGED}`)
    await bench.update({
      'T-1': {
        ...affecting('Debian:12', 'curl', '7.88-2'),
        affected: [...inRelease(12, '7.88-2'), ...inRelease(13, '8.10-1')],
      },
    })
    expect(elsewhere(bench.rowsOf(tag))).toContain('fixed in')
  },
)

test('a source package whose binary package has another name in another release is not absent there', async () => {
  const of = (name: string, version: string, release: number) =>
    `pkg:deb/debian/${name}@${version}?distro=debian-${release}`
  const sourced = (...parts: Parameters<typeof of>) => `${of(...parts)}&upstream=openssl`
  const bench = await openTags([sourced('libssl1.1', '1.1.1-1', 11)], [sourced('libssl3', '3.0.1-1', 12)])
  const [tag = ''] = bench.tags
  const inRelease = (release: number, fixed: string) =>
    (affecting(`Debian:${release}`, 'openssl', fixed) as { affected: object[] }).affected
  const record = (fixed: string) => ({
    ...affecting('Debian:11', 'openssl', '1.1.1-9'),
    affected: [...inRelease(11, '1.1.1-9'), ...inRelease(12, fixed)],
  })
  await bench.update({ 'T-1': record('3.0.1-2') })
  expect(elsewhere(bench.rowsOf(tag))).toBe('no mirrored tag of this repository is without it')
  await bench.update({ 'T-1': record('3.0.0-2') })
  expect(elsewhere(bench.rowsOf(tag))).toContain('fixed in')
  bench.write(1, 'sbom', sbomOf('image1', of('libssl3', '3.0.1-1', 12)))
  await bench.update()
  expect(elsewhere(bench.rowsOf(tag))).toBe(`not known of 1 of 1 other tag${NOT_JUDGED}`)
})
