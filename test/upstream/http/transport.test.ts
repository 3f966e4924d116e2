import { once } from 'node:events'
import { createSecureServer, createServer as createHttp2Server } from 'node:http2'
import { createServer as createSecureHttpServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished } from 'vitest'
import { fetchFeed } from '../../../src/upstream/feeds.ts'
import { createOrigin } from '../../support/origin.ts'
import { createProxy } from '../../support/proxy.ts'
import { type Tls, hasOpenssl, makeTls } from '../../support/tls.ts'
import { MAX, connect, refusal, sandbox, scratch } from './sessions.ts'
import { get, session, upstreamOf } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const PATCH_FEED = '/external/patch_feed'

const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()])

let before: [string, string | undefined][] = []
beforeEach(() => {
  before = VARIABLES.map((name) => [name, process.env[name]])
  for (const name of VARIABLES) Reflect.deleteProperty(process.env, name)
})
afterEach(() => {
  for (const [name, value] of before) {
    if (value === undefined) Reflect.deleteProperty(process.env, name)
    else process.env[name] = value
  }
})

const fetchVia = (connection: ReturnType<typeof connect>) => fetchFeed(connection.session, PATCH_FEED, null, MAX)

/** The same service under a name that only the proxy of a test can resolve. */
const beyond = (url: string): string => url.replace(/127\.0\.0\.1|localhost/, 'service.test')

describe('a proxy', () => {
  test('named in the settings is used for every request', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    const url = beyond(service.url)
    expect(await fetchVia(connect(url, { PROXY: proxy.url }))).toMatchObject({ status: 200 })
    expect(proxy.asked).toEqual([`GET ${url}${PATCH_FEED}`])
  })

  test('gets the credentials of its URL, and the service does not', async () => {
    const service = await sandbox()
    const proxy = await createProxy({ credentials: 'mirror:s3cr&t' })
    const { session } = connect(beyond(service.url), {
      PROXY: proxy.url.replace('//', '//mirror:s3cr%26t@'),
    })
    expect(await fetchFeed(session, PATCH_FEED, null, MAX)).toMatchObject({ status: 200 })
    expect(service.requests.entries[0]?.headers['proxy-authorization']).toBeUndefined()
  })

  test.each(['http', 'https'])(
    'that refuses the credentials is reported with its setting and without the credentials: %s',
    async (scheme) => {
      const proxy = await createProxy({ credentials: 'mirror:right' })
      process.env['HTTP_PROXY'] = proxy.url.replace('//', '//mirror:wr0ng@')
      const connection = connect(`${scheme}://service.test:9`, { RETRIES: '3' })
      const { message } = await refusal('upstream_unreachable', fetchVia(connection))
      expect(proxy.asked).toHaveLength(1) // the same password again does not help
      expect(message).toContain('407')
      expect(message).toContain(`through the proxy ${proxy.url} of HTTP_PROXY`)
      expect(message).toContain('set them in the URL of HTTP_PROXY')
      expect(message).not.toContain('wr0ng')
    },
  )

  test('that refuses the credentials gets no more requests in that run, because the account may be locked', async () => {
    const proxy = await createProxy({ credentials: 'mirror:right' })
    const api = session(
      upstreamOf({
        UPSTREAM_PROXY: proxy.url,
        UPSTREAM_API_ROOT: 'https://service.test:9',
        UPSTREAM_API_KEY: 'key-of-a-test-1',
        UPSTREAM_RETRIES: '3',
      }),
    )
    const { message } = await refusal('upstream_unreachable', get(api, '/v1/tags/'))
    expect(message).toContain(`through the proxy ${proxy.url} of upstream.proxy`)
    await refusal('upstream_unreachable', get(api, '/v1/images/'))
    expect(proxy.asked).toHaveLength(1)
  })

  test('that is unreachable is reported with its setting, and the service is not asked directly', async () => {
    const url = 'http://service.test:9'
    const connection = connect(url, { PROXY: 'http://127.0.0.1:9', RETRIES: '1' })
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toMatch(/ECONNREFUSED.*through the proxy http:\/\/127\.0\.0\.1:9 of upstream\.proxy/)
  })

  longTest('is named in errors of broken, late and failed answers', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    const named = `through the proxy ${proxy.url} of upstream.proxy`
    const more = { PROXY: proxy.url, RETRIES: '0', REQUEST_TIMEOUT_MS: '300' }
    const failing = async (code: 'upstream_unreachable' | 'upstream_status'): Promise<string> =>
      (await refusal(code, fetchVia(connect(beyond(service.url), more)))).message
    service.faults.set(PATCH_FEED, { kind: 'status', status: 503 })
    expect(await failing('upstream_status')).toContain(named)
    service.faults.clear()
    service.faults.set(PATCH_FEED, { kind: 'stall' })
    expect(await failing('upstream_unreachable')).toMatch(/within 300 ms.*through the proxy/)
  })

  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'])('of the environment is used: %s', async (name) => {
    const service = await sandbox()
    const proxy = await createProxy()
    process.env[name] = proxy.url
    await fetchVia(connect(beyond(service.url)))
    expect(proxy.asked.length).toBe(1)
  })

  test('is never used for requests to this machine', async () => {
    const service = await sandbox()
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) process.env[name] = 'http://127.0.0.1:9'
    for (const url of [service.url, service.url.replace('127.0.0.1', 'localhost')])
      for (const more of [{}, { PROXY: 'http://127.0.0.1:9' }] as Record<string, string>[])
        expect(await fetchVia(connect(url, more))).toMatchObject({ status: 200 })
  })

  test.each(['proxy.example:3128', 'ftp://proxy.example', 'http://', 'socks5://u:s3cret@proxy.example'])(
    'of the environment that is not a URL is refused by the name of its variable: %s',
    async (value) => {
      process.env['HTTPS_PROXY'] = value
      const { message } = await refusal('config', fetchVia(connect('https://service.test')))
      expect(message).toMatch(/^HTTPS_PROXY: /)
      expect(message).not.toContain('s3cret')
    },
  )
})

describe.skipIf(!hasOpenssl)('https (needs the openssl command)', () => {
  let tls: Tls
  const secure = () => createOrigin((_request, response) => response.end('{"secure":true}'), tls)
  beforeEach(() => {
    tls = makeTls(scratch())
  })

  longTest('works with a private certificate authority', async () => {
    const { url } = await secure()
    const answer = await fetchVia(connect(url, { CA_FILE: tls.caFile }))
    expect(answer).toMatchObject({ status: 200, body: Buffer.from('{"secure":true}') })
  })

  longTest('refuses a certificate of an untrusted authority with the reason', async () => {
    const { url, requests } = await secure()
    const { message } = await refusal('upstream_unreachable', fetchVia(connect(url)))
    expect(message).toContain(url)
    expect(message).toMatch(/unable to verify|self-signed|unable to get local issuer/)
    expect(message).toContain('in upstream.caFile')
    const other = connect(url, { CA_FILE: makeTls(scratch()).caFile })
    await refusal('upstream_unreachable', fetchVia(other))
    expect(requests).toEqual([])
  })

  test('says that an address of plain http speaks no TLS', async () => {
    const { url } = await createOrigin((_request, response) => response.end('{}'))
    const { message } = await refusal('upstream_unreachable', fetchVia(connect(url.replace('http:', 'https:'))))
    expect(message).toMatch(
      /: TLS: wrong version number \(ERR_SSL_WRONG_VERSION_NUMBER\); it speaks no TLS there: write http/,
    )
  })

  test('names a chain that lacks the certificate which signed the last one', async () => {
    const server = createSecureHttpServer({ key: tls.key, cert: tls.cert })
    await once(server.listen(0), 'listening')
    onTestFinished(() => void server.close())
    const connection = connect(`https://localhost:${(server.address() as AddressInfo).port}`)
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toMatch(/without the one that signed it.+intermediate certificate.+in upstream\.caFile/)
  })

  test.each(['https', 'http'])('names an %s server that speaks only HTTP/2', async (scheme) => {
    const server = scheme === 'https' ? createSecureServer({ key: tls.key, cert: tls.cert }) : createHttp2Server()
    await once(server.listen(0), 'listening')
    onTestFinished(() => void server.close())
    const url = `${scheme}://localhost:${(server.address() as AddressInfo).port}`
    const limits = { CA_FILE: tls.caFile, RETRIES: '0' }
    const { message } = await refusal('upstream_unreachable', fetchVia(connect(url, limits)))
    expect(message).toContain('the server speaks only HTTP/2')
  })

  longTest('refuses a certificate for another host', async () => {
    const { port, requests } = await secure()
    const connection = connect(`https://127.0.0.1:${port}`, { CA_FILE: tls.caFile })
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toMatch(/127\.0\.0\.1.*(altnames|cert)/)
    expect(requests).toEqual([])
  })

  longTest('uses a tunnel through a proxy, checked against the same authority', async () => {
    const { url, port } = await secure()
    const proxy = await createProxy()
    process.env['HTTPS_PROXY'] = proxy.url
    const far = beyond(url)
    expect(await fetchVia(connect(far, { CA_FILE: tls.caFile }))).toMatchObject({ status: 200 })
    expect(proxy.asked).toEqual([`CONNECT service.test:${port}`])
    const { message } = await refusal('upstream_unreachable', fetchVia(connect(far)))
    expect(message).toMatch(/through the proxy .* of HTTPS_PROXY.*in upstream\.caFile/)
    Reflect.deleteProperty(process.env, 'HTTPS_PROXY')
    const named = connect(far, { CA_FILE: tls.caFile, PROXY: proxy.url })
    expect(await fetchVia(named)).toMatchObject({ status: 200 })
  })

  test('reports a tunnel that the proxy refuses as a network error', async () => {
    const { url } = await secure()
    const proxy = await createProxy({ credentials: 'a:b' })
    const more = { CA_FILE: tls.caFile, PROXY: proxy.url, RETRIES: '0' }
    const connection = connect(beyond(url), more)
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toContain('407')
  })

  test('refuses a redirect to http', async () => {
    const plain = await createOrigin((_request, response) => response.end('{}'))
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(302, { Location: `http://localhost:${plain.port}/` }).end()
    }, tls)
    const { message } = await refusal('upstream_status', fetchVia(connect(url, { CA_FILE: tls.caFile })))
    expect(message).toContain(`redirected to http://localhost:${plain.port}`)
    expect(plain.requests).toEqual([])
  })
})
