import { createHmac } from 'node:crypto'

/** The forms a signature may have: what its key is made of, and how it is written (wire facts, webhook deliveries). */
export type Dialect = 'standard' | 'vendor' | 'whole-base64' | 'decoded-hex'

/** What is signed: the bytes of id, time and body with dots between (Standard Webhooks). */
export function signedContent(id: string, timestamp: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
}

/** HMAC-SHA256, 32 bytes. */
export function macOf(key: Buffer, content: Buffer): Buffer {
  return createHmac('sha256', key).update(content).digest()
}

/** The value of `webhook-signature` for one secret in one dialect. `decoded` is the secret's key by Standard Webhooks. */
export function signatureOf(
  dialect: Dialect,
  secret: { readonly whole: Buffer; readonly decoded: Buffer },
  content: Buffer,
): string {
  const whole = dialect === 'vendor' || dialect === 'whole-base64'
  const mac = macOf(whole ? secret.whole : secret.decoded, content)
  const hex = dialect === 'vendor' || dialect === 'decoded-hex'
  return `v1,${mac.toString(hex ? 'hex' : 'base64')}`
}
