import { describe, expect, test } from 'vitest'
import { readReference, writeReference } from '../../../src/config/kinds/oci-reference.ts'
import { readChallenge } from '../../../src/features/bundles/oci/login.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

describe('a reference', () => {
  test.each([
    ['weekly.zip', null],
    ['/srv/oci:x', null],
    ['oci:/media/usb', { kind: 'layout', folder: '/media/usb', name: null }],
    ['oci:/media/a:b/usb', { kind: 'layout', folder: '/media/a:b/usb', name: null }],
    ['oci:usb:daily', { kind: 'layout', folder: 'usb', name: 'daily' }],
    [`oci:usb@${DIGEST}`, { kind: 'layout', folder: 'usb', name: DIGEST }],
    ['oci://r.example/a/b', { kind: 'registry', host: 'r.example', repository: 'a/b', name: 'latest' }],
    ['oci://r.example:5000/a:1.2', { kind: 'registry', host: 'r.example:5000', repository: 'a', name: '1.2' }],
    [`oci://[::1]:5000/a@${DIGEST}`, { kind: 'registry', host: '[::1]:5000', repository: 'a', name: DIGEST }],
  ])('%s is read', (text, reference) => {
    expect(readReference(text)).toEqual(reference)
    if (reference !== null) expect(readReference(writeReference(readReference(text) ?? never()))).toEqual(reference)
  })

  test.each([
    'oci:',
    'oci:usb:',
    'oci://',
    'oci://r.example',
    'oci://r.example/',
    'oci://r.example/A',
    'oci://r.example/a:b:c',
    'oci://r.example/../a',
    'oci://user:secret@r.example/a',
    'oci://r.example/a@sha256:1',
    'oci://r.example/a@md5:00',
  ])('%s is refused, and an example is shown', (text) => {
    expect(() => readReference(text)).toThrow(/write oci:/)
  })
})

test.each([
  ['Basic realm="x"', { scheme: 'basic', realm: 'x', service: '' }],
  ['Bearer realm="https://r/t",service="s, t"', { scheme: 'bearer', realm: 'https://r/t', service: 's, t' }],
  ['bearer realm=https://r/t', { scheme: 'bearer', realm: 'https://r/t', service: '' }],
  ['Negotiate, Bearer realm="https://r/t"', { scheme: 'bearer', realm: 'https://r/t', service: '' }],
  ['Negotiate', null],
  [undefined, null],
])('the challenge %s is read', (header, challenge) => {
  expect(readChallenge(header)).toEqual(challenge)
})

function never(): never {
  throw new Error('there is a reference')
}
