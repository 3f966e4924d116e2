import { chatUrls, relayUrls } from '../../../src/config/kinds/relay-targets.ts'
import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import { chatBody } from '../../../src/features/relay/chat.ts'
import { createSigner } from '../../../src/features/relay/sender.ts'
import { createSigningSecret, createVerifier } from '../../../src/webhooks/receive/signature.ts'
import { EVENT } from '../../webhooks/signing.ts'
import { SECRET, bench, target } from './targets.ts'

const textOf = (event: unknown): string => {
  const body = typeof event === 'string' ? event : JSON.stringify(event)
  const { text } = JSON.parse(chatBody(Buffer.from(body)).toString()) as { text: string }
  return text
}
const IMAGE = 'library/python:3.12-slim'

describe('a message to a team workspace', () => {
  test.each<[string, unknown, string]>([
    ['an image', EVENT, `${IMAGE}: a new remediated image is available`],
    ['an image with its fixes', { ...EVENT, data: { ...EVENT.data, new_fixes: 2 } }, `${IMAGE}: 2 new fixes`],
    ['one fix, in a list', { ...EVENT, data: { ...EVENT.data, fixed_cves: ['CVE-2026-1'] } }, `${IMAGE}: 1 new fix`],
    [
      'an image of another envelope',
      { event: 'x', image: 'cr.example.com/a/b:1' },
      'a/b:1: a new remediated image is available',
    ],
    [
      'several images',
      [{ image: 'a:1' }, { image: 'b:2' }],
      'a:1: a new remediated image is available\nb:2: a new remediated image is available',
    ],
    ['no image', { type: 'x' }, 'The service reported a change; it names no image.'],
    ['no JSON', 'a=b', 'The service reported a change; it names no image.'],
    ['nothing', '', 'The service reported a change; it names no image.'],
  ])('names %s', (_, event, text) => {
    expect(textOf(event)).toBe(text)
  })

  test('describes a snapshot in plain words', () => {
    const type = 'io.patchmirror.snapshot.published.v1'
    const counts = { added: 1, changed: 2, removed: 0 }
    const told = textOf({ type, data: { source: 'osv', counts } })
    expect(told).toBe('New snapshot of osv: 1 added, 2 changed, 0 removed.')
    expect(textOf({ type, data: { source: 'osv', counts, partial: true } })).toBe(
      'New snapshot of osv: 1 added, 2 changed, 0 removed. It is partial: it lacks some of what upstream lists.',
    )
    const leaving = (left: unknown) =>
      textOf({ type, data: { source: 'osv', counts: { ...counts, removed: 5 }, left } })
    expect(leaving({ count: 5, cause: 'rollback' })).toBe(
      'New snapshot of osv: 1 added, 2 changed, 0 removed, 5 not mirrored any more (the mirror went back to older data).',
    )
    expect(leaving({ count: 2, cause: '<!channel>' })).toBe(
      'New snapshot of osv: 1 added, 2 changed, 3 removed, 2 not mirrored any more (whether upstream removed them is not known).',
    )
    for (const left of [null, 'x', { count: 'x' }, { count: -1 }]) expect(leaving(left)).toMatch(/ 5 removed\.$/)
    const others = ['<!channel>\u001b[2J', '@all', '[osv](https://elsewhere.example)', '**osv**', 'a\nb', '']
    for (const source of others)
      expect(textOf({ type, data: { source, counts: null } })).toBe(
        'New snapshot of a mirror: everything may have changed.',
      )
  })

  test('names the tags whose findings changed, and their sum where there are many', () => {
    const type = 'io.patchmirror.findings.changed.v1'
    const gone = { goneFindings: 3, goneFixable: 1, goneFixes: 1 }
    const one = { tag: { name: 'library/python:3.12' }, newFixes: 2, newFixable: 0, ...gone }
    expect(textOf({ type, data: { tags: 1, newFixes: 2, changes: [one] } })).toBe(
      'library/python:3.12: 2 findings got a fix, 3 findings gone',
    )
    const left = { tag: { name: 'a:1' }, cause: 'scope', newFindings: 0, goneFindings: 2, newFixes: 0, goneFixes: 0 }
    expect(textOf({ type, data: { tags: 1, cause: 'scope', changes: [left] } })).toBe(
      'a:1: 2 findings gone (other records are mirrored: osv.scope)',
    )
    const back = { ...left, cause: 'rollback' }
    expect(textOf({ type, data: { tags: 1, cause: 'rollback', changes: [back] } })).toBe(
      'a:1: 2 findings gone (the mirror went back to older data)',
    )
    const unknown = { ...left, cause: 'unknown' }
    expect(textOf({ type, data: { tags: 1, changes: [unknown] } })).toBe(
      'a:1: 2 findings gone (whether other records are mirrored is not known: osv.scope)',
    )
    const sums = { tags: 4000, newFixes: 5000, newFindings: 7, newFixable: 6 }
    const lines = textOf({ type, data: { ...sums, changes: Array(50).fill(one) } }).split('\n')
    expect([lines.length, lines[0]]).toEqual([12, '4000 tags: 7 new findings (6 with a fix), 4994 findings got a fix'])
    expect(lines.at(-1)).toBe('and 3990 more')
    const { newFixable: _unknown, ...older } = sums
    expect(textOf({ type, data: { ...older, changes: [one] } })).toMatch(/^4000 tags: 7 new findings\n/)
    const hostile = { tag: { name: '<!channel>\u001b[2J' }, newFixes: '<@all>' }
    const told = textOf({ type, data: { tags: -1, changes: [hostile, { tag: 7 }] } })
    expect(told).toBe('&lt;!channel&gt; [2J: its findings changed\na tag: its findings changed')
    for (const data of [null, [], { changes: 'x' }, { tags: 5, changes: [] }])
      expect(textOf({ type, data })).toBe('The findings of tags changed.')
  })

  test('has a bounded length', () => {
    const type = 'io.patchmirror.findings.changed.v1'
    const changes = Array.from({ length: 10 }, () => ({ tag: { name: '\u{1F980}'.repeat(100) }, newFixes: 1 }))
    const amped = changes.map((one) => ({ ...one, tag: { name: '&'.repeat(200) } }))
    expect(Array.from(textOf({ type, data: { changes: amped } }))).toHaveLength(2000)
    expect(textOf({ type, data: { changes } })).toMatch(/^(\u{1F980}{100}: 1 finding got a fix\n?){10}$/u)
    const images = Array.from({ length: 99 }, (_, at) => `aaaaa/b:${at}`)
    expect(textOf({ images })).toMatch(/and 89 more$/)
  })

  test('is delivered from the outbox like any event, with retries, and without a signature', async () => {
    const chat = await target(500)
    const ci = await target()
    const made = bench({ targets: [ci.url], chatTargets: [chat.url] })
    made.deliver('msg_1', { body: JSON.stringify(EVENT) })
    await made.round()
    expect([ci.got.length, ci.got[0]?.signed, chat.got.length]).toEqual([1, true, 1])
    chat.manner = 200
    made.pass(60_000)
    await made.round()
    expect(chat.got).toHaveLength(2)
    const [, { headers, body } = { headers: {}, body: '' }] = chat.got
    expect(JSON.parse(body.toString())).toEqual({ text: textOf(EVENT) })
    expect(headers['content-type']).toBe('application/json')
    expect(headers).not.toHaveProperty('webhook-signature')
    expect(made.outbox.listTargets().map(({ state, pending }) => [state, pending])).toEqual([
      ['ok', 0],
      ['ok', 0],
    ])
    expect(made.faults.join()).not.toContain('private')
  })

  test('is not sent where it is no news, which says nothing of a workspace that fails', async () => {
    const chat = await target(500)
    const isOld = (body: Uint8Array): boolean => Buffer.from(body).includes('old')
    const made = bench({ chatTargets: [chat.url], isOld })
    made.deliver('msg_1', { body: JSON.stringify(EVENT) })
    await made.round()
    made.deliver('msg_2', { body: '{"old":1}' })
    for (let n = 0; n < 4; n++) {
      made.pass(120_000)
      await made.round()
    }
    expect(made.outbox.listTargets()).toMatchObject([{ state: 'failing', pending: 1, givenUp: 0, deliveredAt: null }])
    expect(new Set(chat.got.map(({ body }) => String(body))).size).toBe(1)
    expect(made.turns).toEqual(['1 failing'])
  })
})

describe('the signature of the relay', () => {
  const body = Buffer.from('{"a":"é"}')
  const now = Math.floor(Date.now() / 1000)
  const hex = createHmac('sha256', SECRET).update(`msg_1.${now}.`).update(body).digest('hex')

  const signature = createSigner(SECRET)('msg_1', now, body)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(now), 'webhook-signature': signature }

  test('has both forms in one header, and a library of Standard Webhooks accepts it', () => {
    const [, vendor] = signature.split(' ')
    expect(vendor).toBe(`v1,${hex}`)
    expect(new Webhook(SECRET).verify(body.toString(), headers)).toEqual({ a: 'é' })
    expect(() => new Webhook(SECRET).verify('{}', headers)).toThrow('No matching signature')
  })

  test.each(['standard', 'vendor'] as const)('is accepted by a mirror that takes the form "%s" alone', (dialect) => {
    const secrets = [createSigningSecret('relay', SECRET)]
    const verify = createVerifier({ secrets: () => secrets, dialect, toleranceSeconds: 300, now: Date.now })
    const raw = Object.entries(headers).flat()
    expect(verify(raw, body)).toMatchObject({ ok: true, id: 'msg_1', dialect })
    expect(verify(raw, Buffer.from('{}'))).toEqual({ ok: false, reason: 'signature' })
  })

  test('needs a secret in base64', () => {
    const env = { PATCHMIRROR_RELAY_SECRET: 'mirror-hook!signing*secret~2026' }
    expect(() => loadQuick({ env, cwd: '/' })).toThrow('is not whsec_ and base64')
  })
})

test('chat targets are validated as other targets, and neither quoted nor printed', () => {
  const url = 'https://hooks.example.com/services/private'
  const load = (env: Record<string, string>) => loadQuick({ env, cwd: '/' })
  const { relay } = load({ PATCHMIRROR_RELAY_TARGETS: `https://ci.example.com/hook,chat+${url}` }).config
  expect([relayUrls(relay), chatUrls(relay)]).toEqual([['https://ci.example.com/hook', url], [url]])
  const both = { PATCHMIRROR_RELAY_TARGETS: `chat+${url},${url}` }
  const plain = { PATCHMIRROR_RELAY_TARGETS: `chat+${url.replace('https', 'http')}` }
  expect(() => load(both)).toThrow('a URL is there twice')
  expect(() => load(plain)).toThrow(/relay\.targets .*\(entry 1\) is plain http/)
  for (const env of [both, plain]) expect(() => load(env)).not.toThrow(/private/)
})
