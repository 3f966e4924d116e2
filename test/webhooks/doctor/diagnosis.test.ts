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
      expect(found.match).toEqual({ secret: 'secret 2', form: 'standard' })
    }
  })

  test('verifies v1a signatures by public keys', () => {
    const { privateKey, whpk } = keyPair()
    const headers = signedByPair(privateKey, { id: 'msg_1', timestamp: NOW / 1000, body: BODY })
    const found = judge({ headers, body: BODY }, [SECRET, whpk])
    expect(found).toMatchObject({ verdict: 'accepted', match: { secret: 'secret 2', form: 'ed25519' } })
    for (const secrets of [[SECRET], [keyPair().whpk]])
      expect(judge({ headers, body: BODY }, secrets).problems).toEqual([expect.stringContaining('no stored secret')])
    const forged = signed({ mac: (content) => `v1,${createHmac('sha256', whpk).update(content).digest('hex')}` })
    expect(judge(forged, [whpk])).toMatchObject({ verdict: 'refused', match: null })
  })

  test('says when a valid form is not the pinned one', () => {
    const pinned = judge(signed(), [SECRET], NOW, 'vendor')
    expect(pinned.match).toEqual({ secret: 'secret 1', form: 'standard' })
    expect(pinned.problems).toEqual([expect.stringContaining('webhooks.dialect pins (vendor)')])
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

  test('takes the form of the vendor, and no other spelling of it', () => {
    const mac = (content: Buffer) => createHmac('sha256', SECRET).update(content).digest('hex')
    const found = judge(signed({ mac: (content) => `v1,${mac(content)}` }))
    expect(found).toMatchObject({ verdict: 'accepted', match: { form: 'vendor' } })
    const shouted = judge(signed({ mac: (content) => `v1,${mac(content).toUpperCase()}` }))
    expect(shouted).toMatchObject({ verdict: 'refused', match: null })
  })

  test('says that the body may have been changed on the way', () => {
    const { verdict, match, problems } = judge({ ...signed(), body: JSON.stringify(JSON.parse(BODY), null, 2) })
    expect([verdict, match]).toEqual(['refused', null])
    expect(problems).toEqual([expect.stringContaining('the body was changed on the way')])
  })

  test('detects a wrong clock, and does not suspect the secret alone for a changed header', () => {
    const late = judge(signed({ time: String(NOW / 1000 - 301) }))
    expect(late).toMatchObject({ verdict: 'refused', ageSeconds: 301, match: { form: 'standard' } })
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
    ['webhook-timestamp', `${TIME}.5`, 'webhook-timestamp is malformed'],
    ['webhook-signature', ' ', 'webhook-signature is malformed'],
    ['webhook-signature', 'v1,abc', 'webhook-signature is malformed'],
    ['webhook-signature', 'v2,abc', 'no stored secret or public key'],
  ])('names the header that is wrong: %s: %s', (name, value, problem) => {
    const delivery = signed()
    const found = judge({ ...delivery, headers: { ...delivery.headers, [name]: value } })
    expect(found.problems.join('\n')).toContain(problem)
    expect(found.verdict).toBe('refused')
  })

  test('names headers that are missing or repeated, and judges no secret then', () => {
    const { headers, body } = signed()
    for (const lost of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      const rest = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== lost))
      expect(judge({ headers: rest, body }).problems).toEqual([expect.stringContaining('is missing')])
    }
    const doubled = judge({ headers: { ...headers, 'webhook-id': ['msg_1', 'msg_1'] }, body })
    expect(doubled.problems).toEqual([expect.stringContaining('more than once')])
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
    '{"headers":{},"body":{"id":1}}',
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
