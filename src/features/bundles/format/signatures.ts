import { MirrorError } from '../../../base/errors.ts'
import type { KeyTrust } from './keys.ts'

/**
 * Returns the id of the trusted key that signed `bytes`; null if they are not signed, which was allowed. `signatures`: by
 * the id of the claimed key. Throws `bundle`.
 */
export function judgeSignatures(
  bytes: Uint8Array,
  signatures: ReadonlyMap<string, Buffer>,
  trust: KeyTrust,
): string | null {
  const { keys, revoked, allowUnsigned } = trust
  if (signatures.size === 0) {
    if (allowUnsigned) return null
    throw new MirrorError(
      'bundle',
      'it is not signed: anybody could have created it. Only --allow-unsigned would accept it',
    )
  }
  const by = [...signatures.keys()].join(', ')
  const known = keys.filter(({ id }) => signatures.has(id))
  const believed = known.filter(({ id }) => !revoked.has(id))
  if (believed.length === 0) {
    const gone = [...signatures.keys()].filter((id) => revoked.has(id))
    if (gone.length > 0)
      throw new MirrorError('bundle', `it is signed by a key that is revoked here: ${gone.join(', ')}`)
    throw new MirrorError(
      'bundle',
      `it is signed by ${by}, which bundle.trustedKeys does not have` +
        (keys.length === 0 ? ' (it is empty)' : '') +
        ': if this is the key of the mirror that exported it, add the public key (its .pub file) there',
    )
  }
  const bad = believed.find(({ id, verifies }) => {
    const signature = signatures.get(id)
    return signature === undefined || !verifies(bytes, signature)
  })
  if (bad !== undefined)
    throw new MirrorError('bundle', `the signature by ${bad.id} does not fit: it was changed after signing`)
  return believed[0]?.id ?? null
}
