import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { createVexReader, tagsBelieving } from '../../../src/store/catalog/vex.ts'
import { imagesOfSbom } from '../../../src/features/match/judging/sbom-images.ts'
import { announced } from '../../sync/refreshes.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'

const SERVICE = { images: 1, tags: 2, packages: 0, tickets: 0, avrs: 0, users: 0, subscriptions: 0 }

/** A mirror of two tags whose artifacts are signed, and the signed VEX of the first one. */
async function twoTags(mode: string) {
  const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const { service } = made.sandbox
  const [first = '', second = ''] = service.ids('tags')
  for (const id of [first, second]) for (const kind of ['sbom', 'vex'] as const) service.sign(id, kind)
  const file = join(made.dir, 'trusted.pem')
  writeFileSync(file, service.publicKey())
  const run = (signatures: string, request: Parameters<typeof made.runWith>[2] = {}) => {
    const env = { PATCHMIRROR_CATALOG_TRUST_ROOT: file, PATCHMIRROR_CATALOG_SIGNATURES: signatures }
    return made.runWith(env, 'catalog', request)
  }
  await run(mode)
  const { vex_file_url: url } = (await (await made.ask(`/v1/tags/${first}/vex`)).json()) as Record<string, string>
  const { pathname, search } = new URL(url ?? '')
  const signed = await (await made.ask(pathname + search)).text()
  expect(signed).toContain('payload')
  /** Returns for each document its tags, and those for which it may rule anything out. */
  const believed = () => {
    const db = openReader(made.dir)
    if (db === null) throw new Error('no database')
    const documents = createVexReader(db).listVexDocuments()
    db.close()
    return documents.map((one) => ({ tags: one.tags, believing: tagsBelieving(one) }))
  }
  /** Returns by which names of their images what rules out counts for the tags, beside what their SBOMs say. */
  const namesOf = (tag: string, subject: string): (readonly string[])[] => {
    const db = openReader(made.dir)
    if (db === null) throw new Error('no database')
    const reads = createReads(db)
    const named = { format: '', name: '', version: '', createdAt: '', enveloped: false, tag }
    const sbom = { ...named, subjects: [subject], components: [], systems: [] }
    const found = imagesOfSbom({ reads, vex: reads.vex }, sbom).map(({ images }) => images)
    db.close()
    return found.map((images) =>
      images.filter(({ isOpenOnly }) => !isOpenOnly).map(({ purl }) => decodeURIComponent(purl)),
    )
  }
  const serveFor = (tag: string) => service.writeArtifact('tag', tag, 'vex', signed)
  return { made, service, first, second, run, believed, namesOf, serveFor }
}

longTest(
  'Signed VEX that was served for another tag before signatures are enforced rules out for its own tag alone',
  async () => {
    const { first, second, run, believed, serveFor } = await twoTags('warn')
    serveFor(second)
    await run('warn')
    const tags = [first, second].sort()
    expect(believed()).toEqual([{ tags, believing: tags }])
    await run('enforce')
    expect(believed()).toEqual([{ tags, believing: [first] }])
  },
)

test('Signed VEX of another image rules nothing out for a tag whose digest the catalog changes to that of the image', async () => {
  const { service, first, second, run, believed, namesOf, serveFor } = await twoTags('enforce')
  const digest = String(service.read('tags', first)['digest'])
  const own = `pkg:oci/app@${String(service.read('tags', second)['digest'])}`
  service.change('tags', second, { digest })
  serveFor(second)
  const result = await run('enforce')
  expect(believed()).toEqual([{ tags: [first, second].sort(), believing: [first] }])
  expect(result).toMatchObject({ facts: { vexNotBelieved: 1 } })
  expect(result.message).toContain(
    `the VEX of 1 tag rules nothing out, because the SBOM of the tag is not verified for the digest that the catalog lists (catalog.signatures: enforce): /v1/tags/${second}/vex`,
  )
  expect(namesOf(second, own)).toEqual([[]])
  expect(namesOf(first, 'pkg:oci/app')).toMatchObject([[expect.stringContaining(digest)]])
})

longTest('Signed VEX rules nothing out for a tag without a digest to compare, and the run says so', async () => {
  const { service, first, second, run, believed, serveFor } = await twoTags('enforce')
  service.change('tags', second, { digest: undefined })
  serveFor(second)
  const result = await run('enforce')
  expect(believed()).toEqual([{ tags: [first, second].sort(), believing: [first] }])
  expect(result).toMatchObject({ facts: { vexNotBelieved: 1 } })
  expect(result.message).toContain(
    `the VEX of 1 tag rules nothing out, because the catalog names no image digest to compare (catalog.signatures: enforce): /v1/tags/${second}/vex`,
  )
})

longTest(
  'A digest that a refresh of one tag changes is no name of its image, before a run verifies its SBOM again',
  async () => {
    const { made, service, first, second, run, believed, namesOf, serveFor } = await twoTags('enforce')
    const own = `pkg:oci/app@${String(service.read('tags', second)['digest'])}`
    service.change('tags', second, { digest: String(service.read('tags', first)['digest']) })
    serveFor(second)
    expect(made.store.vex.listUnsureTags()).toEqual([])
    const targets = [announced(service, second)]
    expect(await run('enforce', { kind: 'refresh', trigger: 'webhook', targets })).toMatchObject({
      facts: { fetched: 2 },
    })
    expect(namesOf(second, own)).toEqual([[]])
    expect(believed()).toEqual([{ tags: [first, second].sort(), believing: [first] }])
    await run('enforce')
    expect(namesOf(second, own)).toEqual([[]])
  },
)
