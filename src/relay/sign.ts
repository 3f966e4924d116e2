import { createSigningSecret } from '../webhooks/verify.ts'

/** Signs a message: its id, the time of the attempt in unix seconds, its bytes. */
export type Sign = (webhookId: string, timestamp: number, body: Buffer) => string

/**
 * Signatures as Standard Webhooks has them: `v1,` and base64, of the body's very bytes, for upstream's are passed on as they
 * came. Throws for a secret that is not base64; the settings refuse such a one.
 */
export function createSigner(secret: string): Sign {
  const { decoded } = createSigningSecret('relay', secret)
  if (decoded === null) throw new Error('the secret of the relay is not base64')
  return (id, timestamp, body) => `v1,${decoded({ id, timestamp, body }).toString('base64')}`
}

/** The secret as it is told to whoever receives, from the mirror's own key. */
export function writeSecret(key: Buffer): string {
  return `whsec_${key.toString('base64')}`
}
