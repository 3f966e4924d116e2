import { expect, test } from 'vitest'
import { originOf, redirected, sameHost } from '../../../src/upstream/http/destinations.ts'

const stays = (from: string, to: string): boolean => sameHost(new URL(from), new URL(to))

test('a redirect may change the path and add encryption, never drop it or leave the host', () => {
  expect(stays('https://a.example/x', 'https://a.example/y?z')).toBe(true)
  expect(stays('http://a.example', 'https://a.example')).toBe(true)
  expect(stays('http://a.example:8080', 'https://a.example:8443')).toBe(true)
  expect(stays('https://a.example', 'http://a.example')).toBe(false)
  expect(stays('https://a.example', 'https://a.example:8443')).toBe(false)
  expect(stays('https://a.example', 'https://b.example')).toBe(false)
  expect(stays('https://a.example', 'https://a.example.evil.example')).toBe(false)
  expect(stays('http://a.example', 'ftp://a.example')).toBe(false)
})

test('an origin is named without credentials and path', () => {
  expect(originOf(new URL('https://user:secret@a.example:8443/x?y'))).toBe('https://a.example:8443')
})

test('a redirect to https on another port is followed without a credential only', () => {
  const follow = (location: string, credential: boolean): string =>
    redirected(new URL('http://a.example/x'), location, 'upstream.apiRoot', credential).href
  expect(() => follow('https://a.example:8443/x', true)).toThrow('set upstream.apiRoot')
  expect(follow('https://a.example:8443/x', false)).toBe('https://a.example:8443/x')
  expect(follow('https://a.example/y', true)).toBe('https://a.example/y')
})
