import { MirrorError, messageOf } from '../errors.ts'
import { cutMembers } from '../json/cut.ts'

/** What a member is called that holds key material, whatever stands before it (`webhook_secret`). */
const SECRET = named(
  'secrets?|tokens?|passwords?|passwd|pwd|passcode|passphrase|credentials?|auth|authorization|bearer|jwt|otp',
)
/** Keys and hashes are many things; these are secret ones. */
const KEY = named('(api|private|signing|secret|access|encryption|ssh)_?keys?')
const BARE = /^(key|hash)$/
/** What is key material whatever it is called. */
const MATERIAL = /^"(-----BEGIN [A-Z ]*PRIVATE KEY|(v1a?,)?wh(sec|sk)_)/

/** A name that ends like this, or in the form that the thing is written down in (`secret_value`, `privateKeyPem`). */
function named(what: string): RegExp {
  const form = '_?(value|text|plain|plaintext|raw|data|string|pem|der|base64|b64|hex|hash)'
  return new RegExp(`(^|_)(${what})(${form})?$`)
}

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
  if (first === STRING && MATERIAL.test(value.toString('latin1', 0, 64))) return true
  if (SECRET.test(plain)) return first === STRING || first === LIST || first === OBJECT
  return (KEY.test(plain) || BARE.test(plain)) && (first === STRING || first === LIST)
}
