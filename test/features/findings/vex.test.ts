import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { signedState } from '../../../src/store/catalog/signatures.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { readRecordTags } from '../../../src/server/lookup/record-tags.ts'
import { withFindings } from '../../../src/store/findings/database.ts'
import {
  type FindingsBench,
  affecting,
  componentsOf,
  expectAgreement,
  openFindingsBench,
  readFindings,
  sbomOf,
  vexAbout,
} from './fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const CVE = 'CVE-2026-77001'
const log = (dir: string) => readFindings(dir, (reads) => reads.listLog(0, 1000))
const tagOf = (dir: string, owner: string) => readFindings(dir, (reads) => reads.readTag(owner))

/** A tag with a VEX document, and a package of it that no other tag has in this version. */
async function opened(bench: FindingsBench) {
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const components = componentsOf(bench.dir)
  const found = components.find(
    (one) =>
      bench.sandbox.service.documents('tag', one.owner, 'vex').length > 0 &&
      components.filter(({ packages }) => packages === one.packages).length === 1 &&
      components.filter(({ owner, name }) => owner === one.owner && name === one.name).length === 1,
  )
  if (found === undefined) throw new Error('no such component')
  const [[purl = ''] = []] = JSON.parse(found.packages) as string[][]
  return { ...found, purl }
}

longTest('findings that VEX rules out do not count, and are announced when a statement changes', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const { owner, ecosystem, name, purl } = await opened(bench)
  const about = (more: object = {}) => ({ ...affecting(ecosystem, name, null), aliases: [CVE], ...more })
  const state = async (content: string) => {
    sandbox.service.writeArtifact('tag', owner, 'vex', content)
    await bench.crawl()
    return bench.judge()
  }
  const own = () => log(dir).filter((one) => one.owner === owner)
  await bench.publish({ 'T-1': about() })
  await bench.judge()
  expect(own().at(-1)).toMatchObject({ cause: 'records', found: 1 })
  const before = tagOf(dir, owner)

  await state(vexAbout(CVE, [{ '@id': purl }], 'not_affected'))
  expect(own().at(-1)).toMatchObject({ cause: 'vex', found: 0, gone: 1 })
  expect(own().at(-1)?.details).toEqual([['gone', 'T-1', name, expect.any(String), 0, '', 'vex']])
  const findings = (before?.findings ?? 0) - 1
  expect(tagOf(dir, owner)).toMatchObject({ findings, suppressed: 1 })
  await expectAgreement(bench)

  // Another record about the same vulnerability is ruled out at once, a record that is not about it any more counts.
  const position = log(dir).length
  await bench.publish({ 'T-2': about({ aliases: [], upstream: [CVE] }) })
  await bench.judge()
  expect(own().filter(({ seq }) => seq > position)).toEqual([])
  expect(tagOf(dir, owner)).toMatchObject({ findings, suppressed: 2 })
  await bench.publish({ 'T-2': about({ aliases: ['CVE-2026-77002'] }) })
  await bench.judge()
  expect(own().at(-1)).toMatchObject({ cause: 'records', found: 1 })
  expect(tagOf(dir, owner)).toMatchObject({ findings: findings + 1, suppressed: 1 })
  await expectAgreement(bench)

  await state(vexAbout(CVE, [{ '@id': purl }], 'affected', '2026-05-02T00:00:00Z'))
  expect(own().at(-1)).toMatchObject({ cause: 'vex', found: 1 })
  expect(tagOf(dir, owner)).toMatchObject({ findings: findings + 2, suppressed: 0 })
  await expectAgreement(bench)
})

longTest(
  'a document whose signature is enforced and not verified, or not compared, rules no finding of a tag out',
  async () => {
    const bench = await openFindingsBench()
    const { dir, sandbox } = bench
    const { owner, ecosystem, name, purl } = await opened(bench)
    await bench.publish({ 'T-1': { ...affecting(ecosystem, name, null), aliases: [CVE] } })
    sandbox.service.writeArtifact('tag', owner, 'vex', vexAbout(CVE, [{ '@id': purl }], 'fixed'))
    await bench.crawl()
    await bench.judge()
    const suppressed = () => tagOf(dir, owner)?.suppressed
    expect(suppressed()).toBe(1)
    const path = `/v1/tags/${owner}/vex`
    const note = async (state: 'verified' | 'failed', subject: string | null) => {
      const { store } = bench
      const answer = signedState(store.catalog.readAnswer(path) ?? NO_ANSWER) ?? ''
      const result = { state, signer: null, reason: null, subject, isEnforced: true }
      await store.exclusive(() => store.catalog.putSignature({ ...result, path, answer, basis: '' }, false))
      await bench.judge()
    }
    await note('failed', 'sha256:1')
    expect(suppressed()).toBe(0)
    await note('verified', 'sha256:1')
    expect(suppressed()).toBe(1)
    await note('verified', null)
    expect(suppressed()).toBe(0)
    await note('verified', 'sha256:1')
    expect(suppressed()).toBe(1)
  },
)

const NO_ANSWER = { status: 404, sha256: Buffer.alloc(0), links: [] }

longTest('by the name of an image alone a statement rules out for the tag of its document', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const { owner, ecosystem, name, purl } = await opened(bench)
  const [other = ''] = sandbox.service.ids('tags').filter((id) => id !== owner)
  for (const [tag, image] of [
    [owner, 'one'],
    [other, 'two'],
  ] as const) {
    sandbox.service.change('tags', tag, { digest: `sha256:${'a'.repeat(64)}` }) // built again
    sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(image, purl))
  }
  await bench.crawl()
  await bench.publish({ 'T-1': { ...affecting(ecosystem, name, null), aliases: [CVE] } })
  await bench.judge()
  const counts = () => [owner, other].map((id) => [tagOf(dir, id)?.findings, tagOf(dir, id)?.suppressed])
  const product = (image: string) => ({ '@id': `pkg:oci/${image}`, subcomponents: [{ '@id': purl }] })
  const state = async (image: string) => {
    sandbox.service.writeArtifact('tag', owner, 'vex', vexAbout(CVE, [product(image)], 'fixed'))
    await bench.crawl()
    await bench.judge()
    await expectAgreement(bench)
  }
  const [found = 0] = counts()[0] ?? []
  expect(found).toBeGreaterThan(0)
  expect(counts()).toEqual([
    [found, 0],
    [found, 0],
  ])
  await state('one')
  expect(counts()).toEqual([
    [found - 1, 1],
    [found, 0],
  ])
  await state('two') // that of the other tag
  expect(counts()).toEqual([
    [found, 0],
    [found, 0],
  ])
  await state('one')
  sandbox.service.writeArtifact('tag', owner, 'sbom', sbomOf('three', purl)) // nothing has the name any more
  await bench.crawl()
  await bench.judge()
  expect(counts()).toEqual([
    [found, 0],
    [found, 0],
  ])
  await expectAgreement(bench)
  sandbox.service.rotateArtifact('tag', owner, 'vex')
  await bench.crawl()
  await bench.judge()
  await expectAgreement(bench)
})

longTest('what is stored of a document is in proportion to it, and rules out the same', async () => {
  const bench = await openFindingsBench({ images: 1, tags: 1 })
  const { dir, sandbox } = bench
  const [tag = ''] = sandbox.service.ids('tags')
  const count = 300
  const aliases = Array.from({ length: count }, (_, at) => `${CVE}${at}`)
  const products = Array.from({ length: count }, (_, at) => ({ '@id': `pkg:npm/many${at}@1.0.0` }))
  const one = { vulnerability: { name: CVE, aliases }, products, status: 'fixed' }
  const document = { '@context': 'https://openvex.dev/ns/v0.2.0', statements: [one] }
  sandbox.service.writeArtifact('tag', tag, 'vex', JSON.stringify(document))
  sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('one', 'pkg:npm/many7@1.0.0'))
  await bench.crawl()
  await bench.publish({ 'T-1': { ...affecting('npm', 'many7', null), aliases: [`${CVE}9`] } })
  await bench.judge()
  const rows = withFindings(dir, (db) => db.prepare('SELECT count(*) FROM vex_statement').pluck().get())
  expect(rows).toBeLessThan(4 * count)
  expect(tagOf(dir, tag)).toMatchObject({ findings: 0, suppressed: 1 })
  await expectAgreement(bench)
})

test('a version beside a package URL is compared with its epoch, as match does', async () => {
  const bench = await openFindingsBench({ images: 1, tags: 1 })
  const { sandbox } = bench
  const [tag = ''] = sandbox.service.ids('tags')
  const purl = 'pkg:deb/debian/aaa?distro=debian-12&epoch=1'
  const components = [{ type: 'library', name: 'aaa', version: '1.0', purl }]
  const sbom = { bomFormat: 'CycloneDX', specVersion: '1.6', components }
  sandbox.service.writeArtifact('tag', tag, 'sbom', JSON.stringify(sbom))
  const product = { '@id': 'pkg:deb/debian/aaa@1.0?epoch=1' }
  sandbox.service.writeArtifact('tag', tag, 'vex', vexAbout(CVE, [product], 'not_affected'))
  await bench.crawl()
  await bench.publish({ 'T-1': { ...affecting('Debian:12', 'aaa', null), aliases: [CVE] } })
  await bench.judge()
  expect(bench.known().rows).toHaveLength(1)
  await expectAgreement(bench)
})

longTest('of several SBOMs those count that list a package, with what they describe', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const tags = sandbox.service.ids('tags').filter((id) => sandbox.service.documents('tag', id, 'vex').length > 0)
  const [tag = '', other = ''] = tags
  const one = 'pkg:npm/one@1.0.0'
  const both = 'pkg:npm/both@1.0.0'
  sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('first', one, both))
  sandbox.service.writeArtifact('tag', other, 'sbom', sbomOf('second', both))
  const products = [{ '@id': 'pkg:oci/first', subcomponents: [one, both].map((id) => ({ '@id': id })) }]
  sandbox.service.writeArtifact('tag', tag, 'vex', vexAbout(CVE, products, 'fixed'))
  await bench.crawl()
  const db = new Database(join(dir, 'mirror.db'))
  const links = (id: string) => `(SELECT links FROM catalog_answer WHERE path = '/v1/tags/${id}/sbom')`
  db.exec(`UPDATE catalog_answer SET links = json_insert(${links(tag)}, '$[#]', json_extract(${links(other)}, '$[0]'))
    WHERE path = '/v1/tags/${tag}/sbom'`)
  db.close()
  const record = (name: string) => ({ ...affecting('npm', name, null), aliases: [CVE] })
  await bench.publish({ 'T-1': record('one'), 'T-2': record('both') })
  await bench.judge()
  expect(tagOf(dir, tag)).toMatchObject({ findings: 1, suppressed: 1 })
  await expectAgreement(bench)
})

longTest('VEX that was damaged and deleted is unread, for match and the tags, until it is fetched again', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox, store } = bench
  const { owner, ecosystem, name, purl } = await opened(bench)
  sandbox.service.writeArtifact('tag', owner, 'vex', vexAbout(CVE, [{ '@id': purl }], 'not_affected'))
  await bench.crawl()
  await bench.publish({ 'T-1': { ...affecting(ecosystem, name, null), aliases: [CVE] } })
  const documents = store.vex.listVexDocuments().filter(({ tags }) => tags?.includes(owner) === true)
  const catalog = store.snapshots.readSnapshot('catalog')?.id
  const digests = documents.map(({ digest }) => digest)
  await store.exclusive(() => store.catalog.invalidate({ answers: [], lists: [], documents: digests }))
  expect(await bench.judge()).toMatchObject({ unread: true })
  expect(tagOf(dir, owner)?.suppressed).toBe(0)
  expect(await bench.unreadVex(owner)).toBe(documents.length)
  const ofRecord = () => readRecordTags(bench.config, store, 'T-1', () => undefined)
  expect(ofRecord()).toMatchObject({ isCurrent: false })
  await bench.crawl()
  expect(store.snapshots.readSnapshot('catalog')?.id).toBe(catalog)
  expect(await bench.judge()).toMatchObject({ unread: false })
  expect(tagOf(dir, owner)?.suppressed).toBe(1)
  expect(await bench.unreadVex(owner)).toBe(0)
  expect(ofRecord()).toMatchObject({ isCurrent: true })
})

longTest(
  'SBOMs and VEX that are damaged are read once they are repaired, although the catalog is the same',
  async () => {
    const bench = await openFindingsBench()
    const { dir, sandbox } = bench
    const { owner, ecosystem, name, purl } = await opened(bench)
    const { service } = sandbox
    const other = service.ids('tags').find((id) => id !== owner) ?? ''
    service.writeArtifact('tag', other, 'sbom', sbomOf('second', 'pkg:npm/second@1.0.0'))
    service.writeArtifact('tag', owner, 'vex', vexAbout(CVE, [{ '@id': purl }], 'not_affected'))
    await bench.crawl()
    const db = new Database(join(dir, 'mirror.db'))
    onTestFinished(() => void db.close())
    const linksOf = (id: string) => `(SELECT links FROM catalog_answer WHERE path = '/v1/tags/${id}/sbom')`
    db.exec(`UPDATE catalog_answer SET links = json_insert(${linksOf(owner)}, '$[#]', json_extract(${linksOf(other)}, '$[0]'))
    WHERE path = '/v1/tags/${owner}/sbom'`)
    await bench.publish({ 'T-1': { ...affecting(ecosystem, name, null), aliases: [CVE] } })
    const damaged = ['sbom', 'vex'].flatMap((kind) => {
      const digests = db
        .prepare<[string], string>(
          "SELECT json_extract(link.value, '$.digest') FROM catalog_answer a, json_each(a.links) link WHERE a.path = ?",
        )
        .pluck()
      return digests.all(`/v1/tags/${owner}/${kind}`).slice(-1)
    })
    const chunks = damaged.flatMap((digest) =>
      db
        .prepare<[string], { digest: string; number: number; bytes: Buffer }>(
          'SELECT * FROM catalog_chunk WHERE digest = ?',
        )
        .all(digest),
    )
    const put = db.prepare('UPDATE catalog_chunk SET bytes = ? WHERE digest = ? AND number = ?')
    expect(damaged).toHaveLength(2)
    for (const { digest, number } of chunks) put.run(Buffer.alloc(8), digest, number)

    expect(await bench.judge()).toMatchObject({ unread: true })
    const without = tagOf(dir, owner)
    expect(without?.suppressed).toBe(0)
    expect(without?.sbom.split(' ')).toHaveLength(1)
    expect(await bench.judge()).toMatchObject({ unread: true, tags: 0 })

    for (const { digest, number, bytes } of chunks) put.run(bytes, digest, number)
    expect(await bench.judge()).toMatchObject({ unread: false })
    const repaired = tagOf(dir, owner)
    expect(repaired).toMatchObject({ suppressed: 1, packages: (without?.packages ?? 0) + 2 })
    expect(repaired?.sbom.split(' ')).toHaveLength(2)
    expect(bench.known()).toEqual(await bench.fresh())
  },
)

longTest('a patch that the service has done is a fix, until it is not any more', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const { owner, ecosystem, name } = await opened(bench)
  const ticket = sandbox.service.addTicket()
  const [base = ''] = ecosystem.split(':')
  const set = async (status: string) => {
    const about = { cve_id: CVE, ecosystem: base, package_src_name: name, ticket_status: status }
    sandbox.service.change('tickets', ticket, about)
    await bench.crawl()
    await bench.judge()
  }
  const own = () =>
    log(dir)
      .filter((one) => one.owner === owner)
      .at(-1)
  await set('in_progress')
  await bench.publish({ [CVE]: affecting(ecosystem, name, null) })
  await bench.judge()
  expect(own()).toMatchObject({ cause: 'records', found: 1, fixes: 0 })
  const before = tagOf(dir, owner)?.fixable ?? -1
  await set('done')
  expect(own()).toMatchObject({ cause: 'patches', found: 0, fixes: 1 })
  expect(own()?.details).toEqual([['fix', CVE, name, expect.any(String), 1, '']])
  expect(tagOf(dir, owner)).toMatchObject({ fixable: before + 1 })
  await expectAgreement(bench)
  await bench.publish({ 'T-3': { ...affecting(ecosystem, name, null), aliases: [CVE] } })
  await bench.judge()
  expect(own()).toMatchObject({ cause: 'records', found: 1, fixes: 1 })
  sandbox.service.addTicket() // another list of patches, which says the same of this package
  await bench.crawl()
  await bench.judge()
  expect(own()).toMatchObject({ cause: 'records', found: 1, fixes: 1 })
  expect(tagOf(dir, owner)).toMatchObject({ fixable: before + 2 })
  await set('in_progress')
  expect(own()).toMatchObject({ cause: 'patches', fixes: 0, fixesGone: 2 })
  expect(tagOf(dir, owner)).toMatchObject({ fixable: before })
  await expectAgreement(bench)
})
