import { MirrorError, messageOf } from '../errors.ts'
import { cutMembers } from '../json/cut.ts'

/** What a member is called that holds key material, whatever stands before it (`webhook_secret`). */
const SECRET = /(^|_)(secrets?|tokens?|passwords?|passwd|passphrase|credentials?)$/
/** Keys and hashes are many things; these are secret ones. */
const KEY = /^(key|hash)$|(^|_)(api|private|signing|secret|access|encryption|ssh)_?keys?(_?hash)?$/

const STRING = 0x22
const LIST = 0x5b
const OBJECT = 0x7b

/**
 * The JSON of an account, a key, a subscription or a user without its key material; that is cut out before anything is
 * stored. Throws `upstream_shape` for JSON that is nested too deep to be looked through.
 */
export function withoutSecrets(json: Buffer, path: string): Buffer {
  try {
    return cutMembers(json, isSecret)
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

/** By its name, when it holds a text, or texts; numbers, true and false are no secrets (`tokens: 5`, `secret: true`). */
function isSecret(name: string, value: Buffer): boolean {
  const plain = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
  const first = value[0]
  if (SECRET.test(plain)) return first === STRING || first === LIST || first === OBJECT
  return KEY.test(plain) && (first === STRING || first === LIST)
}
