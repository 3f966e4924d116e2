import type { Config } from '../config/schema.ts'
import { readPublicKey } from './keys.ts'
import type { KeyTrust } from './open.ts'

/** Whom the settings trust. Throws `config` for a key that cannot be read any more. */
export function trustOf(
  { bundle }: Pick<Config, 'bundle'>,
  more: Pick<KeyTrust, 'allowUnsigned' | 'now'>,
): KeyTrust {
  const revoked = new Set<string>(bundle.revokedKeys)
  return { keys: bundle.trustedKeys.map(readPublicKey), revoked, ...more }
}
