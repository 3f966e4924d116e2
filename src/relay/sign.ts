import { createHmac } from 'node:crypto'

/** What every signing secret begins with. */
export const SECRET_PREFIX = 'whsec_'

/** Signs a message: its id, the time of the attempt in unix seconds, its bytes. */
export type Sign = (webhookId: string, timestamp: number, body: Uint8Array) => string

/**
 * Signatures as Standard Webhooks has them: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64, keyed with what the
 * secret's base64 stands for. Of the body's very bytes: upstream's are passed on as they came.
 */
export function createSigner(secret: string): Sign {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  const key = Buffer.from(text, 'base64')
  return (webhookId, timestamp, body) => {
    const mac = createHmac('sha256', key).update(`${webhookId}.${timestamp}.`).update(body)
    return `v1,${mac.digest('base64')}`
  }
}

/** The secret as it is told to whoever receives, from the mirror's own key. */
export function writeSecret(key: Buffer): string {
  return SECRET_PREFIX + key.toString('base64')
}
