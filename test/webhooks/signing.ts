import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { SIGNATURE_DIALECTS } from '../../src/config/kinds/webhooks.ts'
import { NOW } from './inbox/inboxes.ts'

/** A secret of Standard Webhooks' form, and one that is no base64. */
export const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
export const RAW_SECRET = 'mirror-hook!signing*secret~2026-11-21'

/** A key pair for `v1a` signatures, made by Node, in the forms of Standard Webhooks. */
export function keyPair() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const base64 = (text = ''): string => Buffer.from(text, 'base64url').toString('base64')
  const { x, d } = privateKey.export({ format: 'jwk' })
  return { publicKey, privateKey, whpk: `whpk_${base64(x)}`, whsk: `whsk_${base64(d)}` }
}

/** Headers with a `v1a` signature by Node's own Ed25519. */
export function signedByPair(
  privateKey: ReturnType<typeof keyPair>['privateKey'],
  { id = 'evt_1', timestamp = NOW / 1000, body = JSON.stringify(EVENT) }: Signing = {},
): Record<string, string> {
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body)])
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1a,${sign(null, content, privateKey).toString('base64')}`,
  }
}

export const EVENT = {
  specversion: '1.0',
  id: 'evt_1',
  source: 'https://service.example.com/registry',
  type: 'io.service.cr.image.created.v1',
  subject: 'cr.example.com/library/python:3.12-slim',
  time: '2026-11-21T09:06:38Z',
  data: {
    image_repo: 'library/python',
    image_tag: '3.12-slim',
    image_digest: `sha256:${'0123456789abcdef'.repeat(4)}`,
    arch: 'amd64',
  },
}

export interface Signing {
  id?: string
  /** Unix seconds. */
  timestamp?: number
  body?: string | Buffer
  secret?: string
  dialect?: (typeof SIGNATURE_DIALECTS)[number]
}

/** The three headers of a delivery, signed by Node's own HMAC: nothing of the program's is in it. */
export function signed(signing: Signing = {}): Record<string, string> {
  const { id = 'evt_1', timestamp = NOW / 1000, secret = SECRET, dialect = 'standard' } = signing
  const { body = JSON.stringify(EVENT) } = signing
  const decoded = dialect === 'standard' || dialect === 'decoded-hex'
  const key = decoded ? Buffer.from(secret.replace(/^whsec_/, ''), 'base64') : secret
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body)
  const form = dialect === 'vendor' || dialect === 'decoded-hex' ? 'hex' : 'base64'
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${hmac.digest(form)}`,
  }
}

/** Headers as Node lists them. */
export function raw(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flat()
}
