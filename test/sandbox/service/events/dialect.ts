import { createHmac } from 'node:crypto'

/**
 * How deliveries are signed (wire facts, webhook deliveries). `standard`: decoded key, base64. `vendor`: the whole secret
 * as key, hex. The other two mix key and encoding, as a half-done port would.
 */
export type Dialect = 'standard' | 'vendor' | 'whole-base64' | 'decoded-hex'

/** All dialects. */
export const DIALECTS: readonly Dialect[] = ['standard', 'vendor', 'whole-base64', 'decoded-hex']

/** The signature of `id.timestamp.body`, without its version. */
export function signature(dialect: Dialect, secret: string, content: string): string {
  const isWhole = dialect === 'vendor' || dialect === 'whole-base64'
  const key = isWhole ? Buffer.from(secret) : Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const isHex = dialect === 'vendor' || dialect === 'decoded-hex'
  return createHmac('sha256', key)
    .update(content)
    .digest(isHex ? 'hex' : 'base64')
}
