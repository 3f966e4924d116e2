import { ecosystemsWithout } from '../../../src/base/domain/osv-scope.ts'
import { expect, test } from 'vitest'
import { load, refusal } from '../loading.ts'

const withScope = (scope: string) => load({ env: { PATCHMIRROR_OSV_SCOPE: scope } })

test.each([
  'npm',
  'NPM',
  'Ubuntu:22.04',
  '!debian:12',
  'Root',
  'Root:Alpine:v3.18',
  'Azure Linux',
  'GHSA-',
  'ROOT-OS*',
])('osv.scope takes %s', (entry) => {
  expect(() => withScope(entry)).not.toThrow()
})

test.each([
  ['Debain', /PATCHMIRROR_OSV_SCOPE.*"Debain" is no ecosystem of OSV records .*; did you mean Debian\?/],
  ['!Debain:12', /did you mean Debian\?/],
  ['Root:npmm', /is no ecosystem of OSV records/],
  ['DSA', /The beginning of record ids ends with - or \*/],
  ['pypi:', /is neither an ecosystem nor the beginning of ids/],
])('osv.scope refuses %s: no record would be in scope by it', (entry, said) => {
  expect(refusal(() => withScope(`npm,${entry}`))).toMatch(said)
})

test('osv.scope takes a vendor of views.vendors', () => {
  const env = { PATCHMIRROR_OSV_SCOPE: 'Acme', PATCHMIRROR_VIEWS_VENDORS: 'Root,Acme' }
  expect(() => load({ env })).not.toThrow()
  expect(refusal(() => withScope('Acme'))).toContain('no vendor of views.vendors')
})

test('ecosystems of a scope that no mirrored record names are known, whatever else names records', () => {
  const scope = { include: ['npm', 'Maven', 'debian:99', 'Alpine', 'GHSA-'], exclude: ['PyPI'], vendors: ['Root'] }
  expect(ecosystemsWithout(scope, ['npm', 'Debian:12', 'Root:Alpine:v3.18'])).toEqual(['Maven', 'debian:99'])
  expect(ecosystemsWithout({ ...scope, include: [] }, [])).toEqual([])
})
