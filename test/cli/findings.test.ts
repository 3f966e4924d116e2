import { packageWords } from '../../src/store/findings/words.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { affecting, componentsOf, openFindingsBench } from '../features/findings/fixtures.ts'
import { HOUR_MS, toIso } from '../../src/base/time.ts'
import { closeFindings, openFindings } from '../../src/store/findings/database.ts'
import { openWriter } from '../../src/store/database/open.ts'
import { commandHost } from '../support/hosted.ts'
import { createBench } from '../support/mirror.ts'
import { longTest, test } from '../support/tables.ts'

/** A time as the terminal has it. */
const TIME = '20\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ'

const run = commandHost()

longTest(
  '"changes --findings" lists what changed in the tags, "list findings" their numbers or those of one',
  async () => {
    const bench = await openFindingsBench()
    const { dir } = bench
    const env = { PATCHMIRROR_DATA_DIR: dir }
    const ask = (...args: string[]) => run(['changes', '--findings', ...args], env, dir)
    const list = (...args: string[]) => run(['list', 'findings', ...args], env, dir)
    const parsed = async (asked: ReturnType<typeof ask>): Promise<Record<string, unknown>> => {
      const { code, out } = await asked
      return { code, ...(JSON.parse(out) as Record<string, unknown>) }
    }
    const json = (...args: string[]) => parsed(ask(...args, '--json'))
    const listJson = (...args: string[]) => parsed(list(...args, '--json'))
    expect(await json()).toMatchObject({ code: 3, found: false, reason: 'not_mirrored' })
    await bench.crawl()
    await bench.publish({})
    const early = await ask()
    expect([early.code, early.err]).toEqual([3, expect.stringContaining('patchmirror serve')])

    const began = Date.now() - 3 * HOUR_MS
    await bench.judge(began)
    // As while the first judgement is under way.
    const findings = openFindings(dir, () => undefined)
    findings.exec('UPDATE state SET began_at = NULL, judged_at = NULL')
    const inPart = 'the tags are not all judged yet: the first judgement is in progress, 4 tags so far'
    for (const asked of [ask(), list(), list('library/nothing:1')]) {
      const { code, err } = await asked
      expect([code, err]).toEqual([3, expect.stringContaining(inPart)])
    }
    findings.exec(`UPDATE state SET began_at = ${began}, judged_at = ${began}`)
    findings.close()
    const [one] = componentsOf(dir)
    if (one === undefined) throw new Error('no component')
    const { ecosystem, name, owner } = one
    expect((await ask()).out).toMatch(
      new RegExp(`^changes of findings since ${toIso(began)}; 4 of 4 tags are judged\n\nnothing changed\n\njudged `),
    )
    const partial = async (whole: number) => {
      const db = openWriter(dir)
      db.prepare("UPDATE snapshot SET whole = ? WHERE source = 'osv'").run(whole)
      db.close()
      return ask()
    }
    const words = 'partial: some listed records are missing or outdated'
    expect((await partial(0)).out).toMatch(new RegExp(`^judged .*; osv is ${words}`, 'm'))
    expect(await listJson()).toMatchObject({ osv: { partial: true, missing: null } })
    expect((await partial(1)).out).not.toContain('partial')
    const unknown = await ask('--since', '900d')
    expect(unknown.err).toContain('since 900d is not known here: they are known since')
    expect(unknown.err).toContain('(when the tags were judged for the first time)')
    expect([unknown.code, unknown.err]).toEqual([3, expect.stringContaining(`use --since ${toIso(began)}`)])
    await bench.publish({ 'T-1': affecting(ecosystem, name, '99999.0') })
    expect((await ask()).out).toContain('; another snapshot is mirrored')
    const unjudged = '; what the mirrored snapshot changes is not judged yet\n'
    expect((await ask()).out).toContain(`\n\nnothing changed${unjudged}`)
    expect((await list(owner)).out).toMatch(new RegExp(`^no change since ${TIME}${unjudged}`, 'm'))
    await bench.judge(Date.now() - 2 * HOUR_MS)
    expect((await ask()).out).not.toContain('another snapshot')
    const log = await json()
    expect(log).toMatchObject({ code: 0, complete: true, next: null, knownSince: toIso(began) })
    const changes = log['changes'] as { tag: { id: string; name: string }; changes: object[] }[]
    const own = changes.find(({ tag }) => tag.id === owner)
    expect(own).toMatchObject({ cause: 'records' })
    expect(own?.changes[0]).toMatchObject({ change: 'new', id: 'T-1', fixable: true })
    const csv = (await list('--csv')).out.split('\n')
    expect(csv[0]).toBe('tag,with_a_fix,findings,critical,high,ruled_out_by_VEX,gaps')
    expect(csv.find((line) => line.startsWith(`${own?.tag.name},`))).toMatch(/,\d+,\d+,\d+,\d+,\d+,$/)
    expect((await ask('--csv')).out).toMatch(/^when,tag,change,the_first_of_them,findings_then\n/)
    const matched = await run(['match', own?.tag.name ?? '', '--json'], env, dir)
    const { findings: found } = JSON.parse(matched.out) as { findings: { id: string; component: { name: string } }[] }
    expect(found.filter(({ id }) => id === 'T-1').map(({ component }) => component.name)).toContain(name)
    const unnamed = await run(['match', 'no/such:tag'], env, dir)
    expect([unnamed.code, unnamed.err]).toEqual([1, expect.stringContaining('no mirrored tag is named no/such:tag')])
    const listed = await ask('--limit', '1')
    expect(listed.out).toContain(`new finding, with a fix: T-1 in ${name} `)
    if (changes.length > 1) expect(listed.out).toContain('more exist than these 1')
    expect((await ask('--since', 'someday')).code).toBe(2)
    expect((await ask('7d', '--since', '7d')).err).toContain('give one time: 7d, or --since 7d')
    expect(await ask('30')).toMatchObject({ code: 2, err: expect.stringContaining('--since 30 (30d?)') as string })

    const tag = await list(owner)
    expect(tag.out).toContain(`tag ${own?.tag.name ?? ''}\n`)
    expect(tag.out).toMatch(
      /\nwith a fix +\d+\nfindings +\d+\ncritical +0\nhigh +\d+\nruled out by VEX +\d+\npackages +\d+ /,
    )
    expect(tag.out).toContain(`\n\nits findings, one by one: patchmirror match ${owner}\njudged `)
    const byId = await run(['match', owner, '--json'], env, dir)
    expect(JSON.parse(byId.out)).toMatchObject({ findings: found })
    expect(tag.out).toMatch(
      new RegExp(`\\nchanges since ${TIME}\\n${TIME} {2}\\d+ new findings? \\((all )?with a fix\\)`),
    )
    expect(await listJson(owner)).toMatchObject({
      tags: [{ id: owner }],
      changes: [{ tag: { id: owner } }],
    })
    await bench.publish({ 'T-2': affecting(ecosystem, name, null) })
    await bench.judge()
    const lengthOf = ({ changes }: Record<string, unknown>) => (changes as object[]).length
    const recent = await listJson(owner, '--since', '1h')
    const all = await json('--tag', owner)
    expect([lengthOf(recent), lengthOf(all)]).toEqual([1, 2])
    const table = await list()
    expect(table.out).toMatch(/^4 of 4 tags are judged\n\ntag +with a fix +findings/)
    expect(table.out).toContain(own?.tag.name ?? 'none')
    expect((await list('--limit', '1')).out).toContain('more exist than these 1')
    const listedAll = (await listJson())['tags'] as { counts: { fixable: number } }[]
    const fixes = listedAll.map(({ counts }) => counts.fixable)
    expect(fixes).toEqual(fixes.toSorted((a, b) => b - a))
    expect([fixes.length, (await list('--since', '1h')).code]).toEqual([4, 2])
    expect((await list(owner, '--limit', '1')).out).toContain('more exist than these 1')
    expect((await ask('0m', '--tag', owner)).out).toMatch(new RegExp(`\\nno change since ${TIME}\\n`))
    const hour = String((await listJson(owner, '--since', '1h'))['since'])
    expect(Math.abs(Date.now() - HOUR_MS - Date.parse(hour))).toBeLessThan(HOUR_MS)
    expect(hour).toBe(toIso(Date.parse(hour)))
    const db = openFindings(dir, () => undefined)
    db.exec('DELETE FROM log WHERE seq = (SELECT min(seq) FROM log)')
    closeFindings(db)
    const forgotten = await ask('--since', '900d')
    expect([forgotten.code, forgotten.err]).toEqual([3, expect.stringContaining('(data.historyDays)')])

    const later = await list(owner, '--since', '9998-01-01')
    expect([later.code, later.err]).toEqual([2, expect.stringContaining('is in the future')])
    expect(await listJson('nothing')).toMatchObject({ code: 1, found: false, reason: 'not_found' })
    const off = await run(['list', 'findings'], { ...env, PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,query,vex' }, dir)
    expect([off.code, off.err]).toEqual([1, expect.stringContaining('views.serve has no findings')])
  },
)

longTest('a record claims tags only of those that are judged, by the records that are served', async () => {
  const bench = await openFindingsBench()
  const { dir } = bench
  const show = async (id: string, ...more: string[]) =>
    (await run(['show', id, ...more], { PATCHMIRROR_DATA_DIR: dir }, dir)).out
  const tagsOf = async (id: string) => (JSON.parse(await show(id, '--json')) as { tags: object }).tags
  await bench.crawl()
  await bench.publish({ 'T-0': affecting('npm', 'nowhere', '1.0.0') })
  expect(await tagsOf('T-0')).toMatchObject({
    listed: null,
    count: null,
    notShown: expect.stringContaining('not judged yet') as string,
  })
  await bench.judge()
  expect(await show('T-0')).toContain('\nnone of the 4 judged tags has it\n\n')
  expect(await tagsOf('T-0')).toMatchObject({ listed: [], counts: { tags: 4, judged: 4 }, current: true })

  const findings = openFindings(dir, () => undefined)
  findings.exec('UPDATE state SET began_at = NULL, judged_at = NULL') // as while the first judgement is under way
  expect(await tagsOf('T-0')).toMatchObject({
    listed: null,
    notShown: expect.stringContaining('in progress, 4 tags so far') as string,
  })
  expect(await show('T-0')).toContain('\nthe mirrored tags with it are not known: the tags are not all judged yet')
  findings.exec("UPDATE state SET began_at = 1, judged_at = 1; UPDATE tag SET refusal = 'no SBOM' WHERE id = 1")
  closeFindings(findings)
  expect(await show('T-0')).toContain('\nnone of the 3 judged tags has it; 1 tag is not judged\n\n')
  const list = async (...args: string[]) =>
    (await run(['list', 'findings', ...args], { PATCHMIRROR_DATA_DIR: dir }, dir)).out
  const all = await list()
  expect(all).toContain('\n\nwhat is stored of a tag that is not judged: patchmirror show TAG\n\n')
  const refuseAll = (set: string): void => {
    const tags = openFindings(dir, () => undefined)
    tags.exec(`UPDATE tag SET ${set}`)
    closeFindings(tags)
  }
  const db = openFindings(dir, () => undefined)
  const refused = String(db.prepare('SELECT owner FROM tag WHERE id = 1').pluck().get())
  closeFindings(db)
  expect(await list(refused)).toContain(`\nwhat is stored of it: patchmirror show ${refused}\n`)
  expect(await list(refused)).toContain('\nwhether anything changed is not known: the tag is not judged\n')
  const changed = async () => (await run(['changes', '--findings'], { PATCHMIRROR_DATA_DIR: dir }, dir)).out
  expect(await changed()).toContain('\nnothing changed in the tags that are judged\n')
  refuseAll("refusal = 'no SBOM'")
  expect(await changed()).toContain('\nno tag is judged, so no change is known\n')
  refuseAll("refusal = CASE id WHEN 1 THEN 'no SBOM' END")

  const [one] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  await bench.publish({ 'T-1': affecting(one.ecosystem, one.name, '99999.0') })
  expect(await show('T-1')).toMatch(
    /judged tags has it.*\nother records or tags are mirrored than these tags were judged by, or SBOMs or VEX of them are damaged: the daemon/,
  )
  expect(await tagsOf('T-1')).toMatchObject({ count: 0, current: false })
})

test('the packages of a tag are said with what is known less of them, and nothing of what is not', () => {
  const known = { packages: 33, notJudged: 0, unrecorded: 0, allReleases: 0, binaryNameOnly: 0 }
  expect(packageWords(known)).toBe('33 packages')
  expect(packageWords({ ...known, notJudged: 2, binaryNameOnly: 33 })).toBe(
    '33 packages; 2 not judged, or not completely; 33 judged by their binary name only',
  )
  expect(packageWords({ ...known, unrecorded: 30 })).toBe(
    '33 packages; 30 that no record here is about, in whatever version: a misspelt name looks the same',
  )
})

longTest('show names the tags of all records that have a CVE as another id', async () => {
  const bench = await openFindingsBench()
  const { dir } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const [one] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  const alias = { aliases: ['CVE-2026-77'] }
  await bench.publish({
    'T-1': { ...affecting('npm', 'nowhere', '1.0.0'), ...alias },
    'T-2': { ...affecting(one.ecosystem, one.name, '99999.0'), ...alias },
  })
  await bench.judge()
  const { code, out } = await run(['show', 'CVE-2026-77'], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(code).toBe(0)
  expect(out).toMatch(/\nT-1 .*\nT-2 .*\n\n\d of \d+ judged tags? ha(s|ve) it\ntag +package +version +with a fix\n\S+ /)
})

longTest('a record of a CVE that upstream removed is named, and no tag is said to have none of it', async () => {
  const bench = await openFindingsBench()
  const { dir } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const [one] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  const cve = 'CVE-2026-78'
  const named = { ...affecting(one.ecosystem, one.name, '99999.0'), aliases: [cve] }
  await bench.publish({
    [`ROOT-OS-${cve}`]: affecting(one.ecosystem, one.name, '99999.0'),
    'T-1': { ...affecting('npm', 'nowhere', '1.0.0'), aliases: [cve] },
    'T-2': named,
    'T-3': { ...affecting('npm', 'nowhere', '1.0.0'), aliases: ['CVE-2026-7'] },
  })
  const show = (...more: string[]) => run(['show', cve, ...more], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect((await show()).out).not.toContain('removed')
  await bench.publish({ 'T-2': null, 'T-3': null, [`ROOT-OS-${cve}`]: null })
  await bench.judge()
  const { code, out } = await show()
  const removed = /upstream removed (?=.*ROOT-OS-CVE-2026-78 at 2\S+Z).*T-2 at 2\S+Z.*, as of the change log/
  expect([code, out]).toEqual([0, expect.stringMatching(removed)])
  expect(out).toContain('\nwarning: upstream removed records about it: ')
  expect(out).toMatch(/\nthe mirrored tags with it are not known: upstream removed .* no statement about them follows/)
  expect(out).not.toMatch(/none of the|T-3/)
  expect(JSON.parse((await show('--json')).out)).toMatchObject({
    removedRecords: expect.arrayContaining([{ id: 'T-2', removedAt: expect.any(String) as string }]) as object,
    tags: { listed: null, count: null, notShown: expect.stringContaining('upstream removed') as string },
  })

  await bench.publish({ 'T-4': named })
  await bench.judge()
  expect((await show()).out).toMatch(/judged tags? ha(s|ve) it\nupstream removed .* no statement about them follows/)
  await bench.publish({ 'T-1': null, 'T-4': null })
  const nothing = await show()
  expect([nothing.code, nothing.err]).toEqual([
    1,
    expect.stringMatching(/upstream removed .*T-4 at .* and 1 more, as of/),
  ])
})

longTest('findings of a tag that was removed says when, and what changed in it before, by its name', async () => {
  const bench = await openFindingsBench()
  const { dir } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const [one] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  await bench.publish({ 'T-1': affecting(one.ecosystem, one.name, '99999.0') })
  await bench.judge()
  const ask = async (tag: string) => {
    const { out } = await run(['list', 'findings', tag, '--json'], { PATCHMIRROR_DATA_DIR: dir }, dir)
    return JSON.parse(out) as {
      tag: { id: string; name: string }
      tags: object[]
      changes: object[]
    }
  }
  const shown = async (...more: string[]) =>
    (await run(['show', 'T-1', ...more], { PATCHMIRROR_DATA_DIR: dir }, dir)).out
  expect(await shown()).toMatch(
    /\n\d of \d+ judged tags? ha(s|ve) it\ntag +package +version +with a fix\n\S+ +\S+ +\S+ +yes\n/,
  )
  const {
    tags: { listed, count },
  } = JSON.parse(await shown('--json')) as { tags: { listed: { id: string }[]; count: number } }
  expect(listed.find(({ id }) => id === one.owner)).toMatchObject({
    package: one.name,
    fixable: true,
    suppressed: false,
  })
  expect(count).toBe(new Set(listed.map(({ id }) => id)).size)
  const { tag, ...before } = await ask(one.owner)
  expect([tag, before.tags.length]).toEqual([{ ...tag, removed: false, removedAt: null }, 1])
  bench.sandbox.service.remove('tags', one.owner)
  await bench.crawl()
  await bench.judge()
  for (const name of [tag.name, one.owner])
    expect(await ask(name)).toMatchObject({
      tag: { ...tag, removed: true, removedAt: expect.stringMatching(/^20.*Z$/) as string },
      tags: [],
      changes: before.changes,
    })
  const { out } = await run(['list', 'findings', tag.name], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(out).toMatch(new RegExp(`^tag ${tag.name}\\nremoved ${TIME}; what changed before is kept\\n\\nchanges since`))
})

longTest(
  'match builds the index of packages where no daemon has built it, and says what is missing where it cannot',
  async () => {
    const bench = await createBench({ sandbox: { records: 5 } })
    onTestFinished(() => bench.close())
    const sbom = join(bench.dir, 'bom.json')
    const component = { type: 'library', name: 'none', version: '1', purl: 'pkg:npm/none@1' }
    writeFileSync(sbom, JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.5', components: [component] }))
    const match = () => run(['match', sbom], { PATCHMIRROR_DATA_DIR: bench.dir }, bench.dir)
    await bench.run('feeds')
    const early = await match()
    expect([early.code, early.err]).toEqual([
      3,
      expect.stringContaining('no OSV records are mirrored; run "patchmirror sync osv"'),
    ])
    await bench.run('osv')
    const first = await match()
    expect([first.code, first.err, first.out]).toEqual([
      0,
      expect.stringContaining('building the index of packages, once'),
      expect.stringMatching(/1 package, no findings/),
    ])
    expect((await match()).err).not.toContain('building')
  },
)
