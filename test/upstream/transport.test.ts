import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PATCH_FEED, fetchFeed } from '../../src/upstream/feeds.ts'
import { createOrigin } from '../support/origin.ts'
import { createProxy } from '../support/proxy.ts'
import { type Tls, hasOpenssl, makeTls } from '../support/tls.ts'
import { MAX, connect, refusal, sandbox, scratch } from './sessions.ts'

const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy']

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

const fetchVia = (connection: ReturnType<typeof connect>) =>
  fetchFeed(connection.session, PATCH_FEED, null, MAX)

describe('a proxy', () => {
  test('named in the settings carries every request', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    expect(await fetchVia(connect(service.url, { PROXY: proxy.url }))).toMatchObject({
      status: 200,
    })
    expect(proxy.asked).toEqual([`GET ${service.url}${PATCH_FEED}`])
  })

  test('gets the credentials of its URL, and the service never sees them', async () => {
    const service = await sandbox()
    const proxy = await createProxy({ credentials: 'mirror:s3cr&t' })
    const { session } = connect(service.url, {
      PROXY: proxy.url.replace('//', '//mirror:s3cr%26t@'),
    })
    expect(await fetchFeed(session, PATCH_FEED, null, MAX)).toMatchObject({ status: 200 })
    expect(service.requests.entries[0]?.headers['proxy-authorization']).toBeUndefined()
  })

  test('that refuses the credentials is named, and they are not', async () => {
    const service = await sandbox()
    const proxy = await createProxy({ credentials: 'mirror:right' })
    const { session } = connect(service.url, {
      PROXY: proxy.url.replace('//', '//mirror:wr0ng@'),
      RETRIES: '0',
    })
    const { message } = await refusal(
      'upstream_unreachable',
      fetchFeed(session, PATCH_FEED, null, MAX),
    )
    expect(message).toContain('407')
    expect(message).not.toContain('wr0ng')
    expect(service.requests.count()).toBe(0)
  })

  test('that is not there is a fault of the network, and the service is not asked past it', async () => {
    const service = await sandbox()
    const connection = connect(service.url, { PROXY: 'http://127.0.0.1:9', RETRIES: '1' })
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toContain('ECONNREFUSED')
    expect(service.requests.count()).toBe(0)
  })

  test.each(['HTTP_PROXY', 'http_proxy'])('of the environment is used: %s', async (name) => {
    const service = await sandbox()
    const proxy = await createProxy()
    process.env[name] = proxy.url
    await fetchVia(connect(service.url))
    expect(proxy.asked.length).toBe(1)
  })

  test('of the environment counts though another of its variables is empty', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    process.env['HTTPS_PROXY'] = ''
    process.env['HTTP_PROXY'] = proxy.url
    await fetchVia(connect(service.url))
    expect(proxy.asked.length).toBe(1)
  })

  test('for https alone leaves http direct', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    process.env['HTTPS_PROXY'] = proxy.url
    expect(await fetchVia(connect(service.url))).toMatchObject({ status: 200 })
    expect(proxy.asked).toEqual([])
  })

  test('of the environment is passed by for the hosts of NO_PROXY', async () => {
    const service = await sandbox()
    const proxy = await createProxy()
    process.env['HTTP_PROXY'] = proxy.url
    process.env['NO_PROXY'] = 'internal.example, 127.0.0.1'
    await fetchVia(connect(service.url))
    expect(proxy.asked).toEqual([])
    process.env['NO_PROXY'] = 'internal.example'
    await fetchVia(connect(service.url))
    expect(proxy.asked.length).toBe(1)
  })

  test('named in the settings takes the place of the environment, NO_PROXY included', async () => {
    const service = await sandbox()
    const [ours, theirs] = [await createProxy(), await createProxy()]
    process.env['HTTP_PROXY'] = theirs.url
    process.env['NO_PROXY'] = '*'
    await fetchVia(connect(service.url, { PROXY: ours.url }))
    expect([ours.asked.length, theirs.asked.length]).toEqual([1, 0])
  })

  test.each(['proxy.example:3128', 'ftp://proxy.example', 'http://'])(
    'of the environment that is no URL is refused by the name of its variable: %s',
    (value) => {
      process.env['HTTPS_PROXY'] = value
      expect(() => connect('http://127.0.0.1:9')).toThrow(/^HTTPS_PROXY: not the http/)
    },
  )
})

describe.skipIf(!hasOpenssl)('https (needs the openssl command)', () => {
  let tls: Tls
  const secure = () => createOrigin((_request, response) => response.end('{"secure":true}'), tls)
  beforeEach(() => {
    tls = makeTls(scratch())
  })

  test('works with an authority of your own', async () => {
    const { url } = await secure()
    const answer = await fetchVia(connect(url, { CA_FILE: tls.caFile }))
    expect(answer).toMatchObject({ status: 200, body: Buffer.from('{"secure":true}') })
  })

  test('is refused when nobody trusted signed the certificate, and the reason is named', async () => {
    const { url, requests } = await secure()
    const { message } = await refusal('upstream_unreachable', fetchVia(connect(url)))
    expect(message).toContain(url)
    expect(message).toMatch(/unable to verify|self-signed|unable to get local issuer/)
    const other = connect(url, { CA_FILE: makeTls(scratch()).caFile })
    await refusal('upstream_unreachable', fetchVia(other))
    expect(requests).toEqual([])
  })

  test('is refused when the certificate is for another host', async () => {
    const { port, requests } = await secure()
    const connection = connect(`https://127.0.0.1:${port}`, { CA_FILE: tls.caFile })
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toMatch(/127\.0\.0\.1.*(altnames|cert)/)
    expect(requests).toEqual([])
  })

  test('goes through a proxy as a tunnel, checked against the same authority', async () => {
    const { url, port } = await secure()
    const proxy = await createProxy()
    process.env['HTTPS_PROXY'] = proxy.url
    expect(await fetchVia(connect(url, { CA_FILE: tls.caFile }))).toMatchObject({ status: 200 })
    expect(proxy.asked).toEqual([`CONNECT localhost:${port}`])
    await refusal('upstream_unreachable', fetchVia(connect(url)))
    Reflect.deleteProperty(process.env, 'HTTPS_PROXY')
    const named = connect(url, { CA_FILE: tls.caFile, PROXY: proxy.url })
    expect(await fetchVia(named)).toMatchObject({ status: 200 })
  })

  test('a tunnel that the proxy refuses is a fault of the network', async () => {
    const { url } = await secure()
    const proxy = await createProxy({ credentials: 'a:b' })
    const connection = connect(url, { CA_FILE: tls.caFile, PROXY: proxy.url, RETRIES: '0' })
    const { message } = await refusal('upstream_unreachable', fetchVia(connection))
    expect(message).toContain('407')
  })

  test('is never left for http by a redirect', async () => {
    const plain = await createOrigin((_request, response) => response.end('{}'))
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(302, { Location: `http://localhost:${plain.port}/` }).end()
    }, tls)
    const { message } = await refusal(
      'upstream_status',
      fetchVia(connect(url, { CA_FILE: tls.caFile })),
    )
    expect(message).toContain(`redirected to http://localhost:${plain.port}`)
    expect(plain.requests).toEqual([])
  })
})
