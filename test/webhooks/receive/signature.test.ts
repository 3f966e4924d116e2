import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { webhookSecretFault } from '../../../src/config/kinds/keys.ts'
import { SIGNATURE_DIALECTS } from '../../../src/config/kinds/webhooks.ts'
import {
  type SignatureDialect,
  type SignatureResult,
  createSigningSecret,
  createVerifier,
  signDelivery,
} from '../../../src/webhooks/receive/signature.ts'
import { NOW } from '../inbox/inboxes.ts'
import { RAW_SECRET, SECRET, keyPair, raw, signed, signedByPair } from '../signing.ts'

const BODY = '{"a":1}'

interface Asked {
  headers: string[]
  body: string | Buffer
  secrets?: string[]
  now?: number
  dialect?: SignatureDialect | 'any'
}

/** The verdict of a verifier over these secrets; one that is refused at start is not there. */
function judge({ headers, body, secrets = [SECRET], now = NOW, dialect = 'any' }: Asked): SignatureResult {
  const usable = secrets.filter((secret) => webhookSecretFault(secret) === null)
  const active = usable.map((secret, at) => createSigningSecret(`settings-${at + 1}`, secret))
  const options = { secrets: () => active, dialect, toleranceSeconds: 300, now: () => now }
  return createVerifier(options)(headers, Buffer.from(body))
}

describe('the published signatures', () => {
  test('of the libraries of Standard Webhooks are accepted', () => {
    const published = [
      {
        secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        timestamp: 1_614_265_330,
        signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
        body: '{"test": 2432232314}',
      },
      {
        secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
        id: 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk',
        timestamp: 1_649_367_553,
        signature: 'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
        body: '{"email":"test@example.com","username":"test_user"}',
      },
    ]
    for (const { secret, id, timestamp, signature, body } of published) {
      const headers = [
        ...['webhook-id', id, 'webhook-timestamp', String(timestamp)],
        ...['webhook-signature', signature],
      ]
      const verdict = judge({ headers, body, secrets: [secret], now: timestamp * 1000 })
      expect(verdict).toMatchObject({ ok: true, id, dialect: 'standard', label: 'settings-1' })
      const content = { id, timestamp, body: Buffer.from(body) }
      expect(signDelivery({ ...content, secret, dialect: 'standard' })).toBe(signature)
    }
  })

  const VECTORS = new URL('../../../../shared/data/webhook-vectors.json', import.meta.url).pathname
  interface Vector {
    name: string
    secret: string
    headers: Record<string, string>
    body: string
    now: number
    expect: 'accept' | 'reject'
  }

  test.skipIf(!existsSync(VECTORS))('of the vectors are judged as expected', () => {
    const vectors = JSON.parse(readFileSync(VECTORS, 'utf8')) as Vector[]
    expect(vectors.length).toBeGreaterThan(0)
    const wrong = vectors.filter(({ secret, headers, body, now, expect: expected }) => {
      const asked = { headers: raw(headers), body, secrets: [secret], now: now * 1000 }
      return judge(asked).ok !== (expected === 'accept')
    })
    expect(wrong.map(({ name }) => name)).toEqual([])
  })
})

describe('a webhook signature', () => {
  test.each(SIGNATURE_DIALECTS)('of the form %s is valid, named, and can be pinned', (dialect) => {
    const headers = raw(signed({ dialect, body: BODY }))
    expect(judge({ headers, body: BODY })).toMatchObject({ ok: true, dialect })
    expect(judge({ headers, body: BODY, dialect })).toMatchObject({ ok: true })
    for (const other of SIGNATURE_DIALECTS.filter((one) => one !== dialect))
      expect(judge({ headers, body: BODY, dialect: other })).toEqual({
        ok: false,
        reason: 'signature',
      })
    const content = { id: 'evt_1', timestamp: NOW / 1000, body: Buffer.from(BODY), secret: SECRET }
    expect(signDelivery({ ...content, dialect })).toBe(signed({ dialect, body: BODY })['webhook-signature'])
  })

  test('by any of several secrets is valid, and the label of that secret is returned', () => {
    const headers = raw(signed({ secret: RAW_SECRET, dialect: 'vendor', body: BODY }))
    const verdict = judge({ headers, body: BODY, secrets: [SECRET, RAW_SECRET] })
    expect(verdict).toMatchObject({ ok: true, label: 'settings-2', dialect: 'vendor' })
  })

  test('of a secret that is no base64 has no decoded form', () => {
    const content = { id: 'a', timestamp: 1, body: Buffer.from(BODY), secret: RAW_SECRET }
    expect(signDelivery({ ...content, dialect: 'standard' })).toBeNull()
    expect(signDelivery({ ...content, dialect: 'whole-base64' })).toMatch(/^v1,/)
  })

  test('covers bodies that are not UTF-8, byte by byte', () => {
    const body = Buffer.from([0x7b, 0xff, 0xfe, 0x7d])
    const headers = raw(signed({ body }))
    expect(judge({ headers, body }).ok).toBe(true)
    // A library that reads text would see the same replacement character here.
    expect(judge({ headers, body: Buffer.from([0x7b, 0xfd, 0xfc, 0x7d]) }).ok).toBe(false)
  })

  test.each([0, 1, 16_383, 16_384, 16_385, 262_144])('covers a body of %i bytes', (size) => {
    const body = 'é'.repeat(size / 2).padEnd(size, 'x')
    for (const dialect of SIGNATURE_DIALECTS)
      expect(judge({ headers: raw(signed({ body, dialect })), body })).toMatchObject({ dialect })
    expect(judge({ headers: raw(signed({ body })), body: `${body} ` }).ok).toBe(false)
  })

  test('among others is valid, and unknown versions are ignored', () => {
    const right = signed({ body: BODY })
    const other = signed({ body: 'other' })['webhook-signature'] ?? ''
    const list = `${other} v1a,AAAA== v2,whatever ${right['webhook-signature'] ?? ''}`
    const headers = raw({ ...right, 'webhook-signature': list })
    expect(judge({ headers, body: BODY }).ok).toBe(true)
    const only = raw({ ...right, 'webhook-signature': `v1a,${other.slice(3)}` })
    expect(judge({ headers: only, body: BODY })).toEqual({ ok: false, reason: 'signature' })
  })
})

describe('the timestamp', () => {
  test.each([
    [-300, null],
    [-301, 'too_old'],
    [300, null],
    [301, 'too_new'],
  ])('of a delivery %i seconds from now is judged: %s', (seconds, reason) => {
    const headers = raw(signed({ timestamp: NOW / 1000 + seconds, body: BODY }))
    const verdict = judge({ headers, body: BODY })
    expect(verdict.ok ? null : verdict.reason).toBe(reason)
  })
})

describe('the headers of a delivery', () => {
  const good = signed({ body: BODY })
  const [id = '', time = '', signature = ''] = Object.values(good)
  const hex = signed({ body: BODY, dialect: 'decoded-hex' })['webhook-signature'] ?? ''

  test.each([
    ['without an id', { 'webhook-timestamp': time, 'webhook-signature': signature }, 'header_missing'],
    ['without a time', { 'webhook-id': id, 'webhook-signature': signature }, 'header_missing'],
    ['without a signature', { 'webhook-id': id, 'webhook-timestamp': time }, 'header_missing'],
    ['under other names', { 'svix-id': id, 'svix-timestamp': time, 'svix-signature': signature }, 'header_missing'],
    ['with a repeated id', { ...good, 'Webhook-Id': id }, 'header_repeated'],
    ['with a repeated time', { ...good, 'WEBHOOK-TIMESTAMP': time }, 'header_repeated'],
    ['with a repeated signature', { ...good, 'Webhook-Signature': signature }, 'header_repeated'],
    ['with a dot in the id', { ...good, 'webhook-id': 'evt.1' }, 'header_id'],
    ['with an empty id', { ...good, 'webhook-id': '' }, 'header_id'],
    ['with a long id', { ...good, 'webhook-id': 'a'.repeat(257) }, 'header_id'],
    ['with an id of another script', { ...good, 'webhook-id': 'é' }, 'header_id'],
    ['with letters in the time', { ...good, 'webhook-timestamp': `${time}abc` }, 'header_timestamp'],
    ['with a fraction', { ...good, 'webhook-timestamp': `${time}.0` }, 'header_timestamp'],
    ['with a plus', { ...good, 'webhook-timestamp': `+${time}` }, 'header_timestamp'],
    ['with a leading zero', { ...good, 'webhook-timestamp': `0${time}` }, 'header_timestamp'],
    ['in milliseconds', { ...good, 'webhook-timestamp': `${time}000` }, 'header_timestamp'],
    ['with an exponent', { ...good, 'webhook-timestamp': '1e9' }, 'header_timestamp'],
    ['with no signature in it', { ...good, 'webhook-signature': '' }, 'header_signature'],
    ['without a version', { ...good, 'webhook-signature': signature.slice(3) }, 'header_signature'],
    ['unpadded', { ...good, 'webhook-signature': signature.slice(0, -1) }, 'header_signature'],
    ['with junk behind', { ...good, 'webhook-signature': `${signature},junk` }, 'header_signature'],
    ['in upper case hex', { ...good, 'webhook-signature': `v1,${hex.slice(3).toUpperCase()}` }, 'header_signature'],
    ['with spaces for signatures', { ...good, 'webhook-signature': '   ' }, 'header_signature'],
    ['with 17 signatures', { ...good, 'webhook-signature': Array(17).fill(signature).join(' ') }, 'header_signature'],
    ['with 5 KiB', { ...good, 'webhook-signature': `${signature} v2,${'x'.repeat(5000)}` }, 'header_signature'],
  ])('%s are refused', (_, headers, reason) => {
    expect(judge({ headers: raw(headers), body: BODY })).toEqual({ ok: false, reason })
  })

  test('in any case of letters, with an id of 256 characters and 16 signatures, are accepted', () => {
    const long = signed({ id: 'a'.repeat(250) + '_:-Z09', body: BODY })
    const list = Array(16).fill(long['webhook-signature']).join(' ')
    const headers = raw({ ...long, 'webhook-signature': list })
    const shouted = headers.map((text, at) => (at % 2 === 0 ? text.toUpperCase() : text))
    expect(judge({ headers: shouted, body: BODY }).ok).toBe(true)
  })

  test('with several spaces between and around signatures are accepted', () => {
    const other = signed({ body: 'other' })['webhook-signature'] ?? ''
    for (const list of [`${other}  ${signature}`, ` ${signature}   ${other} `])
      expect(judge({ headers: raw({ ...good, 'webhook-signature': list }), body: BODY }).ok).toBe(true)
  })

  test('with a right signature beside malformed ones are accepted', () => {
    for (const other of ['junk', 'v1,short', `v1,${hex.slice(3).toUpperCase()}`, 'v1a,x', ',', 'v1,'])
      for (const list of [`${other} ${signature}`, `${signature} ${other}`])
        expect(judge({ headers: raw({ ...good, 'webhook-signature': list }), body: BODY })).toMatchObject({ ok: true })
  })

  test('with a tab between signatures are refused', () => {
    const other = signed({ body: 'other' })['webhook-signature'] ?? ''
    const headers = raw({ ...good, 'webhook-signature': `${other}\t${signature}` })
    expect(judge({ headers, body: BODY })).toEqual({ ok: false, reason: 'header_signature' })
  })

  test('that differ only in the unused bits of base64 are refused', () => {
    const bits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    const last = signature.at(-2) ?? ''
    const varied = `${signature.slice(0, -2)}${bits[bits.indexOf(last) + 1] ?? ''}=`
    const headers = raw({ ...good, 'webhook-signature': varied })
    expect(judge({ headers, body: BODY })).toEqual({ ok: false, reason: 'header_signature' })
  })
})

describe('a public key', () => {
  const { privateKey, whpk, whsk } = keyPair()
  const given = signedByPair(privateKey, { body: BODY })
  const refused = { ok: false, reason: 'signature' }

  test('verifies v1a signatures, with any dialect pinned, beside secrets and other signatures', () => {
    const fits = { ok: true, dialect: 'ed25519', label: 'settings-1' }
    for (const dialect of ['any', ...SIGNATURE_DIALECTS] as const)
      expect(judge({ headers: raw(given), body: BODY, secrets: [whpk], dialect })).toMatchObject(fits)
    const list = `v1a,AAAA ${signed({ body: BODY })['webhook-signature'] ?? ''} v2,x ${given['webhook-signature'] ?? ''}`
    const headers = raw({ ...given, 'webhook-signature': list })
    expect(judge({ headers, body: BODY, secrets: [whpk] })).toMatchObject(fits)
    const both = judge({ headers: raw(given), body: BODY, secrets: [SECRET, whpk] })
    expect(both).toMatchObject({ ok: true, label: 'settings-2' })
    for (const dialect of SIGNATURE_DIALECTS)
      expect(signDelivery({ id: 'evt_1', timestamp: NOW / 1000, body: Buffer.from(BODY), secret: whsk, dialect })).toBe(
        given['webhook-signature'],
      )
  })

  test('rejects what was changed or signed by another key', () => {
    const ask = (headers: Record<string, string>, body = BODY) =>
      judge({ headers: raw(headers), body, secrets: [whpk] })
    expect(ask(given, `${BODY} `)).toEqual(refused)
    expect(ask({ ...given, 'webhook-id': 'evt_2' })).toEqual(refused)
    expect(ask({ ...given, 'webhook-timestamp': String(NOW / 1000 - 1) })).toEqual(refused)
    expect(ask(signedByPair(keyPair().privateKey, { body: BODY }))).toEqual(refused)
    expect(ask(signed({ body: BODY }))).toEqual(refused)
    const old = signedByPair(privateKey, { body: BODY, timestamp: NOW / 1000 - 301 })
    expect(ask(old)).toEqual({ ok: false, reason: 'too_old' })
  })

  test('never verifies an HMAC made with its text or its bytes, which are public', () => {
    const text = whpk.slice('whpk_'.length)
    const bytes = Buffer.from(text, 'base64')
    const content = `evt_1.${NOW / 1000}.${BODY}`
    for (const key of [whpk, text, bytes, `v1a,${whpk}`, ''])
      for (const form of ['base64', 'hex'] as const)
        for (const version of ['v1', 'v1a']) {
          const mac = createHmac('sha256', key).update(content).digest(form)
          const headers = raw({ ...given, 'webhook-signature': `${version},${mac}` })
          for (const dialect of ['any', ...SIGNATURE_DIALECTS] as const)
            expect(judge({ headers, body: BODY, secrets: [whpk], dialect })).toEqual(refused)
        }
    expect(createSigningSecret('one', whpk)).toMatchObject({ decoded: null, whole: null, standard: null })
    for (const dialect of SIGNATURE_DIALECTS)
      expect(signDelivery({ id: 'a', timestamp: 1, body: Buffer.from(BODY), secret: whpk, dialect })).toBeNull()
  })

  test('is no HMAC secret in any way it may be written, and neither is a private key', () => {
    expect(webhookSecretFault(whpk)).toBeNull()
    const texts = [
      whpk.slice(0, -8),
      `"${whpk}"`,
      whpk.toUpperCase(),
      `whsec_${whpk}`,
      `${whpk}x`,
      `whpk_${Buffer.alloc(32).toString('base64')}`,
    ]
    for (const text of texts) expect(webhookSecretFault(text), text).toMatch(/public key/)
    for (const text of [whsk, `"${whsk}"`, `whsec_${whsk}`])
      expect(webhookSecretFault(text), text).toMatch(/private key/)
  })
})

test('a delivery of the standard dialect is judged the same by the clock of the library and by another one', () => {
  for (const now of [NOW, Date.now()]) {
    const timestamp = Math.floor(now / 1000)
    const verdict = (headers: Record<string, string>, body: string | Buffer = BODY) =>
      judge({ headers: raw(headers), body, now })
    const accepted = { ok: true, dialect: 'standard', label: 'settings-1' }
    const good = signed({ body: BODY, timestamp })
    const other = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
    const { 'webhook-signature': wrong = '' } = signed({ body: BODY, timestamp, secret: other })
    const noText = Buffer.from([0x7b, 0xff, 0x7d])
    const large = JSON.stringify({ a: 'x'.repeat(20_000) })
    expect(verdict(good)).toMatchObject(accepted)
    expect(verdict({ ...good, 'webhook-signature': `${wrong} ${good['webhook-signature']}` })).toMatchObject(accepted)
    for (const body of [noText, large, '', 'no json'])
      expect(verdict(signed({ body, timestamp }), body)).toMatchObject(accepted)
    const refused = { ok: false, reason: 'signature' }
    expect(verdict({ ...good, 'webhook-signature': wrong })).toEqual(refused)
    expect(verdict({ ...good, 'webhook-id': 'evt_2' })).toEqual(refused)
    expect(verdict(good, `${BODY} `)).toEqual(refused)
    expect(verdict(signed({ body: BODY, timestamp: timestamp - 301 }))).toEqual({ ok: false, reason: 'too_old' })
    expect(verdict(signed({ body: BODY, timestamp: timestamp - 299 }))).toMatchObject(accepted)
  }
})

describe('a webhook secret', () => {
  test('as a dashboard prints it, v1,whsec_…, is the secret behind the comma', () => {
    for (const dialect of ['standard', 'vendor'] as const) {
      const headers = raw(signed({ body: BODY, dialect }))
      const active = [createSigningSecret('one', `v1,${SECRET}`)]
      const options = { secrets: () => active, dialect, toleranceSeconds: 300, now: () => NOW }
      expect(createVerifier(options)(headers, Buffer.from(BODY)).ok).toBe(true)
    }
  })

  test('with characters outside ASCII is used as UTF-8', () => {
    const secret = 'пароль-für-Webhooks-秘密-2026'
    expect(webhookSecretFault(secret)).toBeNull()
    for (const dialect of ['vendor', 'whole-base64'] as const) {
      const headers = raw(signed({ secret, body: BODY, dialect }))
      expect(judge({ headers, body: BODY, secrets: [secret] })).toMatchObject({ ok: true, dialect })
    }
    for (const text of ['zu kurz é', 'ééééééééééééééééé', `zero\u200bwidth-in-the-middle`])
      expect(webhookSecretFault(text), text).not.toBeNull()
  })
})

test('a delivery is never accepted without a secret, not even when signed with an empty key', () => {
  for (const secrets of [[], [''], ['whsec_']]) {
    const headers = raw(signed({ secret: '', body: BODY }))
    expect(judge({ headers, body: BODY, secrets }).ok).toBe(false)
  }
})

test('a prepared secret is not visible in a dump', () => {
  const shown = inspect([createSigningSecret('one', SECRET)], { depth: 9, showHidden: true })
  expect(shown).toContain('one')
  expect(shown).not.toContain(SECRET.slice(6, 20))
  expect(shown).not.toMatch(/00 01 02|0, 1, 2/)
})
