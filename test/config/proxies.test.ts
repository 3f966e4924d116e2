import { describe, expect, test } from 'vitest'
import { createProxyRule, describeUnusableExceptions } from '../../src/config/proxies.ts'

const PROXY = 'http://proxy.example:3128'

/** Whether a request for the URL goes through a proxy with these variables. */
function isProxied(url: string, NO_PROXY = '', own: string | null = null): boolean {
  return createProxyRule(own, { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, NO_PROXY })(new URL(url)) !== null
}

describe('the choice of a proxy', () => {
  test.each([
    'http://localhost:8080/',
    'https://service.localhost/',
    'http://localhost./',
    'http://127.0.0.1/',
    'http://127.8.9.10:99/',
    'http://[::1]:8080/',
    'http://[::ffff:127.0.0.1]/',
    'http://0.0.0.0:8080/',
  ])('never sends a request for loopback through a proxy: %s', (url) => {
    expect(isProxied(url)).toBe(false)
    expect(isProxied(url, '', PROXY)).toBe(false)
  })

  test.each([
    ['example.com', 'https://example.com/', false],
    ['example.com', 'https://api.example.com/', false],
    ['example.com', 'https://notexample.com/', true],
    ['.example.com', 'https://api.example.com/', false],
    ['.example.com', 'https://example.com/', false],
    ['*.example.com', 'https://api.example.com/', false],
    ['EXAMPLE.com', 'https://api.Example.COM./', false],
    ['example.com:8443', 'https://example.com/', true],
    ['example.com:8443', 'https://example.com:8443/', false],
    ['example.com:443', 'https://example.com/', false],
    ['*', 'https://example.com/', false],
    ['one.test, two.test', 'https://two.test/', false],
    ['one.test two.test', 'https://two.test/', false],
    ['10.1.2.3', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://11.1.2.3/', true],
    ['10.0.0.0/99', 'http://10.1.2.3/', true],
    ['2001:db8::/32', 'http://[2001:db8::7]/', false],
    ['2001:db8::7', 'http://[2001:db8::7]:8080/', false],
    ['[2001:db8::7]:8080', 'http://[2001:db8::7]:8080/', false],
    ['[2001:db8::7]:8080', 'http://[2001:db8::7]/', true],
    [',  ,', 'https://example.com/', true],
    ['*:80', 'http://example.com/', false],
    ['*:80', 'https://example.com/', true],
    ['*:443', 'https://example.com/', false],
    ['10.0.0.0/8:8080', 'http://10.1.2.3:8080/', false],
    ['10.0.0.0/8:8080', 'http://10.1.2.3/', true],
    ['[2001:db8::]/32:8080', 'http://[2001:db8::7]:8080/', false],
    ['[2001:db8::]/32', 'http://[2001:db8::7]/', false],
    ['[2001:db8::/32]', 'http://[2001:db8::7]/', false],
    ['[2001:DB8::7]', 'http://[2001:db8::7]/', false],
    ['2001:DB8:0::/32', 'http://[2001:db8::7]/', false],
    ['example.com.', 'https://api.example.com/', false],
    ['.example.com.:8443', 'https://api.example.com:8443/', false],
    ['*.example.com:443', 'https://api.example.com/', false],
    ['example.com:0443', 'https://example.com/', false],
    ['*example.com', 'https://myexample.com/', false],
    ['api.*.example.com', 'https://api.eu.example.com/', false],
    ['api.*.example.com', 'https://www.eu.example.com/', true],
    ['10.1.*', 'http://10.1.2.3/', false],
    ['10.1.*', 'http://10.2.2.3/', true],
    ['::ffff:10.0.0.0/104', 'http://10.1.2.3/', false],
    ['::ffff:10.1.2.3', 'http://10.1.2.3/', false],
    ['10.0.0.0/8', 'http://[::ffff:10.1.2.3]/', false],
    ['[::ffff:a01:203]:8080', 'http://10.1.2.3:8080/', false],
    ['one.test;two.test', 'https://two.test/', false],
    ['one.test\ttwo.test', 'https://two.test/', false],
    ['b\u00fccher.example', 'https://xn--bcher-kva.example/', false],
  ])('NO_PROXY=%s and %s: %s', (exceptions, url, proxied) => {
    expect(isProxied(url, exceptions)).toBe(proxied)
    expect(isProxied(url, exceptions, PROXY)).toBe(proxied)
  })

  test.each([
    'http://example.com',
    'example.com/path',
    'example.com:99999',
    'example.com:0',
    '10.0.0.0/99',
    '2001:db8::/129',
    '10.0.0',
    'fe80::1%eth0',
    'a|b',
    'user@example.com',
    '.',
  ])('reports an entry of NO_PROXY that names no host: %s', (entry) => {
    const [warning, ...others] = describeUnusableExceptions({ no_proxy: `example.com,${entry}` })
    expect(warning).toContain('no_proxy: ')
    expect(others).toEqual([])
  })

  test('takes the setting first, then the variable of the scheme, then the other variables', () => {
    const http = new URL('http://example.com')
    const https = new URL('https://example.com')
    const all = { ALL_PROXY: PROXY, HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY }
    expect(createProxyRule('http://own.example', all)(https)?.setting).toBe('upstream.proxy')
    expect(createProxyRule(null, all)(https)?.setting).toBe('HTTPS_PROXY')
    expect(createProxyRule(null, { ALL_PROXY: PROXY, HTTP_PROXY: PROXY })(https)?.setting).toBe('HTTP_PROXY')
    expect(createProxyRule(null, { HTTPS_PROXY: PROXY })(http)).toBeNull()
    expect(createProxyRule(null, { HTTPS_PROXY: ' ', https_proxy: PROXY })(https)?.setting).toBe('https_proxy')
    expect(createProxyRule(null, { all_proxy: PROXY })(http)?.setting).toBe('all_proxy')
  })
})
