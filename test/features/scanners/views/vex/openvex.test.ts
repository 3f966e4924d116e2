import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createMerge } from '../../../../../src/features/scanners/views/vex/merge.ts'
import { type OpenVex, packageId, readOpenVex } from '../../../../../src/features/scanners/views/vex/openvex.ts'
import { sourceOf } from '../../../../../src/features/scanners/views/vex/plan.ts'

const REAL = new URL('../../../../../../shared/data/vex/', import.meta.url).pathname

test.each([
  ['pkg:deb/debian/curl@7.88.1-10?arch=amd64&distro=debian-12', 'pkg:deb/debian/curl'],
  ['pkg:oci/trivy?repository_url=index.docker.io%2Faquasec%2Ftrivy', 'pkg:oci/trivy'],
  ['pkg:oci/alpine@sha256%3A124c', 'pkg:oci/alpine'],
  ['pkg:npm/%40Angular/Core@1.0#sub/path', 'pkg:npm/%40angular/core'],
  ['pkg:npm/@angular/core@1.0', 'pkg:npm/%40angular/core'],
  ['pkg:npm/@angular/core', 'pkg:npm/%40angular/core'],
  ['pkg:pypi/Zope_Interface', 'pkg:pypi/zope-interface'],
  ['pkg:golang/github.com/aquasecurity/trivy', 'pkg:golang/github.com/aquasecurity/trivy'],
  ['pkg:maven/org.Apache/Commons@1', 'pkg:maven/org.Apache/Commons'],
  ['pkg:deb/debian/libstdc++6', 'pkg:deb/debian/libstdc%2B%2B6'],
  ['pkg://npm//lodash/', 'pkg:npm/lodash'],
])('the package of %s is %s', (purl, expected) => {
  expect(packageId(purl)).toBe(expected)
})

test.each(['nginx', '', 'pkg:', 'pkg:npm/', 'pkg:npm', 'cpe:/a:x', 'pkg:npm/%E0%A4%A', 'pkg:npm/@1'])(
  'the identifier %j is no package',
  (purl) => {
    expect(packageId(purl)).toBeNull()
  },
)

const CONTEXT = 'https://openvex.dev/ns/v0.2.0'
const document = (fields: object): Buffer => Buffer.from(JSON.stringify({ '@context': CONTEXT, ...fields }))

test.each(['', '[]', '{}', '{"@context":5}', '{"@context":"https://example.com"}', '{"bomFormat":"CycloneDX"}'])(
  'the document %j is no OpenVEX',
  (text) => {
    expect(readOpenVex(Buffer.from(text))).toBeNull()
  },
)

test('the packages of an OpenVEX document are the products of its statements, in any form', () => {
  const read = readOpenVex(
    document({
      statements: [
        {
          products: [{ '@id': 'pkg:npm/a@1', identifiers: { purl: 'pkg:npm/b@2' } }, { '@id': 'image' }],
        },
        { products: [{ '@id': 'pkg:npm/a@3', subcomponents: [{ '@id': 'pkg:npm/inner' }] }] },
        { products: 'odd' },
        null,
        { products: [null, 5, { '@id': 7 }] },
      ],
    }),
  )
  expect([...(read?.packages.keys() ?? [])]).toEqual(['pkg:npm/a', 'pkg:npm/b'])
  expect(read?.current).toBe(true)
})

test('an OpenVEX document in an envelope rules out for the digests alone that the envelope is about', () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const other = `sha256:${'b'.repeat(64)}`
  const products = (...ids: string[]) => ids.map((id) => ({ '@id': id }))
  const image = (hex: string): string => `pkg:oci/app@${encodeURIComponent(hex)}`
  const predicate = {
    '@context': CONTEXT,
    statements: [
      {
        status: 'not_affected',
        vulnerability: { name: 'CVE-2026-1' },
        products: products(image(digest), image(other)),
      },
      { status: 'not_affected', vulnerability: { name: 'CVE-2026-2' }, products: products('pkg:npm/a@1') },
      { status: 'affected', vulnerability: { name: 'CVE-2026-3' }, products: products('pkg:npm/b@1') },
    ],
  }
  const subject = [{ name: 'app', digest: { sha256: 'a'.repeat(64) } }]
  const statement = { _type: 'https://in-toto.io/Statement/v1', subject, predicate }
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64')
  const read = readOpenVex(Buffer.from(JSON.stringify({ payloadType: 'application/vnd.in-toto+json', payload })))
  expect(read?.current).toBe(false)
  expect(read?.statements).toMatchObject([
    { vulnerability: { name: 'CVE-2026-1' }, products: [{ '@id': image(digest) }] },
    { vulnerability: { name: 'CVE-2026-3' } },
  ])
  expect([...(read?.packages.keys() ?? [])]).toEqual(['pkg:oci/app', 'pkg:npm/b'])
})

function mergeOpenVex(documents: readonly OpenVex[], about: string | null): Buffer {
  const merge = createMerge(about)
  for (const [number, one] of documents.entries()) merge.add(number, one)
  return merge.end(new Map(documents.map((one, number) => [number, sourceOf(one)]))).content
}

const statement = (name: string, status: string, timestamp?: string, purl = 'pkg:npm/a') => ({
  vulnerability: { name },
  products: [{ '@id': purl }],
  status,
  ...(timestamp === undefined ? {} : { timestamp }),
})

test('the merged statements of several documents end with the newest, without duplicates', () => {
  const one = document({
    author: 'B',
    timestamp: '2026-03-01T00:00:00Z',
    statements: [
      statement('CVE-1', 'not_affected'),
      statement('CVE-1', 'affected', '2026-01-01T00:00:00Z'),
      statement('CVE-2', 'fixed', '2026-01-01T00:00:00Z', 'pkg:npm/other'),
    ],
  })
  const other = document({
    author: 'A',
    timestamp: '2026-02-01T00:00:00+02:00',
    statements: [statement('CVE-1', 'fixed'), statement('CVE-1', 'affected', '2026-01-01T00:00:00Z')],
  })
  const documents = [one, other].map((bytes) => readOpenVex(bytes)).filter((read) => read !== null)
  const merged = mergeOpenVex(documents, 'pkg:npm/a')
  const { statements, ...head } = JSON.parse(merged.toString()) as {
    statements: { status: string; timestamp: string }[]
    '@id': string
  }
  expect(statements.map(({ status, timestamp }) => `${status} ${timestamp}`)).toEqual([
    'affected 2026-01-01T00:00:00Z',
    'fixed 2026-02-01T00:00:00+02:00',
    'not_affected 2026-03-01T00:00:00Z',
  ])
  expect(head).toMatchObject({
    '@context': CONTEXT,
    author: 'A, B',
    timestamp: '2026-03-01T00:00:00Z',
    version: 1,
  })
  expect(mergeOpenVex(documents, 'pkg:npm/a').equals(merged)).toBe(true)
})

test('a document in the form before OpenVEX 0.2 is written as 0.2', () => {
  const read = readOpenVex(
    document({
      statements: [
        {
          vulnerability: 'CVE-1',
          products: ['pkg:oci/alpine@1'],
          subcomponents: ['pkg:apk/x'],
          status: 'fixed',
        },
      ],
    }),
  )
  expect(read?.current).toBe(false)
  expect(read?.statements).toEqual([
    {
      vulnerability: { name: 'CVE-1' },
      products: [{ '@id': 'pkg:oci/alpine@1', subcomponents: [{ '@id': 'pkg:apk/x' }] }],
      status: 'fixed',
    },
  ])
  expect([...(read?.packages.keys() ?? [])]).toEqual(['pkg:oci/alpine'])
})

test.skipIf(!existsSync(REAL))('real OpenVEX documents are read, and others are ignored', () => {
  const files = readdirSync(REAL).filter((name) => !name.startsWith('vexhub'))
  const read = files.map((name) => [name, readOpenVex(readFileSync(REAL + name))] as const)
  const passed = read.filter(([, document]) => document === null).map(([name]) => name)
  expect(passed.every((name) => /\.(csaf|cdx)\.json$/.test(name))).toBe(true)
  const trivy = read.find(([name]) => name === 'trivy-oci.openvex.json')?.[1]
  expect([...(trivy?.packages.keys() ?? [])]).toEqual(['pkg:oci/trivy'])
  for (const [, document] of read)
    if (document !== null) JSON.parse(mergeOpenVex([document, document], null).toString())
})
