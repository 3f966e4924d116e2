import { randomBytes } from 'node:crypto'
import { type Setting, type Verdict, text } from './kinds.ts'

/** A credential for the service. Only its form can be checked here: one word that fits into a header. */
export function credentialText(what: string, example: string): Setting<string> {
  return text(`${what}: visible ASCII characters, no spaces`, example, (value) => {
    const word = value.trim()
    if (/^(bearer|basic)\s/i.test(word))
      return { fault: 'begins with Bearer or Basic: give what follows it' }
    return /^[\x21-\x7e]+$/.test(word)
      ? { value: word }
      : { fault: 'holds spaces or characters that no header can carry' }
  })
}

const MIN_KEY = 16
const COMMON =
  /pass(word|wort)?|secret|changeme|example|patchmirror|mirror|admin|qwerty|letmein|key/gi

/** A key that opens this mirror: long enough not to be guessed, and no colon, for Basic cuts there. */
export function localKey(): Setting<string> {
  const allowed = 'keys of at least 16 visible ASCII characters that are hard to guess, no : or ,'
  const example = randomBytes(20).toString('base64url') // a fixed one would be copied, and be known to all
  return text(allowed, `"${example}"`, (value): Verdict<string> => {
    const key = value.trim()
    if (!/^[\x21-\x7e]+$/.test(key) || /[:,]/.test(key))
      return { fault: 'holds a space, a colon, a comma or a character outside ASCII' }
    if (key.length < MIN_KEY) return { fault: `is shorter than ${MIN_KEY} characters` }
    return isGuessable(key) ? { fault: 'is easy to guess' } : { value: key }
  })
}

/** One piece over and over, few characters, a row on the keyboard, or common words with a little around them. */
function isGuessable(key: string): boolean {
  if (new Set(key).size < 6 || /^(.{1,8}?)\1+$/.test(key)) return true
  if (key.replace(COMMON, '').length < MIN_KEY / 2) return true
  const codes = Array.from(Buffer.from(key, 'ascii'))
  const near = codes.slice(1).filter((code, at) => Math.abs(code - (codes[at] ?? 0)) <= 1)
  return near.length > key.length / 2
}

/** How Standard Webhooks marks its secrets; what follows is the key in base64. */
export const SECRET_PREFIX = 'whsec_'

/** What is wrong with a webhook secret, as a phrase that does not repeat it; null when it will do. */
export function webhookSecretFault(secret: string): string | null {
  if (secret === '') return 'is empty'
  const key = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  if (key === '') return `holds nothing but the prefix ${SECRET_PREFIX}`
  if (!/^[\x21-\x7e]+$/.test(secret) || secret.includes(','))
    return 'holds a space, a comma or a character outside ASCII'
  if (key.length < MIN_KEY)
    return `is shorter than ${MIN_KEY} characters (a prefix ${SECRET_PREFIX} not counted)`
  return isGuessable(key) ? 'is easy to guess' : null
}

/**
 * The key that a secret stands for by Standard Webhooks: what follows the prefix, decoded. Null when that is not
 * canonical base64 (with or without its padding); such a secret can only be used as a whole.
 */
export function decodedKey(secret: string): Buffer | null {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  const key = Buffer.from(text, 'base64')
  const whole = key.toString('base64')
  const same = text === whole || text === whole.replace(/=+$/, '')
  return same && key.length > 0 ? key : null
}

/** The secret that the service signs its webhooks with, as it told it at registration. */
export function webhookSecret(): Setting<string> {
  const allowed =
    'signing secrets as the service told them at registration (whsec_…), at least 16 characters that are hard to guess'
  const example = SECRET_PREFIX + randomBytes(24).toString('base64')
  return text(allowed, `"${example}"`, (value): Verdict<string> => {
    const fault = webhookSecretFault(value.trim())
    return fault === null ? { value: value.trim() } : { fault }
  })
}

const MASK = '********'

/** A secret as it may be shown: told apart from one that is not set, and nothing more. */
export function maskSecret<T>(value: T): T | string {
  const unset = value === null || (Array.isArray(value) && value.length === 0)
  return unset ? value : MASK
}
