import { expect, test } from 'vitest'
import { findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const IMAGE = `pkg:oci/app@${encodeURIComponent(DIGEST)}`
const own = imageOf([IMAGE], { tag: 'own' })

/** Package URLs of one package in one version: as an SBOM has it, and as a document does. */
const SPELLINGS: readonly (readonly [listed: string, stated: string])[] = [
  ['pkg:deb/debian/zlib1g@1.2?distro=debian-12', 'pkg:deb/debian/zlib1g@1.2?arch=amd64&distro=debian-12'],
  ['pkg:deb/debian/zlib1g@1.2?distro=debian-12', 'pkg:deb/debian/zlib1g@1.2?distro=debian-12.7'],
  ['pkg:deb/debian/zlib1g@1.2?distro=debian-12', 'pkg:deb/debian/zlib1g@1.2?distro=bookworm'],
  ['pkg:deb/debian/zlib1g@1.2?arch=amd64', 'pkg:deb/debian/zlib1g@1.2?arch=x86_64'],
  ['pkg:deb/debian/zlib1g@1.2', 'pkg:deb/debian/zlib1g@0:1.2'],
  ['pkg:rpm/rocky/openssl@3?epoch=1', 'pkg:rpm/rocky/openssl@3'],
  ['pkg:rpm/rocky/openssl@3?epoch=0', 'pkg:rpm/rocky/openssl@3'],
  ['pkg:rpm/rocky/openssl@3', 'pkg:rpm/rocky-linux/openssl@3'],
  ['pkg:alpine/musl@1', 'pkg:apk/alpine/musl@1'],
  ['pkg:golang/stdlib@1.22.0', 'pkg:golang/stdlib@v1.22.0'],
  ['pkg:golang/a.example/b@v2.0.0+incompatible', 'pkg:golang/a.example/b@v2.0.0'],
  ['pkg:pypi/A.b@1', 'pkg:pypi/a-b@1'],
  ['pkg:pypi/a@1.0', 'pkg:pypi/a@1.0.0'],
  ['pkg:pypi/a@1!2.0rc1', 'pkg:pypi/a@1!2RC1'],
  ['pkg:composer/a/b@v5.4.0', 'pkg:composer/a/b@5.4.0'],
  ['pkg:composer/a/b@5.4', 'pkg:composer/a/b@v5.4.0.0'],
  ['pkg:maven/g/a@1.0.0-RC1', 'pkg:maven/g/a@1.0-rc1'],
  ['pkg:gem/a@1.0.0', 'pkg:gem/a@1'],
  ['pkg:nuget/A@1.0.0.0', 'pkg:nuget/a@1.0'],
  ['pkg:cargo/a@1.0.0', 'pkg:cargo/a@v1.0.0'],
  ['pkg:nuget/Newtonsoft.Json@1', 'pkg:nuget/newtonsoft.json@1'],
  ['pkg:pypi/a@1.0-rc1', 'pkg:pypi/a@1.0.rc1'],
  ['pkg:pypi/a@1.0-1', 'pkg:pypi/a@1.0.post1'],
  ['pkg:pypi/a@1.0%2BUbuntu-1', 'pkg:pypi/a@1+ubuntu.1'],
  ['pkg:composer/a/b@1.0b2', 'pkg:composer/a/b@1.0.0-beta.2'],
  ['pkg:maven/g/a@9.0.0.M1', 'pkg:maven/g/a@9.0.0-m1'],
  ['pkg:maven/g/a@1.0.Final', 'pkg:maven/g/a@1'],
  ['pkg:gem/a@1.0.0-rc1', 'pkg:gem/a@1.pre.rc1'],
  ['pkg:nuget/a@1.0-RC.1', 'pkg:nuget/a@1.0.0-rc.1'],
  ['pkg:cran/a@1.0-1', 'pkg:cran/a@1.0.1'],
  ['pkg:golang/stdlib@go1.21rc2', 'pkg:golang/stdlib@1.21.0-rc.2'],
  ['pkg:gem/nokogiri@1-x86_64-linux', 'pkg:gem/nokogiri@1?platform=x86_64-linux'],
  ['pkg:npm/left@1', 'pkg:npm/left@1?vcs_url=git'],
]

const isLeftOpen = (listed: string, products: readonly unknown[], status = 'affected'): boolean => {
  const open = { content: openVexOf(products, status, 9), tags: ['own'] }
  const other = { content: openVexOf([listed], 'not_affected', 1), tags: ['other'] }
  return !isRuledOut([open, other], findingOf(listed), own)
}

test.each(SPELLINGS)('The document of a tag leaves %s open where it names the package as %s', (listed, stated) => {
  expect(isLeftOpen(listed, [stated])).toBe(true)
  expect(isLeftOpen(listed, [{ '@id': IMAGE, subcomponents: [{ '@id': stated }] }])).toBe(true)
})

test('A version that a statement names beside the package URL is compared as the one in it', () => {
  const ref = 'pkg:composer/a/b@5.4.0'
  const analysed = (state: string, status: string, day: number) => ({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    metadata: { timestamp: `2026-01-0${day}T00:00:00Z` },
    vulnerabilities: [
      { id: 'CVE-1', analysis: { state }, affects: [{ ref, versions: [{ version: 'v5.4.0', status }] }] },
    ],
  })
  const out = { content: analysed('not_affected', 'unaffected', 1), tags: ['own'] }
  expect(isRuledOut([out], findingOf(ref), own)).toBe(true)
  const open = { content: analysed('exploitable', 'affected', 2), tags: ['own'] }
  expect(isRuledOut([out, open], findingOf('pkg:composer/a/b@v5.4'), own)).toBe(false)
})

test.each([
  ['pkg:npm/a@1.0.0', 'pkg:npm/a@1.0.0%2Bpatched.1'],
  ['pkg:nuget/a@1.0.0', 'pkg:nuget/a@1.0.0%2Bpatched.1'],
  ['pkg:composer/a/b@1.0.0', 'pkg:composer/a/b@1.0.0%2Bpatched.1'],
  ['pkg:pypi/a@4.0.1', 'pkg:pypi/a@4.0.1%2Broot.io.1'],
  ['pkg:maven/g/a@4.2.1', 'pkg:maven/g/a@4.2.1-root.io.1'],
  ['pkg:npm/a@1', 'pkg:npm/a@1.0.0'],
  ['pkg:npm/a@1.0.0', 'pkg:npm/a@1'],
  ['pkg:pypi/a@1.0', 'pkg:pypi/a@1.0.1'],
  ['pkg:pypi/a@1.10', 'pkg:pypi/a@1.1'],
  ['pkg:deb/debian/a@1.0', 'pkg:deb/debian/a@v1.0'],
])('Of other versions nothing is ruled out: %s, %s', (listed, stated) => {
  expect(isRuledOut([{ content: openVexOf([stated]), tags: ['own'] }], findingOf(listed), own)).toBe(false)
})

test('The document of a tag leaves nothing open in another version, release, architecture, epoch or package', () => {
  const listed = 'pkg:deb/debian/zlib1g@1:1.2?arch=amd64&distro=debian-12'
  const others = [
    'pkg:deb/debian/zlib1g@1:1.3',
    'pkg:deb/debian/zlib1g@2:1.2',
    'pkg:deb/debian/zlib1g@1:1.2?arch=arm64',
    'pkg:deb/debian/zlib1g@1:1.2?distro=bullseye',
    'pkg:deb/debian/zlib@1:1.2',
  ]
  expect(others.filter((stated) => isLeftOpen(listed, [stated]))).toEqual([])
})

test('The document of a tag that names its image as text, or no product, leaves the findings of the tag open', () => {
  const listed = 'pkg:npm/left@1'
  const text = `registry.example.com/app@${DIGEST}`
  for (const status of ['affected', 'under_investigation']) {
    expect(isLeftOpen(listed, [], status)).toBe(true)
    expect(isLeftOpen(listed, [text], status)).toBe(true)
    expect(isLeftOpen(listed, [{ '@id': text }], status)).toBe(true)
    expect(isLeftOpen(listed, [{ '@id': text, subcomponents: [{ '@id': listed }] }], status)).toBe(true)
  }
})

test('The document of a tag that names no product rules nothing out, and counts before an older one of the tag', () => {
  const listed = 'pkg:npm/left@1'
  const content = openVexOf([], 'not_affected', 9)
  expect(isRuledOut([{ content, tags: ['own'] }], findingOf(listed), own)).toBe(false)
  const older = { content: openVexOf([listed], 'not_affected', 1), tags: ['own'] }
  const open = { content: openVexOf([], 'affected', 9), tags: ['own'] }
  expect(isRuledOut([older, open], findingOf(listed), own)).toBe(false)
  expect(isRuledOut([older], findingOf(listed), own)).toBe(true)
})

test('A statement of OpenVEX counts from its last update', () => {
  const listed = 'pkg:npm/left@1'
  const vulnerability = { name: 'CVE-1' }
  const stated = { vulnerability, status: 'affected', products: [listed], last_updated: '2026-01-08T00:00:00Z' }
  const open = { content: { ...openVexOf([], 'affected', 1), statements: [stated] }, tags: ['own'] }
  const out = (day: number) => ({ content: openVexOf([listed], 'not_affected', day), tags: ['own'] })
  expect(isRuledOut([open, out(5)], findingOf(listed), own)).toBe(false)
  expect(isRuledOut([open, out(9)], findingOf(listed), own)).toBe(true)
})

test('A package is ruled out by the names that its ecosystem takes for one, and not by another release or epoch', () => {
  const isOut = (listed: string, stated: string): boolean =>
    isRuledOut([{ content: openVexOf([stated]), tags: ['own'] }], findingOf(listed), own)
  expect(isOut('pkg:pypi/A.b@1', 'pkg:pypi/a-b@1')).toBe(true)
  expect(isOut('pkg:rpm/rocky/openssl@3?epoch=0', 'pkg:rpm/rocky-linux/openssl@3')).toBe(true)
  expect(isOut('pkg:rpm/rocky/openssl@3?epoch=1', 'pkg:rpm/rocky/openssl@1:3')).toBe(true)
  expect(isOut('pkg:rpm/rocky/openssl@3?epoch=1', 'pkg:rpm/rocky/openssl@3')).toBe(false)
  expect(isOut('pkg:gem/nokogiri@1-x86_64-linux', 'pkg:gem/nokogiri@1-java')).toBe(false)
  expect(isOut('pkg:deb/debian/zlib1g@1.2?distro=debian-12', 'pkg:deb/debian/zlib1g@1.2?distro=debian-11')).toBe(false)
})
