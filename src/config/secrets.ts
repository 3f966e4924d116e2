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

const MASK = '********'

/** A secret as it may be shown: told apart from one that is not set, and nothing more. */
export function maskSecret<T>(value: T): T | string {
  const unset = value === null || (Array.isArray(value) && value.length === 0)
  return unset ? value : MASK
}
