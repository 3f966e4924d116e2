import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createSecretSearch } from '../../src/upstream/secret-search.ts'
import { createOrigin } from '../support/origin.ts'
import { MAX, refusal } from './http/sessions.ts'
import { get, session, upstreamOf } from './fixtures.ts'

const KEY = 'pm_9f/Zs7+Qe"x~aB3'
const basic = (text: string): string => Buffer.from(text).toString('base64')
const everyByte = (text: string, prefix: string): string =>
  [...Buffer.from(text)].map((byte) => prefix + byte.toString(16).padStart(2, '0')).join('')

const FORMS: [name: string, text: string][] = [
  ['plain', KEY],
  ['as JSON escapes it', JSON.stringify(KEY).slice(1, -1)],
  ['with escaped slashes', KEY.replaceAll('/', '\\/')],
  ['with every character as a JSON escape', everyByte(KEY, '\\u00')],
  ['Base64 of a Basic header', basic(`${KEY}:`)],
  ['Base64 of itself', basic(KEY)],
  ['Base64 after one byte', basic(`x${KEY}y`)],
  ['Base64 after two bytes', basic(`xy${KEY}`)],
  ['base64url', Buffer.from(`id=${KEY}`).toString('base64url')],
  ['Base64 with escaped slashes', basic(`??${KEY}>>`).replaceAll('/', '\\/')],
  ['percent-encoded', encodeURIComponent(KEY)],
  [
    'percent-encoded, lower case',
    encodeURIComponent(KEY)
      .toLowerCase()
      .replace(/pm_9f%2fzs7%2bqe%22x~ab3/, 'pm_9f%2fZs7%2bQe%22x~aB3'),
  ],
  ['with every character percent-encoded', everyByte(KEY, '%')],
  ['percent-encoded twice', encodeURIComponent(encodeURIComponent(KEY))],
  ['Base64, percent-encoded', encodeURIComponent(basic(`${KEY}:`))],
]

describe('a credential', () => {
  const search = createSecretSearch(() => [KEY])

  test.each(FORMS)('is found wherever its chunks end: %s', (_, text) => {
    const bytes = Buffer.from(`{"a":"${text}"}`)
    expect(() => search.check(bytes, '/v1/me')).toThrow(expect.objectContaining({ code: 'upstream_secret' }))
    for (let cut = 0; cut <= bytes.length; cut++) {
      const take = search.stream('/v1/me')
      expect(() => {
        take(bytes.subarray(0, cut))
        take(bytes.subarray(cut))
      }).toThrow(/\/v1\/me: upstream returned the credential/)
    }
    const single = search.stream('/v1/me')
    expect(() => {
      for (const byte of bytes) single(Buffer.from([byte]))
    }).toThrow(/upstream returned the credential/)
  })

  test('is found across the pieces in which a large body is searched', () => {
    for (const at of [(1 << 20) - 5, (1 << 20) + 3, (2 << 20) - 1]) {
      const large = Buffer.alloc((2 << 20) + 100, 'a')
      large.write(KEY, at)
      expect(() => search.check(large, '/x')).toThrow(/credential/)
    }
  })

  test('is found by its last bytes when it is long, and is not printed', () => {
    const token = `eyJhbGciOiJSUzI1NiJ9.${'x'.repeat(1200)}.sIgNaTuReOfThEtOkEn-0123456789_abcdefghijklmnop`
    const long = createSecretSearch(() => [token, 'short'])
    expect(() => long.check(Buffer.from(`{"t":"${token}"}`), '/x')).toThrow(/credential/)
    expect(() => long.check(Buffer.from(basic(`Bearer ${token}`)), '/x')).toThrow(/credential/)
    expect(() => long.check(Buffer.from('short eyJhbGciOiJSUzI1NiJ9.'), '/x')).not.toThrow()
    expect(search.scrub(`said ${KEY} and ${encodeURIComponent(KEY)}`)).toBe('said ******** and ********')
  })

  test('is not found in a text that only resembles it', () => {
    const near = [KEY.slice(0, -1), KEY.toUpperCase(), basic(KEY.slice(1))].join(' ')
    expect(() => search.check(Buffer.from(near), '/x')).not.toThrow()
    expect(() => createSecretSearch(() => []).check(Buffer.from(KEY), '/x')).not.toThrow()
  })
})

describe('an answer that returns the credential is refused', () => {
  const named = (url: string): Record<string, string> => ({
    UPSTREAM_API_ROOT: url,
    UPSTREAM_API_KEY: KEY,
  })

  test.each([
    ['in its body', {}, Buffer.from(JSON.stringify({ note: `key ${KEY}` }))],
    ['in gzip', { 'Content-Encoding': 'gzip' }, gzipSync(JSON.stringify({ note: basic(`${KEY}:`) }))],
    ['in its ETag', { ETag: `"${basic(KEY)}"` }, Buffer.from('{}')],
  ])('%s, by every surface', async (_, headers, body) => {
    const { url, requests } = await createOrigin((_request, response) => {
      response.writeHead(200, headers).end(body)
    })
    const upstream = upstreamOf(named(url))
    for (const surface of ['remediation', 'public'] as const) {
      const made = session(upstream, surface)
      const { message } = await refusal('upstream_secret', made.fetchDocument('/me', { maxBytes: MAX, gzip: true }))
      expect(message).toMatch(/\/me: upstream returned the credential .* Replace the credential/)
      expect(message).not.toMatch(/pm_9f|Zs7/)
    }
    expect(requests.length).toBe(2) // asking again would return it again
  })

  test('and what a refusal says is logged without it', async () => {
    const { url } = await createOrigin((_request, response) => {
      const message = `no such user ${encodeURIComponent(KEY)} ${basic(`id:${KEY}`)}`
      response.writeHead(403).end(JSON.stringify({ message }))
    })
    const { message } = await refusal('upstream_auth', get(session(upstreamOf(named(url))), '/me'))
    expect(message).toMatch(/no such user \*{8} a\S*\*{8}/)
  })

  test('also when the token was issued during the run, or was replaced since', async () => {
    let issued = 0
    let answer = ''
    const { url } = await createOrigin((request, response) => {
      if (request.url !== '/oauth/token') return response.end(answer)
      const access_token = `issued-token-${++issued}`
      return response.end(JSON.stringify({ access_token, expires_in: 100 }))
    })
    let now = Date.now()
    const oauth = { OAUTH_CLIENT_ID: 'mirror', OAUTH_CLIENT_SECRET: 'client-secret-1' }
    const places = { UPSTREAM_API_ROOT: url, OAUTH_AUTH_URL: url, OAUTH_AUDIENCE: url }
    const made = session(upstreamOf({ ...oauth, ...places }, { now: () => now }))
    const ask = (text: string): Promise<unknown> => {
      answer = JSON.stringify({ text })
      return made.fetchDocument('/me', { maxBytes: MAX })
    }
    await refusal('upstream_secret', ask('issued-token-1'))
    now += 200_000
    await ask('another one')
    expect(issued).toBe(2)
    for (const secret of ['issued-token-2', 'issued-token-1', 'client-secret-1'])
      await refusal('upstream_secret', ask(`it was ${secret}.`))
  })
})
