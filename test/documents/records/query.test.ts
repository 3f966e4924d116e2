import { describe, expect, test } from 'vitest'
import { readPurl } from '../../../src/base/identity/package.ts'
import { readQuestion } from '../../../src/documents/records/query.ts'

describe('a query', () => {
  test('names a package and a version, or only a package', () => {
    const package_ = { name: 'p', ecosystem: 'npm' }
    expect(readQuestion({ version: '1.0.0', package: package_ })).toMatchObject({
      name: 'p',
      version: '1.0.0',
      pageToken: '',
      ecosystem: { name: 'npm' },
    })
    expect(readQuestion({ package: package_, page_token: 't' })).toMatchObject({
      version: '',
      pageToken: 't',
    })
    expect(readQuestion({ package: package_, pageToken: 't', version: null, more: 1 })).toMatchObject({
      version: '',
      pageToken: 't',
    })
  })

  test('without an ecosystem is about a package of that name in any', () => {
    expect(readQuestion({ package: { name: 'P' }, version: '1' })).toMatchObject({
      ecosystem: null,
      isOfAny: true,
      name: 'P',
    })
  })

  test('by a package URL is about the release that its qualifiers name', () => {
    const ecosystemOf = (purl: string) => readQuestion({ package: { purl } }).ecosystem?.name
    expect(ecosystemOf('pkg:deb/debian/a@1?distro=bookworm')).toBe('Debian:12')
    expect(ecosystemOf('pkg:deb/debian/a@1?distro=none')).toBe('Debian')
    expect(ecosystemOf('pkg:apk/alpine/a@1?distro=alpine-3.18.6')).toBe('Alpine:v3.18')
  })

  test('names a package by purl, with its version or beside it', () => {
    const known = { name: 'crossbeam-utils', version: '0.8.6', ecosystem: { name: 'crates.io' } }
    expect(readQuestion({ package: { purl: 'pkg:cargo/crossbeam-utils@0.8.6' } })).toMatchObject(known)
    expect(readQuestion({ version: '0.8.6', package: { purl: 'pkg:cargo/crossbeam-utils' } })).toMatchObject(known)
  })

  test('for a package type that no ecosystem has is valid and finds nothing', () => {
    expect(readQuestion({ package: { purl: 'pkg:yeet/github.com/p@(devel)' } }).ecosystem).toBeNull()
  })

  test("normalises PyPI's names, a vendor's too", () => {
    const nameOf = (ecosystem: string): string => readQuestion({ package: { name: 'Foo_.Bar', ecosystem } }).name
    expect([nameOf('PyPI'), nameOf('Root:PyPI'), nameOf('npm')]).toEqual(['foo-bar', 'foo-bar', 'Foo_.Bar'])
  })

  const package_ = { name: 'p', ecosystem: 'npm' }
  const REFUSED: [query: unknown, message: RegExp][] = [
    [{}, /^Invalid query\.$/],
    [{ version: '1' }, /^Invalid query\.$/],
    [{ package: null }, /^Invalid query\.$/],
    [{ package: { ecosystem: 'npm' } }, /^Invalid query\.$/],
    [{ package: { name: 'p', ecosystem: 'Bogus' } }, /^Invalid ecosystem\.$/],
    [{ package: { name: 'p', ecosystem: 'constructor' } }, /^Invalid ecosystem\.$/],
    [{ package: { purl: 'pkg:pypi/mlflow', name: 'm' } }, /^name specified in a PURL query$/],
    [{ package: { purl: 'pkg:pypi/m', ecosystem: 'PyPI' } }, /^ecosystem specified in a PURL query$/],
    [{ package: { purl: 'pkg:pypi/m@1' }, version: '1' }, /^version specified in params and PURL query$/],
    [{ package: { purl: 'pkg:a/m@1' }, version: '1' }, /^version specified in params/],
    [{ package: { purl: 'no purl' } }, /^Invalid Package URL/],
    [{ commit: 'a'.repeat(40) }, /by commit are not supported/],
    [{ commit: 'a'.repeat(40), package: package_ }, /by commit are not supported/],
    [null, /a query must be an object/],
    [[], /a query must be an object/],
    [{ package: 'p' }, /package must be an object/],
    [{ package: package_, version: 1 }, /version must be a string/],
    [{ package: package_, version: '1'.repeat(2000) }, /version is too long/],
  ]
  test.each(REFUSED.map(([query, message]) => [String(message), query, message] as const))(
    'is refused with a message like %s',
    (_, query, message) => {
      expect(() => readQuestion(query)).toThrow(message)
      expect(() => readQuestion(query)).toThrow(expect.objectContaining({ code: 'bad_request' }))
    },
  )
})

test('package URLs name ecosystems as osv.dev maps them', () => {
  const known: Record<string, [ecosystem: string, name: string, version: string] | null> = {
    'pkg:npm/lodash@4.17.20': ['npm', 'lodash', '4.17.20'],
    'pkg:npm/%40babel/core@7.0.0': ['npm', '@babel/core', '7.0.0'],
    'pkg:pypi/Django@4.2': ['PyPI', 'django', '4.2'],
    'pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1': ['Maven', 'org.apache.logging.log4j:log4j-core', '2.14.1'],
    'pkg:golang/github.com/gin-gonic/gin@v1.7.0': ['Go', 'github.com/gin-gonic/gin', 'v1.7.0'],
    'pkg:golang/github.com/x/y@v1.0': ['Go', 'github.com/x/y', 'v1.0'],
    'pkg:GoLang/github.com/x/y@v1%2Bincompatible?a=b#z': ['Go', 'github.com/x/y/z', 'v1+incompatible'],
    'pkg:golang/x@vendor': ['Go', 'x', 'vendor'],
    'pkg:golang/example.com/m#sub/dir': ['Go', 'example.com/m/sub/dir', ''],
    'pkg:composer/laravel/framework@v6.0': ['Packagist', 'laravel/framework', 'v6.0'],
    'pkg:gem/rails@6.0.0': ['RubyGems', 'rails', '6.0.0'],
    'pkg:nuget/SkiaSharp@2.80.3.0': ['NuGet', 'SkiaSharp', '2.80.3.0'],
    'pkg:hex/plug@1.0': ['Hex', 'plug', '1.0'],
    'pkg:deb/debian/curl@7.88.1-10%2Bdeb12u5?arch=amd64&distro=debian-12': ['Debian', 'curl', '7.88.1-10+deb12u5'],
    'pkg:deb/ubuntu/curl@1%3A2.0': ['Ubuntu', 'curl', '1:2.0'],
    'pkg:apk/alpine/curl@8.1-r0?arch=x86_64': ['Alpine', 'curl', '8.1-r0'],
    'pkg:apk/wolfi/curl@8.1-r0': ['Wolfi', 'curl', '8.1-r0'],
    'pkg:rpm/redhat/curl@7.61-1.el8': ['Red Hat', 'curl', '7.61-1.el8'],
    'pkg:rpm/redhat/openssl@3.2.2-7.el9?arch=x86_64&epoch=1': ['Red Hat', 'openssl', '1:3.2.2-7.el9'],
    'pkg:deb/debian/tar@1.34-1?epoch=01': ['Debian', 'tar', '1:1.34-1'],
    'pkg:deb/debian/tar@2%3A1.34-1?epoch=1': ['Debian', 'tar', '2:1.34-1'],
    'pkg:deb/debian/tar?epoch=1': ['Debian', 'tar', ''],
    'pkg:rpm/redhat/curl@7.61-1.el8?epoch=0': ['Red Hat', 'curl', '7.61-1.el8'],
    'pkg:rpm/redhat/curl@7.61-1.el8?epoch=x': ['Red Hat', 'curl', '7.61-1.el8'],
    'pkg:npm/lodash@4.17.21?epoch=1': ['npm', 'lodash', '4.17.21'],
    'pkg:rpm/fedora/curl@7.61': null,
    'pkg:deb/curl@7': null,
    'pkg:cargo/ns/crate@1.0.0': null,
    'pkg:docker/library/nginx@latest': null,
    'pkg:constructor/p@1': null,
  }
  const read = Object.keys(known).map((text) => {
    const purl = readPurl(text)
    return [text, purl && [purl.ecosystem, purl.name, purl.version]]
  })
  expect(Object.fromEntries(read)).toEqual(known)
})
