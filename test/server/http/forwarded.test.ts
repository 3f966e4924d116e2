import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createTrust } from '../../../src/server/http/client-address.ts'
import { type RequestSource, baseUrl, isForwarded, isHost, readForwarding } from '../../../src/server/http/forwarded.ts'

const PROXY = '10.0.0.1'
const trusted = createTrust(['10.0.0.0/8'])

type Headers = Record<string, string | string[]>

function arrival(headers: Headers, peer = PROXY): RequestSource {
  const lists = Object.entries(headers).map(([name, value]) => [name, [value].flat()])
  const local = { address: '127.0.0.1', port: 8080 }
  return {
    headers: Object.fromEntries(lists) as RequestSource['headers'],
    peer,
    local,
    scheme: 'http',
  }
}

function urlFor(headers: Headers, peer = PROXY): string {
  return baseUrl({ publicUrl: null, trusted }, arrival(headers, peer))
}

describe('the base URL', () => {
  test('is server.publicUrl if that is set, whatever a request says', () => {
    const publicUrl = 'https://mirror.example.com/deep/'
    const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }
    expect(baseUrl({ publicUrl, trusted }, arrival(headers))).toBe('https://mirror.example.com/deep')
  })

  test.each<[Headers, string]>([
    [{ host: 'mirror:8080' }, 'http://mirror:8080'],
    [{ host: 'a.example', 'x-forwarded-proto': 'https' }, 'https://a.example'],
    [{ host: 'a', 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'b:8443' }, 'https://b:8443'],
    [{ host: 'a', 'x-forwarded-host': 'b', 'x-forwarded-prefix': '/mirror/' }, 'http://b/mirror'],
    [{ host: 'a', 'x-forwarded-prefix': '/one/two.d' }, 'http://a/one/two.d'],
    [{ host: 'a', forwarded: 'for=192.0.2.1;proto=https;host=b.example' }, 'https://b.example'],
    [{ host: 'a', forwarded: 'For="[2001:db8::1]:4711"; Host="b:80";PROTO=https' }, 'https://b:80'],
    [{ host: 'a', forwarded: 'host="[2001:db8::2]:81"' }, 'http://[2001:db8::2]:81'],
    [{ host: 'a', forwarded: 'proto=https' }, 'https://a'],
    // Both families, of one mind.
    [{ host: 'a', forwarded: 'host=b', 'x-forwarded-host': 'B' }, 'http://b'],
    // What a client wrote before the proxy added its own.
    [{ host: 'a', 'x-forwarded-host': 'evil.example, b' }, 'http://b'],
    [{ host: 'a', 'x-forwarded-host': ['evil.example', 'b'] }, 'http://b'],
    [{ host: 'a', forwarded: 'for=10.0.0.9;host=evil.example, for=192.0.2.1;host=b' }, 'http://b'],
    // Two trusted proxies: the outer one knows where the client asked.
    [{ host: 'a', forwarded: 'for=192.0.2.1;host=b, for=10.0.0.2;host=inner' }, 'http://b'],
  ])('of %j through a trusted proxy is %s', (headers, expected) => {
    expect(urlFor(headers)).toBe(expected)
  })

  test.each<[Headers]>([
    [{ 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }],
    [{ forwarded: 'host=evil.example;proto=https' }],
    [{ 'x-forwarded-prefix': '/evil', 'x-forwarded-for': '10.0.0.1' }],
  ])('ignores %j from a client that is no trusted proxy', (headers) => {
    expect(urlFor({ host: 'mirror', ...headers }, '192.0.2.1')).toBe('http://mirror')
  })

  test.each<[Headers]>([
    [{ 'x-forwarded-host': 'one.example', forwarded: 'host=other.example' }],
    [{ 'x-forwarded-host': 'evil.example/path' }],
    [{ 'x-forwarded-host': 'user@evil.example' }],
    [{ 'x-forwarded-host': 'evil.example\r\nSet-Cookie: a=b' }],
    [{ 'x-forwarded-host': '' }],
    [{ 'x-forwarded-proto': 'javascript' }],
    [{ 'x-forwarded-prefix': '//evil.example' }],
    [{ 'x-forwarded-prefix': '/../up' }],
    [{ 'x-forwarded-prefix': '/a?b' }],
    [{ 'x-forwarded-prefix': 'evil.example/' }],
    [{ forwarded: 'host="evil.example/";proto=ftp' }],
    [{ forwarded: '"' }],
    [{ forwarded: '=;=,,;' }],
  ])('ignores malformed %j even from a trusted proxy', (headers) => {
    expect(urlFor({ host: 'mirror', ...headers })).toBe('http://mirror')
  })

  test.each<[Headers]>([
    [{}],
    [{ host: '' }],
    [{ host: 'a b' }],
    [{ host: 'evil.example/path' }],
    [{ host: 'evil.example#' }],
    [{ host: 'user:password@evil.example' }],
    [{ host: 'evil.example:99999' }],
    [{ host: '"><script>' }],
    [{ host: ['one', 'two'] }],
  ])('is the listening address when the request has no valid host: %j', (headers) => {
    expect(urlFor(headers)).toBe('http://127.0.0.1:8080')
  })

  test('of an IPv6 listening address has brackets, and the scheme of the connection', () => {
    const local = { address: '::1', port: 443 }
    const from = { ...arrival({}), local, scheme: 'https' as const }
    expect(baseUrl({ publicUrl: null, trusted }, from)).toBe('https://[::1]:443')
  })
})

test.each([
  ['localhost', true],
  ['mirror.example.com.', true],
  ['my_host:1', true],
  ['192.0.2.1:8080', true],
  ['[::1]:8080', true],
  ['xn--bcher-kva.example', true],
  ['bücher.example', false],
  ['192.0.2.256', false],
  ['192.0.2', false],
  ['::1', false],
  ['[::1', false],
  ['[fe80::1%25eth0]', false],
  ['host:', false],
  ['host:0', false],
  ['-host', false],
  ['a..b', false],
  ['', false],
  ['a'.repeat(300), false],
])('the text %s is a valid host: %s', (text, expected) => {
  expect(isHost(text)).toBe(expected)
})

test.each<[Headers, string, string]>([
  [{}, PROXY, '10.0.0.1'],
  [{ 'x-forwarded-for': '192.0.2.1' }, PROXY, '192.0.2.1'],
  [{ 'x-forwarded-for': '192.0.2.1:4711' }, PROXY, '192.0.2.1'],
  [{ 'x-forwarded-for': '198.51.100.1, 192.0.2.1, 10.0.0.2' }, PROXY, '192.0.2.1'],
  [{ 'x-forwarded-for': ['198.51.100.1', '192.0.2.1'] }, PROXY, '192.0.2.1'],
  [{ 'x-forwarded-for': '10.0.0.3, 10.0.0.2' }, PROXY, '10.0.0.3'],
  [{ 'x-forwarded-for': '192.0.2.1, nonsense' }, PROXY, '10.0.0.1'],
  [{ forwarded: 'for="[2001:db8::1]:80"' }, PROXY, '2001:db8::1'],
  [{ forwarded: 'for=192.0.2.1, for=unknown' }, PROXY, '10.0.0.1'],
  [{ 'x-forwarded-for': '10.0.0.2' }, '192.0.2.9', '192.0.2.9'],
])('a request with %j from %s has the client address %s', (headers, peer, client) => {
  expect(readForwarding(peer, arrival(headers).headers, trusted).client).toBe(client)
})

const TRACES = ['forwarded', 'x-forwarded-for', 'x-forwarded-prefix', 'x-real-ip', 'via', 'cf-connecting-ip']

test.each(TRACES)('a request with the header %s counts as forwarded by a proxy', (name) => {
  expect(isForwarded({ [name]: ['x'] })).toBe(true)
  expect(isForwarded({ host: ['x'] })).toBe(false)
})

longTest('open quotes separate elements, and many of them take no time', () => {
  expect(urlFor({ host: 'a', forwarded: 'host=evil;for="x, for=192.0.2.1;host=b' })).toBe('http://b')
  expect(urlFor({ host: 'a', forwarded: 'host="b;c", host="evil;x' })).toBe('http://a')
  // Takes minutes when the text is searched to its end again from each quote.
  const quotes = '"\\'.repeat(100_000)
  expect(urlFor({ host: 'a', forwarded: `${quotes}, for=192.0.2.1;host=b` })).toBe('http://b')
})
