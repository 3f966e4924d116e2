import { describe, expect } from 'vitest'
import type { Run } from '../../../src/store/runs/runs.ts'
import {
  type FindingsBench,
  affecting,
  openFindingsBench,
  readFindings,
  sbomOf,
} from '../../features/findings/fixtures.ts'
import { longTest, test } from '../../support/tables.ts'
import { SMALL, bench, mirrored } from './fixtures.ts'

const PACKAGES = Array.from({ length: 60 }, (_, at) => `many${at}`)
const PURLS = PACKAGES.map((name) => `pkg:npm/${name}@1.0.0`)
const recordsOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name, at) => [`M-${at}`, { ...affecting('npm', name, null), aliases: [cveOf(at)] }]))
const cveOf = (at: number): string => `CVE-2026-${10_000 + at}`

/** A VEX document (OpenVEX) that says the same of the first packages. */
function vexOf(count: number, status: string, timestamp = '2026-05-01T00:00:00Z'): string {
  const statements = PURLS.slice(0, count).map((purl, at) => {
    return { vulnerability: { name: cveOf(at) }, products: [{ '@id': purl }], status, timestamp }
  })
  return JSON.stringify({ '@context': 'https://openvex.dev/ns/v0.2.0', statements })
}

const OPEN = vexOf(60, 'under_investigation')

/** A mirror of two tags with their VEX, each with sixty packages and as many findings of them; the first one's are open. */
async function judged(own = OPEN, others = OPEN): Promise<{ made: FindingsBench; tag: string; other: string }> {
  const made = await openFindingsBench({ images: 1, tags: 2 })
  const [tag = '', other = ''] = made.sandbox.service.ids('tags')
  for (const id of [tag, other]) {
    made.sandbox.service.writeArtifact('tag', id, 'sbom', sbomOf(id, ...PURLS))
    made.sandbox.service.writeArtifact('tag', id, 'vex', id === tag ? own : others)
  }
  await made.crawl()
  await made.publish(recordsOf(PACKAGES))
  await made.judge()
  expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60 })
  return { made, tag, other }
}

const approve = async (made: FindingsBench, id: number): Promise<Run> => {
  const approved = made.store.quarantine.readQuarantine(id)
  if (approved === null) throw new Error(`run ${id} has nothing in quarantine`)
  return made.run('catalog', { kind: 'approve', approved })
}

describe('VEX that newly says not_affected of everything', () => {
  test('is refused with the number of findings, stays refused, and is published when it is approved', async () => {
    const { made, tag } = await judged()
    made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(60, 'not_affected', '2026-05-02T00:00:00Z'))
    const refused = await made.run('catalog')
    expect(refused).toMatchObject({ state: 'quarantined', facts: { doubts: 60 } })
    expect(refused.message).toContain(
      '60 of 120 findings would be ruled out by VEX (vexRuledOut, more than 20 and more than 10 %)',
    )
    expect((refused.facts['doubtfulIds'] as string[])[0]).toMatch(
      / M-\d+ many\d+ 1\.0\.0: not_affected by VEX document [0-9a-f]{12}$/,
    )
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60, suppressed: 0 })
    expect(await made.run('catalog')).toMatchObject({ state: 'quarantined', facts: { quarantine: refused.id } })
    const approval = await approve(made, refused.id)
    expect(approval).toMatchObject({ state: 'complete' })
    expect(approval.message).toContain('published, as approved: 60 of 120 findings were ruled out by VEX')
    const { id = 0 } = made.store.changes.readLatestLogged('catalog') ?? {}
    expect(made.store.changes.readDoubts(id)).toMatchObject({ run: approval.id, approved: ['vexRuledOut'] })
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 0, suppressed: 60 })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  })

  longTest('of few findings is published without a warning, and named below the limits', async () => {
    const { made, tag } = await judged()
    made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(5, 'fixed', '2026-05-02T00:00:00Z'))
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 5 } })
    expect(report.facts).not.toHaveProperty('doubts')
  })

  longTest('in steps below the limits is refused with the step that exceeds them together', async () => {
    const { made, tag } = await judged()
    const states: string[] = []
    for (let count = 8; count <= 40; count += 8) {
      made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(count, 'fixed', `2026-05-02T00:00:${count + 10}Z`))
      states.push((await made.run('catalog')).state)
      await made.judge()
    }
    expect(states.slice(0, 2)).toEqual(['complete', 'complete'])
    expect(states[2]).toBe('quarantined')
  })

  longTest('is held back by a reconcile too, and left to the next sync, which asks for a decision', async () => {
    const { made, tag } = await judged()
    made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(60, 'not_affected', '2026-05-02T00:00:00Z'))
    const reconciled = await made.run('catalog', { kind: 'reconcile', full: true })
    expect(reconciled.message).toContain('could not be fetched')
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60, suppressed: 0 })
    expect(await made.run('catalog')).toMatchObject({ state: 'quarantined' })
  })
})

describe('VEX by which an older not_affected of another tag comes to count', () => {
  const ownAndOther = async () => {
    const { made, tag, other } = await judged(vexOf(60, 'affected'), vexOf(60, 'not_affected'))
    const write = (content: string) => made.sandbox.service.writeArtifact('tag', tag, 'vex', content)
    return { made, tag, other, write }
  }
  const expectRefused = async ({ made, tag }: { made: FindingsBench; tag: string }): Promise<void> => {
    const refused = await made.run('catalog')
    expect(refused).toMatchObject({ state: 'quarantined', facts: { doubts: 60 } })
    expect(refused.message).toContain('60 of 120 findings would be ruled out by VEX')
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60, suppressed: 0 })
  }

  test('is refused where the own affected goes, and where the own document becomes that of the other tag', async () => {
    const { write, ...bench } = await ownAndOther()
    write(vexOf(0, 'affected'))
    await expectRefused(bench)
    write(vexOf(60, 'not_affected'))
    await expectRefused(bench)
  })

  longTest('is refused where upstream has no VEX of the tag any more', async () => {
    const { write: _write, ...bench } = await ownAndOther()
    const { faults, service } = bench.made.sandbox
    faults.set(`/v1/tags/${bench.tag}/vex`, { kind: 'status', status: 404 })
    service.change('tags', bench.tag, { note: 'changed' })
    expect(await bench.made.run('catalog')).toMatchObject({ state: 'partial' })
    await expectRefused(bench)
  })

  longTest('is refused where the tag does not name the artifact set any more whose affected it was', async () => {
    const made = await openFindingsBench({ images: 1, tags: 2, avrs: 1 })
    const { service } = made.sandbox
    const [set = ''] = service.ids('avrs')
    const tags = service.ids('tags')
    const tag = tags.find((id) => service.read('tags', id)['avr_id'] === set) ?? ''
    for (const id of tags) {
      service.writeArtifact('tag', id, 'sbom', sbomOf(id, ...PURLS))
      service.writeArtifact('tag', id, 'vex', id === tag ? vexOf(0, 'affected') : vexOf(60, 'not_affected'))
    }
    service.writeArtifact('avr', set, 'vex', vexOf(60, 'affected'))
    await made.crawl()
    await made.publish(recordsOf(PACKAGES))
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60 })
    service.change('tags', tag, { note: 'changed' })
    const body = JSON.stringify({ ...service.read('tags', tag), avr_id: null })
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'body', type: 'application/json', body })
    await expectRefused({ made, tag })
  })

  longTest('is refused where the own affected is about another vulnerability', async () => {
    const { write, ...bench } = await ownAndOther()
    write(vexOf(60, 'affected').replaceAll('CVE-2026', 'CVE-2025'))
    await expectRefused(bench)
  })
})

longTest('aliases that come in mass are refused where mirrored VEX rules them out, and else reported', async () => {
  const { made, tag } = await judged(OPEN, vexOf(60, 'not_affected').replaceAll('CVE-2026', 'CVE-2020'))
  const publish = (...years: readonly string[]): void => {
    for (const [id, record] of Object.entries(recordsOf(PACKAGES))) {
      const modified = `2026-06-0${years.length}T00:00:00Z`
      const aliases = record.aliases.flatMap((alias) => [alias, ...years.map((year) => alias.replace('2026', year))])
      made.sandbox.feed.put(id, JSON.stringify({ id, modified, ...record, aliases }), modified)
    }
  }
  publish('2021')
  const reported = await made.run('osv')
  expect(reported.state).toBe('complete')
  expect(reported.message).toContain('(idsChanged')
  publish('2021', '2020')
  const refused = await made.run('osv')
  expect(refused.state).toBe('quarantined')
  expect(refused.message).toContain('have new aliases or upstream ids, which mirrored VEX rules out, which count as')
  await made.judge()
  expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60 })
})

longTest('the first VEX of a new tag is believed of that tag, and of no other', async () => {
  const { made, other } = await judged()
  const digest = digestFor('d')
  made.sandbox.service.change('tags', other, { digest })
  const added = made.sandbox.service.addTag()
  const path = `/v1/tags/${added}/vex`
  made.sandbox.service.writeArtifact('tag', added, 'sbom', sbomOf(added, ...PURLS))
  made.sandbox.faults.set(path, { kind: 'status', status: 404 })
  await made.crawl()
  await made.judge()
  expect(readFindings(made.dir, (reads) => reads.readTag(added))).toMatchObject({ findings: 60 })
  made.sandbox.faults.clear()
  const about = (product: string) => {
    const products = [{ '@id': `pkg:oci/${product}`, subcomponents: PURLS.map((purl) => ({ '@id': purl })) }]
    const statements = PURLS.map((_, at) => ({ vulnerability: { name: cveOf(at) }, products, status: 'fixed' }))
    return JSON.stringify({
      '@context': 'https://openvex.dev/ns/v0.2.0',
      timestamp: '2026-05-02T00:00:00Z',
      statements,
    })
  }
  made.sandbox.service.writeArtifact('tag', added, 'vex', about(`image@${encodeURIComponent(digest)}`))
  expect(await made.run('catalog')).toMatchObject({ state: 'quarantined', facts: { doubts: 60 } })
  made.sandbox.service.writeArtifact('tag', added, 'vex', about(added))
  const report = await made.run('catalog')
  expect(report.state).toBe('complete')
  expect(report.facts).not.toHaveProperty('doubts')
})

/** A VEX document that says of an image, by its package URL, that the packages in it are not affected. */
function vexOfImage(purl: string): string {
  const parts = JSON.parse(vexOf(60, 'not_affected', '2026-05-02T00:00:00Z')) as {
    statements: { products: object[] }[]
  }
  for (const one of parts.statements) one.products = [{ '@id': purl, subcomponents: one.products }]
  return JSON.stringify(parts)
}

longTest('an image that takes the name of another one, whose VEX rules everything out, is refused', async () => {
  const digest = digestFor('c')
  const none = vexOf(0, 'affected')
  const { made, tag, other } = await judged(none, vexOfImage(`pkg:oci/image@${encodeURIComponent(digest)}`))
  const change = (to: Record<string, unknown>) => made.sandbox.service.change('tags', tag, to)
  const write = (sbom: string) => made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbom)
  const expectRefused = async (): Promise<void> => {
    const refused = await made.run('catalog')
    expect(refused).toMatchObject({ state: 'quarantined', facts: { doubts: 60 } })
    expect(refused.message).toContain('60 of 120 findings would be ruled out by VEX (vexRuledOut')
  }
  const named = sbomOf(tag, ...PURLS)
  write(named.replace(`pkg:oci/${tag}@1`, `pkg:oci/image@${encodeURIComponent(digest)}`))
  await expectRefused()
  write(named)
  change({ digest })
  await expectRefused()
  await made.judge()
  const ofTag = (id: string) => readFindings(made.dir, (reads) => reads.readTag(id))
  expect([ofTag(tag), ofTag(other)]).toMatchObject([{ findings: 60 }, { findings: 60 }])
})

longTest(
  'an image that is built again with other packages, and by whose VEX the others are fixed, is believed',
  async () => {
    const digest = digestFor('c')
    const { made, tag } = await judged(vexOf(0, 'affected'))
    const image = `pkg:oci/image@${encodeURIComponent(digest)}`
    const sbom = sbomOf(tag, ...RAISED).replace(`pkg:oci/${tag}@1`, image)
    made.sandbox.service.change('tags', tag, { digest })
    made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbom)
    const fixed = JSON.parse(vexOf(60, 'fixed', '2026-05-02T00:00:00Z')) as { statements: { products: unknown[] }[] }
    for (const one of fixed.statements) one.products = [{ '@id': image }]
    made.sandbox.service.writeArtifact('tag', tag, 'vex', JSON.stringify(fixed))
    const report = await made.run('catalog')
    expect(report.message).not.toContain('vexRuledOut')
    expect(report.state).toBe('complete')
  },
)

const RAISED = PURLS.map((purl) => purl.replace('@1.0.0', '@99.0.0'))
const digestFor = (letter: string): string => `sha256:${letter.repeat(64)}`

describe('an SBOM of the same image', () => {
  const expectRefused = async (made: FindingsBench, words: string): Promise<void> => {
    const refused = await made.run('catalog')
    expect(refused.state).toBe('quarantined')
    expect(refused.message).toContain(words)
  }

  test('is refused where components are missing, where their versions are raised, and where it is gone', async () => {
    const { made, tag } = await judged()
    const write = (purls: readonly string[]) =>
      made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(tag, ...purls))
    write(PURLS.slice(0, 20))
    await expectRefused(
      made,
      '40 of 120 components would be missing, or of another source, release or version, in the SBOM of the same image (sbomShrunk',
    )
    write(RAISED)
    await expectRefused(made, '60 of 120 findings would be gone with packages that the SBOM of the same image')
    write(PURLS)
    made.sandbox.faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 404 })
    made.sandbox.service.change('tags', tag, { note: 'changed' })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    await expectRefused(made, '60 of 120 findings would be gone')
    await made.judge()
    expect(readFindings(made.dir, (reads) => reads.readTag(tag))).toMatchObject({ findings: 60 })
  })

  longTest('is refused where the vulnerable packages alone are raised, below the limits of components', async () => {
    const { made, tag } = await judged()
    const more = Object.fromEntries([1, 2, 3].map((at) => [`N-${at}`, affecting('npm', 'many0', null)]))
    await made.publish(more)
    await made.judge()
    for (let count = 9; count <= 36; count += 9) {
      const purls = PURLS.map((purl, at) => (at < count ? (RAISED[at] ?? purl) : purl))
      made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(tag, ...purls))
      const { state } = await made.run('catalog')
      expect(state).toBe(count < 18 ? 'complete' : 'quarantined')
    }
  })

  longTest('is refused where as many others came', async () => {
    const { made, tag } = await judged()
    const others = PURLS.map((purl) => purl.replace('npm/', 'npm/other-'))
    made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(tag, ...others))
    await expectRefused(made, '(sbomShrunk')
  })

  longTest('is believed where versions are written otherwise', async () => {
    const { made, tag } = await judged()
    const written = PURLS.map((purl) => purl.replace('@1.0.0', '@v1.0.0'))
    made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(tag, ...written))
    const { state, facts } = await made.run('catalog')
    expect(state).toBe('complete')
    expect(facts).not.toHaveProperty('doubtsBelowLimits')
  })
})

describe('an SBOM of another image', () => {
  longTest('is reported where components are missing, since images become smaller', async () => {
    const { made, tag } = await judged()
    made.sandbox.service.change('tags', tag, { digest: digestFor('a') })
    made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('slim', ...PURLS.slice(0, 20)))
    const report = await made.run('catalog')
    expect(report.state).toBe('complete')
    expect(report.message).toContain('41 of 120 components were missing, or of another source or release, in an SBOM')
  })

  longTest('is believed where versions of one of two tags are raised, with the number in its facts', async () => {
    const { made, tag } = await judged()
    made.sandbox.service.change('tags', tag, { digest: digestFor('a') })
    made.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(tag, ...RAISED))
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 61 } })
    expect(report.message).not.toContain('doubtful')
  })

  test('is reported where the findings of all tags go at once', async () => {
    const { made, tag, other } = await judged()
    for (const id of [tag, other]) {
      made.sandbox.service.change('tags', id, { digest: digestFor('a') })
      made.sandbox.service.writeArtifact('tag', id, 'sbom', sbomOf(id, ...RAISED))
    }
    const report = await made.run('catalog')
    expect(report.state).toBe('complete')
    expect(report.message).toContain('120 of 120 findings were gone with packages that another image does not have')
  })

  longTest('is refused where more than twenty tags, and most, lose most of their findings', async () => {
    const made = await openFindingsBench({ images: 2, tags: 30 })
    const tags = made.sandbox.service.ids('tags')
    const write = (purls: readonly string[]): void => {
      for (const id of tags) made.sandbox.service.writeArtifact('tag', id, 'sbom', sbomOf(id, ...purls))
    }
    write(PURLS.slice(0, 10))
    await made.crawl()
    await made.publish(recordsOf(PACKAGES.slice(0, 10)))
    await made.judge()
    for (const id of tags) made.sandbox.service.change('tags', id, { digest: digestFor('b') })
    write(RAISED.slice(0, 10))
    const report = await made.run('catalog')
    expect(report.state).toBe('quarantined')
    expect(report.message).toContain('30 of 30 tags would lose most of their findings with another image (tagsCleared')
  })
})

longTest('patches that turn done in mass are reported, and a usual batch is not', async () => {
  const made = await bench({ ...SMALL, tickets: 400 })
  await made.run('catalog')
  const { service } = made.sandbox
  const open = service.ids('tickets').filter((id) => service.read('tickets', id)['ticket_status'] !== 'done')
  for (const id of open.slice(0, 15)) service.change('tickets', id, { ticket_status: 'done' })
  const few = await made.run('catalog')
  expect(few).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 15 } })
  expect(few.message).not.toContain('doubtful')
  for (const id of open.slice(15, 80)) service.change('tickets', id, { ticket_status: 'done' })
  const many = await made.run('catalog')
  expect(many.state).toBe('complete')
  expect(many.message).toMatch(
    /published, but doubtful: 80 of 400 patches were done within 7 days, 65 of them in this run \(patchesDone/,
  )
})

longTest('without known findings, statements that newly rule out are counted and reported', async () => {
  const made = await mirrored(SMALL)
  const [tag = ''] = made.sandbox.service.ids('tags')
  made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(60, 'under_investigation'))
  await made.run('catalog')
  made.sandbox.service.writeArtifact('tag', tag, 'vex', vexOf(60, 'not_affected'))
  const report = await made.run('catalog')
  expect(report.state).toBe('complete')
  expect(report.message).toContain('statements would newly rule something out (vexStated')
})
