import { expect, test } from 'vitest'
import { imageNames } from '../../../src/documents/vex/images.ts'
import { catalogOf, digestOf, findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const ZLIB = 'pkg:deb/debian/zlib1g@1.2'
const D = digestOf('d')
const SURE = { tag: null, isUnsure: false }
const ENCODED = encodeURIComponent(D)

/** Whether a statement about an image rules out a finding of an SBOM that describes another name of it. */
const covers = (product: string, subject: string): boolean =>
  isRuledOut([{ content: openVexOf([{ '@id': product }]) }], findingOf(ZLIB), imageOf([subject]))

test('an image is the one with its digest, whatever registry, repository, tag and form name it', () => {
  const forms = [
    `pkg:oci/app@${ENCODED}?repository_url=cr.example.com/library/app`,
    `pkg:oci/app@${D}`,
    `pkg:oci/renamed@${ENCODED}?repository_url=registry.corp.example%3A5000%2Fteam%2Frenamed&tag=1.2`,
    `pkg:docker/team/renamed@${ENCODED}`,
    `pkg:docker/renamed@1.2?digest=${ENCODED}&repository_url=registry.corp.example`,
    `pkg:oci/app?digest=${D}`,
    `pkg:oci/app@${ENCODED.toUpperCase().replace('SHA', 'sha')}?arch=amd64`,
  ]
  for (const product of forms)
    for (const subject of forms) expect([product, subject, covers(product, subject)]).toEqual([product, subject, true])
})

test('another digest is another image, and without a digest the names count', () => {
  const other = encodeURIComponent(digestOf('e'))
  const cases: [string, string, boolean][] = [
    [`pkg:oci/app@${other}`, `pkg:oci/app@${ENCODED}`, false],
    [`pkg:oci/app?digest=${other}`, `pkg:oci/app@${ENCODED}`, false],
    ['pkg:oci/app', `pkg:oci/app@${ENCODED}`, true],
    ['pkg:oci/other', `pkg:oci/app@${ENCODED}`, false],
    ['pkg:oci/app?repository_url=a.example.com/app', `pkg:oci/app@${ENCODED}?repository_url=a.example.com/app`, true],
    ['pkg:oci/app?repository_url=b.example.com/app', `pkg:oci/app@${ENCODED}?repository_url=a.example.com/app`, false],
    [`pkg:oci/app@${ENCODED}`, 'pkg:oci/app', false],
    [`pkg:oci/app@${ENCODED}?arch=amd64`, `pkg:oci/app@${ENCODED}?arch=arm64`, false],
    [`pkg:oci/app@${ENCODED}?arch=amd64`, `pkg:oci/app@${ENCODED}?arch=x86_64`, true],
  ]
  for (const [product, subject, expected] of cases)
    expect([product, subject, covers(product, subject)]).toEqual([product, subject, expected])
})

const [INDEX, AMD, ARM] = ['1', '2', '3'].map(digestOf) as [string, string, string]

test.each<[string, object]>([
  ['a list of platforms', { digest: INDEX, platforms: [{ digest: AMD, arch: 'amd64' }, { digest: ARM }] }],
  [
    'manifests as registries have them',
    {
      image_digest: `cr.example.com/app@${INDEX}`,
      manifests: [{ digest: AMD, platform: { architecture: 'amd64' } }, { digest: ARM }],
    },
  ],
])('a digest of an index leads to its platforms, named by %s', (_, item) => {
  const catalog = catalogOf({ id: 't1', ...item, layers: [{ digest: digestOf('9') }] })
  const names = (digest: string) =>
    imageNames(catalog, [`pkg:oci/x@${digest}`], SURE).map(({ purl, isOpenOnly }) => [
      decodeURIComponent(purl).split('@')[1],
      isOpenOnly,
    ])
  expect(names(AMD)).toEqual([[INDEX, false]])
  // What is said of one platform is not said of the others.
  expect(names(INDEX)).toEqual([
    [INDEX, false],
    [AMD, true],
    [ARM, true],
  ])
  expect(imageNames(catalog, [], { tag: 't1', isUnsure: false }).map(({ isOpenOnly }) => isOpenOnly)).toEqual([
    false,
    true,
    true,
  ])
  expect(names(digestOf('7'))).toEqual([])
})

test('what is said of an index with an architecture is about that platform alone', () => {
  const catalog = catalogOf({
    id: 't1',
    digest: INDEX,
    platforms: [
      { digest: AMD, arch: 'amd64' },
      { digest: ARM, arch: 'arm64' },
    ],
  })
  const said = (status: string, arch: string, subject: string): boolean => {
    const content = openVexOf([{ '@id': `pkg:oci/image@${INDEX}${arch}` }], status)
    const before = openVexOf([{ '@id': `pkg:oci/image@${INDEX}` }], 'not_affected', 0)
    const images = imageNames(catalog, [subject], SURE)
    const documents = status === 'affected' ? [{ content: before }, { content }] : [{ content }]
    return isRuledOut(documents, findingOf(ZLIB), imageOf([subject], { images }))
  }
  const subjects = [`pkg:oci/image@${INDEX}`, `pkg:oci/image@${AMD}`, `pkg:oci/image@${INDEX}?arch=amd64`]
  const ruledOut = (arch: string) => subjects.map((subject) => said('not_affected', arch, subject))
  expect(ruledOut('')).toEqual([true, true, true])
  expect(ruledOut('?arch=amd64')).toEqual([false, true, true])
  expect(ruledOut('?arch=arm64')).toEqual([false, false, false])
  const leftOpen = (arch: string) => subjects.map((subject) => !said('affected', arch, subject))
  expect(leftOpen('')).toEqual([true, true, true])
  expect(leftOpen('?arch=amd64')).toEqual([true, true, true])
  expect(leftOpen('?arch=arm64')).toEqual([true, false, false])
})

test('the digest of a platform beside one that is named as that of its index is a platform', () => {
  const catalog = catalogOf({ id: 't1', digest: AMD, index_digest: INDEX })
  const names = imageNames(catalog, [`pkg:oci/x@${AMD}`], SURE)
  expect(names.map(({ purl }) => decodeURIComponent(purl))).toEqual([`pkg:oci/image@${INDEX}`])
  expect(imageNames(catalog, [`pkg:oci/x@${INDEX}`], SURE)).toMatchObject([{ isOpenOnly: false }]) // its only platform
})
