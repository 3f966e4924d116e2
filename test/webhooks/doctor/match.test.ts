import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { KeptSecret } from '../../../src/webhooks/receive/secret-file.ts'
import { readCapture } from '../../../src/webhooks/doctor/capture.ts'
import { type Case, diagnose } from '../../../src/webhooks/doctor/diagnosis.ts'
import { keyPair, signedByPair } from '../signing.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
const ALWAYS: Pick<KeptSecret, 'notBefore' | 'notAfter'> = { notBefore: null, notAfter: null }
const NOW = 1_800_000_000_000
const TIME = String(NOW / 1000)
const BODY = '{"id":"e1","url":"https://x/ü","n":[1,2]}'

const signedContent = (id: string, time: string, body: string): Buffer => Buffer.from(`${id}.${time}.${body}`)
const standard = (content: Buffer): string =>
  `v1,${createHmac('sha256', keyOf(SECRET)).update(content).digest('base64')}`
const keyOf = (secret: string): Buffer => Buffer.from(secret.slice(6), 'base64')

interface Delivery {
  headers: Record<string, string | string[]>
  body: string
}

function signed(more: { body?: string; time?: string; mac?: (content: Buffer) => string } = {}) {
  const { body = BODY, time = TIME } = more
  const sign = more.mac ?? standard
  const signature = sign(signedContent('msg_1', time, body))
  const headers: Delivery['headers'] = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': time,
    'webhook-signature': signature,
  }
  return { headers, body }
}

function judge(
  file: string | Buffer | Delivery,
  secrets = [SECRET],
  now = NOW,
  dialect: Case['dialect'] = 'any',
  held = ALWAYS,
) {
  const bytes = typeof file === 'string' || Buffer.isBuffer(file) ? file : JSON.stringify(file)
  return diagnose({
    capture: readCapture(Buffer.from(bytes)),
    secrets: secrets.map((secret, i) => ({ ...held, label: `secret ${i + 1}`, secret })),
    now,
    canRegister: true,
    toleranceSeconds: 300,
    dialect,
  })
}

const http = ({ headers, body }: Delivery, eol = '\r\n'): string =>
  ['POST /-/webhooks HTTP/1.1', ...Object.entries(headers).map(([a, b]) => `${a}: ${String(b)}`), '', body].join(eol)

describe('the doctor of webhooks', () => {
  test('accepts a valid delivery in any capture format, and names its secret and form', () => {
    const delivery = signed()
    const json = { headers: delivery.headers, bodyBase64: Buffer.from(BODY).toString('base64') }
    const raw = { rawHeaders: Object.entries(delivery.headers).flat(), body: BODY }
    const files = [delivery, http(delivery), http(delivery, '\n'), JSON.stringify(json), JSON.stringify(raw)]
    for (const file of files) {
      const found = judge(file, [OTHER, SECRET])
      expect(found).toMatchObject({ verdict: 'accepted', problems: [], ageSeconds: 0 })
      expect(found.match).toMatchObject({
        secret: 'secret 2',
        key: expect.stringContaining('decoded') as string,
      })
    }
  })

  test('verifies v1a signatures by public keys, and says when the stored keys cannot verify a form', () => {
    const { privateKey, whpk } = keyPair()
    const headers = signedByPair(privateKey, { id: 'msg_1', timestamp: NOW / 1000, body: BODY })
    const found = judge({ headers, body: BODY }, [SECRET, whpk])
    expect(found).toMatchObject({ verdict: 'accepted', match: { secret: 'secret 2', usual: true } })
    expect(judge({ headers, body: `${BODY}\n` }, [whpk]).problems[0]).toContain('the body without')
    expect(judge({ headers, body: BODY }, [SECRET]).problems).toEqual([expect.stringContaining('has no public key')])
    expect(judge(signed(), [whpk]).problems).toEqual([expect.stringContaining('has public keys only')])
    expect(judge({ headers, body: BODY }, [keyPair().whpk]).problems).toEqual([
      expect.stringContaining('no stored secret gives this signature'),
    ])
    const forged = signed({ mac: (content) => `v1,${createHmac('sha256', whpk).update(content).digest('hex')}` })
    expect(judge(forged, [whpk])).toMatchObject({ verdict: 'refused', match: null })
  })

  test('says when a valid form is not the pinned one, or is not separated by spaces', () => {
    const pinned = judge(signed(), [SECRET], NOW, 'vendor')
    expect(pinned.problems.join()).toContain('webhooks.dialect pins (vendor)')
    const delivery = signed()
    const junk = `${String(delivery.headers['webhook-signature'])} v1,junk`
    const beside = judge({
      ...delivery,
      headers: { ...delivery.headers, 'webhook-signature': junk },
    })
    expect(beside).toMatchObject({ verdict: 'accepted', match: { usual: true } })
    const tabbed = judge({
      ...delivery,
      headers: { ...delivery.headers, 'webhook-signature': junk.replace(' ', '\t') },
    })
    expect(tabbed.verdict).toBe('refused')
    expect(tabbed.problems.join()).toContain('no tabs between')
  })

  test.each([
    [{ notBefore: null, notAfter: NOW - 1 }, 'refused'],
    [{ notBefore: NOW + 1, notAfter: null }, 'refused'],
    [{ notBefore: NOW, notAfter: NOW }, 'accepted'],
  ])('uses a secret only in its period of validity: %j', (dates, verdict) => {
    const found = judge(signed(), [SECRET], NOW, 'any', dates)
    expect([found.verdict, found.problems.join()]).toEqual([
      verdict,
      verdict === 'accepted' ? '' : (expect.stringContaining('does not count at that time') as string),
    ])
  })

  test('reads a body that was sent in chunks', () => {
    const delivery = signed()
    const bytes = Buffer.from(BODY)
    const head = http({
      headers: { ...delivery.headers, 'transfer-encoding': 'chunked' },
      body: '',
    })
    const chunks = [bytes.subarray(0, 7), bytes.subarray(7)].flatMap((part) => [
      Buffer.from(`${part.length.toString(16)}\r\n`),
      part,
      Buffer.from('\r\n'),
    ])
    expect(judge(Buffer.concat([Buffer.from(head), ...chunks, Buffer.from('0\r\n\r\n')]))).toMatchObject({
      verdict: 'accepted',
    })
  })

  test.each([
    ['vendor', (content: Buffer) => `v1,${createHmac('sha256', SECRET).update(content).digest('hex')}`, true],
    [
      'uppercase hex',
      (content: Buffer) => `v1,${createHmac('sha256', SECRET).update(content).digest('hex').toUpperCase()}`,
      false,
    ],
    [
      'base64url',
      (content: Buffer) => `v1,${createHmac('sha256', keyOf(SECRET)).update(content).digest('base64url')}`,
      false,
    ],
    [
      'of the part after whsec_ as text',
      (content: Buffer) => `v1,${createHmac('sha256', SECRET.slice(6)).update(content).digest('base64')}`,
      false,
    ],
  ])('recognizes the form %s', (_name, mac, usual) => {
    const { match, verdict } = judge(signed({ mac }))
    expect(match).toMatchObject({ usual, body: 'as captured' })
    expect(verdict).toBe(usual ? 'accepted' : 'refused')
  })

  test.each([
    ['compact', JSON.stringify(JSON.parse(BODY))],
    ['indented by two', JSON.stringify(JSON.parse(BODY), null, 2)],
    ['with spaces after colons and commas', '{"id": "e1", "url": "https://x/ü", "n": [1, 2]}'],
    ['slashes escaped', BODY.replace(/\//g, '\\/')],
    ['outside ASCII escaped', BODY.replace('ü', '\\u00fc')],
    ['with a line end', `${JSON.stringify(JSON.parse(BODY), null, 2)}\n`],
  ])('detects that the body was serialized again: it was signed %s', (name, original) => {
    const changed = original === BODY ? JSON.stringify(JSON.parse(BODY), null, 4) : BODY
    const found = judge({ ...signed({ body: original }), body: changed })
    expect(found.verdict).toBe('refused')
    expect(found.match?.body).toContain(name)
    expect(found.problems.join()).toContain('Pass the raw bytes on')
  })

  test('detects converted line ends, in either direction', () => {
    const lf = '{\n"id": 1.0\n}'
    const crlf = '{\r\n"id": 1.0\r\n}'
    expect(judge({ ...signed({ body: lf }), body: crlf }).match?.body).toContain('with LF')
    expect(judge({ ...signed({ body: crlf }), body: lf }).match?.body).toContain('with CRLF')
  })

  test('detects an added or removed line end, and compares Content-Length', () => {
    const trimmed = judge({ ...signed({ body: `${BODY}\n` }), body: BODY })
    expect(trimmed.match?.body).toBe('with a line end after it')
    const headers = { ...signed().headers, 'content-length': String(Buffer.byteLength(BODY)) }
    const longer = judge(http({ headers, body: `${BODY}\n` }))
    expect(longer.match?.body).toContain('without')
    expect(longer.problems.join()).toContain('Content-Length')
  })

  test('detects a wrong clock, and does not suspect the secret alone for a changed header', () => {
    const late = judge(signed({ time: String(NOW / 1000 - 301) }))
    expect(late).toMatchObject({ verdict: 'refused', ageSeconds: 301, match: { usual: true } })
    expect(late.problems.join()).toContain('301 s old')
    expect(judge(signed({ time: String(NOW / 1000 + 7200) })).problems.join()).toContain('ahead')
    const delivery = signed({ time: String(NOW / 1000 + 7200) })
    const moved = judge({
      ...delivery,
      headers: { ...delivery.headers, 'webhook-timestamp': TIME },
    })
    expect(moved.match).toBeNull()
    expect(moved.problems.join()).toContain('webhook-timestamp or the body was changed')
  })

  test.each([
    ['webhook-id', 'a.b', 'webhook-id is malformed'],
    ['webhook-timestamp', `${TIME}000`, 'looks like milliseconds'],
    ['webhook-timestamp', `${TIME}.5`, 'has a fraction'],
    ['webhook-timestamp', '2026-11-21T09:06:38Z', 'a date in words'],
    ['webhook-timestamp', `0${TIME}`, 'not a plain number'],
    ['webhook-signature', ' ', 'webhook-signature is empty'],
    ['webhook-signature', 'v2,abc', 'no part that begins with "v1," (HMAC) or "v1a,"'],
    ['webhook-signature', 'v1a,abc', 'the mirror has no public key'],
    ['webhook-signature', 'v1,abc', 'no part of webhook-signature is 32 bytes'],
  ])('names the header that is wrong: %s: %s', (name, value, problem) => {
    const delivery = signed()
    const found = judge({ ...delivery, headers: { ...delivery.headers, [name]: value } })
    expect(found.problems.join('\n')).toContain(problem)
    expect(found.verdict).toBe('refused')
  })

  test('accepts a body that was signed as sent, compressed or not, and names a contradicting header', () => {
    const delivery = signed()
    const headers = { ...delivery.headers, 'content-encoding': 'gzip' }
    expect(judge({ headers, body: BODY }).verdict).toBe('accepted')
    const { verdict, problems } = judge({ headers, body: 'compressed' })
    expect([verdict, problems.join()]).toEqual(['refused', expect.stringContaining('come uncompressed')])
  })

  test('does not judge secrets when a signed header is missing', () => {
    const { headers, body } = signed()
    for (const lost of ['webhook-id', 'webhook-timestamp']) {
      const rest = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== lost))
      const { problems } = judge({ headers: rest, body })
      expect(problems).toEqual([expect.stringContaining(`${lost} is missing`)])
    }
    const alone = standard(Buffer.from(body))
    const { problems } = judge({ headers: { 'webhook-signature': alone }, body })
    expect(problems.join()).toContain('the sender signs the body alone')
  })

  test('names headers that are missing, repeated or misspelled', () => {
    const { headers, body } = signed()
    const missing = Object.entries(headers).filter(([name]) => name !== 'webhook-id')
    expect(judge({ headers: Object.fromEntries(missing), body }).problems.join()).toContain('missing')
    const renamed = { ...Object.fromEntries(missing), 'svix-id': 'msg_1' }
    expect(judge({ headers: renamed, body }).problems.join()).toContain('"svix-id" is not read')
    const doubled = judge({ headers: { ...headers, 'webhook-id': ['msg_1', 'msg_1'] }, body })
    expect(doubled.problems.join()).toContain('2 times')
  })

  test('says when no secret fits or none exists, and quotes no secret, signature or body', () => {
    const delivery = signed()
    const wrong = judge(delivery, [OTHER])
    expect(wrong).toMatchObject({ verdict: 'refused', match: null })
    expect(wrong.problems.join()).toContain("another subscription's secret")
    expect(judge(delivery, []).problems.join()).toContain('webhooks register')
    const all = JSON.stringify([wrong, judge(delivery), judge(delivery, [])])
    for (const hidden of [
      SECRET,
      SECRET.slice(6),
      OTHER,
      String(delivery.headers['webhook-signature']).slice(3),
      '"e1"',
    ])
      expect(all).not.toContain(hidden)
  })

  test.each([
    '',
    'no request',
    '{',
    '{"body":"x"}',
    '{"headers":{}}',
    '{"headers":[1],"body":""}',
    'POST / HTTP/1.1\r\nbad\r\n\r\n',
  ])('explains the accepted formats for a file that is no capture: %j', (file) => {
    expect(() => readCapture(Buffer.from(file))).toThrow(/no captured request/)
  })
})

const VECTORS = new URL('../../../../shared/data/webhook-vectors.json', import.meta.url)

interface Vector extends Delivery {
  name: string
  secret: string
  now: number
  expect: 'accept' | 'reject'
}

describe.runIf(existsSync(VECTORS))('the doctor of webhooks, for the published vectors,', () => {
  const vectors = existsSync(VECTORS) ? (JSON.parse(readFileSync(VECTORS, 'utf8')) as Vector[]) : []
  test.each(vectors.map((vector) => [vector.name, vector] as const))('judges %s', (_name, vector) => {
    const { secret, headers, body, now } = vector
    const found = judge({ headers, body }, secret === '' ? [] : [secret], now * 1000)
    expect(found.verdict).toBe(vector.expect === 'accept' ? 'accepted' : 'refused')
  })
})

test('a mirror without an upstream is not advised to register at one', () => {
  const capture = readCapture(Buffer.from(JSON.stringify({ headers: {}, body: '' })))
  const of = (canRegister: boolean): string =>
    diagnose({ capture, secrets: [], now: NOW, toleranceSeconds: 300, dialect: 'any', canRegister }).problems.join()
  expect(of(true)).toContain('create one with "patchmirror webhooks register"')
  expect(of(false)).toContain('has no secret: set one in webhooks.secrets')
})
