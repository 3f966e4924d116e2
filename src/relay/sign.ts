import type { RELAY_DIALECTS } from '../config/relay.ts'
import { signDelivery } from '../webhooks/verify.ts'

/** Signs a message: its id, the time of the attempt in unix seconds, its bytes. */
export type Sign = (webhookId: string, timestamp: number, body: Buffer) => string

/**
 * Signatures of the body's very bytes, for upstream's are passed on as they came: as Standard Webhooks has them (`v1,` and
 * base64), as the vendor's receiver has them (`v1,` and hex, keyed with the whole secret), or both in one header, of which a
 * receiver takes the one that it knows. Throws for a secret that is not base64 where that is needed; the settings refuse it.
 */
export function createSigner(secret: string, dialect: (typeof RELAY_DIALECTS)[number]): Sign {
  const dialects = dialect === 'both' ? (['standard', 'vendor'] as const) : [dialect]
  return (id, timestamp, body) =>
    dialects
      .map((one) => {
        const signature = signDelivery({ id, timestamp, body, secret, dialect: one })
        if (signature === null) throw new Error('the secret of the relay is not base64')
        return signature
      })
      .join(' ')
}

/** The secret as it is told to whoever receives, from the mirror's own key. */
export function writeSecret(key: Buffer): string {
  return `whsec_${key.toString('base64')}`
}
