import { expect, test } from 'vitest'
import type { VexDocument } from '../../../src/store/catalog/vex.ts'
import { countingStatements, statementsAbout } from '../../../src/features/scanners/vex/image-statements.ts'
import { readStatements } from '../../../src/documents/vex/statements.ts'
import { claimsOf } from '../../../src/features/scanners/views/vex/claims.ts'
import { showingsOf } from '../../../src/features/scanners/views/vex/shown.ts'
import { digestOf, findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const IMAGE = `pkg:oci/app@${encodeURIComponent(digestOf('a'))}`
const own = imageOf([IMAGE], { tag: 'own' })

/** A binary package as SBOMs list it, and its source package. */
interface Built {
  readonly listed: string
  readonly source: string
  /** What the SBOM names as its source beside the package URL. */
  readonly beside?: { readonly name: string; readonly version: string }
}

const BUILT: readonly Built[] = [
  {
    listed: 'pkg:deb/debian/libssl3@3.0.11-1?arch=amd64&distro=debian-12&upstream=openssl',
    source: 'pkg:deb/debian/openssl@3.0.11-1',
  },
  {
    listed: 'pkg:deb/debian/libssl3@3.0.11-1%2Bb1?arch=amd64&upstream=openssl',
    source: 'pkg:deb/debian/openssl@3.0.11-1',
  },
  {
    listed: 'pkg:deb/debian/libssl3@3.0.11-1?arch=amd64',
    source: 'pkg:deb/debian/openssl@3.0.11-1',
    beside: { name: 'openssl', version: '' },
  },
  {
    listed: 'pkg:deb/debian/gcc@4:12.2.0-3?upstream=gcc-defaults%401.203',
    source: 'pkg:deb/debian/gcc-defaults@1.203',
  },
  { listed: 'pkg:apk/alpine/libssl3@3.1-r0?upstream=openssl', source: 'pkg:apk/alpine/openssl@3.1-r0' },
  {
    listed: 'pkg:rpm/rocky/openssl-libs@3.0-1?epoch=1&upstream=openssl-3.0-1.src.rpm',
    source: 'pkg:rpm/rocky-linux/openssl@3.0-1?epoch=1',
  },
  {
    listed: 'pkg:deb/debian/linux-image-amd64@6.1.27%2B1?upstream=linux-signed-amd64',
    source: 'pkg:deb/debian/linux@6.1.27-1',
  },
]

const withQualifier = (purl: string, text: string): string => purl + (purl.includes('?') ? '&' : '?') + text

test.each(BUILT)(
  'What is affected in the source package leaves $listed open: $source',
  ({ listed, source, beside }) => {
    const finding = findingOf(listed, { sourcePackage: beside ?? null })
    const out = { content: openVexOf([listed], 'not_affected', 1), tags: ['own'] }
    expect(isRuledOut([out], finding, own)).toBe(true)
    for (const status of ['affected', 'under_investigation'])
      for (const named of [source, withQualifier(source, 'arch=source')])
        for (const product of [named, { '@id': IMAGE, subcomponents: [{ '@id': named }] }]) {
          const open = { content: openVexOf([product], status, 9), tags: ['own'] }
          expect(isRuledOut([out, open], finding, own)).toBe(false)
        }
    const other = { content: openVexOf([source.replace(/@[^?]*/, '@9')], 'affected', 9), tags: ['own'] }
    expect(isRuledOut([out, other], finding, own)).toBe(true)
  },
)

test.each(BUILT)(
  'What rules out in the source package, which its package URL says it is, rules out $listed: $source',
  ({ listed, source, beside }) => {
    const isOut = (named: string, from = beside ?? null): boolean =>
      isRuledOut([{ content: openVexOf([named]), tags: ['own'] }], findingOf(listed, { sourcePackage: from }), own)
    for (const arch of ['source', 'src']) expect(isOut(withQualifier(source, `arch=${arch}`))).toBe(true)
    // A binary package may have the name of the source package.
    expect(isOut(source)).toBe(false)
    expect(isOut(withQualifier(source, 'arch=amd64'))).toBe(false)
    expect(isOut(withQualifier(source.replace(/@[^?]*/, '@9'), 'arch=source'))).toBe(false)
    expect(isOut(withQualifier(source.replace(/\/[^/@]*@/, '/other@'), 'arch=source'))).toBe(false)
  },
)

test('A package whose source is not known is not ruled out by a source package of its name, and left open by it', () => {
  const listed = 'pkg:deb/debian/openssl@3.0.11-1?arch=amd64'
  const source = 'pkg:deb/debian/openssl@3.0.11-1?arch=source'
  const documentOf = (purl: string, status: string, day: number) => ({
    content: openVexOf([purl], status, day),
    tags: ['own'],
  })
  expect(isRuledOut([documentOf(source, 'fixed', 1)], findingOf(listed), own)).toBe(false)
  const documents = [documentOf(listed, 'fixed', 1), documentOf(source, 'affected', 2)]
  expect(isRuledOut(documents, findingOf(listed), own)).toBe(false)
})

test('The VEX of a digest and the repository leave out what rules out a package whose source package is affected', async () => {
  const [{ listed, source } = { listed: '', source: '' }] = BUILT
  const contents = [openVexOf([listed], 'not_affected', 1), openVexOf([source], 'affected', 9)]
  const documents = contents.map((_, at): VexDocument => ({ digest: `${at}`, size: 1, changed: 1, tags: ['own'] }))
  const bytes = contents.map((one) => Buffer.from(JSON.stringify(one)))
  const images = [{ digest: digestOf('a'), arch: '', isPlatform: false }]
  const image = { digest: digestOf('a'), tags: [{ id: 'own', repository: 'app', images }] }
  const read = documents.map((one, at) => [one, readStatements(bytes[at] ?? Buffer.alloc(0)) ?? []] as const)
  const said = statementsAbout(image, read, Date.parse('2026-07-01'))
  const counting = countingStatements(said, image.digest)
  expect(counting.map(({ statement, part }) => [statement.status, part])).toEqual([['affected', source]])
  const reads = {
    listVexDocuments: () => documents,
    readVexContent: ({ digest }: VexDocument) => bytes[Number(digest)] ?? null,
  }
  const claims = await claimsOf(reads, documents, new Map(), () => Promise.resolve())
  expect(showingsOf(documents, claims, { imagesOf: () => [], unknown: [] }).get('0')).toEqual([
    { place: 0, product: 0, images: [] },
  ])
})
