import { LOCAL_KEYS } from '../../../store/keys.ts'
import { base64Forms } from '../../../upstream/secret-search.ts'

/** Removes secrets from texts that leave this machine. */
export type Scrubber = ReturnType<typeof createScrubber>

const MASK = '********'
/** Shorter values occur by chance, so that replacing them would make a text unreadable. */
const MIN_LENGTH = 6

/** What is a secret by its form, wherever it is: each pattern with what it is replaced by. */
const FORMS: readonly [RegExp, string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(bearer|basic)\s+[\w+/=.~:-]+/gi, `$1 ${MASK}`],
  [/\/\/[^\s/"'@?#]+@/g, `//${MASK}@`],
  [/(\bhttps?:\/\/[^\s"'<>?#]*)[?#][^\s"'<>]*/gi, `$1?${MASK}`],
  [LOCAL_KEYS, MASK],
  [/\bwh(?:sec|sk)_[\w+/=-]+/g, MASK],
  [/\b(?:sk|pk|ghp|gho|xox[abp])[_-][\w-]{8,}/g, MASK],
  [/\beyJ[\w-]+(?:\.[\w-]+)*/g, MASK],
  [
    /((?:api[_-]?key|token|secret|password|passwd|pwd|signature|credential|authorization|cookie)["']?\s*[=:]\s*["']?)[^\s"'&,;}\\]+/gi,
    `$1${MASK}`,
  ],
]

/** Creates a scrubber for these secrets, in plain text, Base64 and escaped forms, and for what has the form of a secret. */
export function createScrubber(secrets: readonly string[]) {
  const lines = secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)])
  const known = [...new Set(lines.filter(({ length }) => length >= MIN_LENGTH).flatMap(formsOf))]
  known.sort((one, other) => other.length - one.length) // a secret may contain another one
  // Plain searches: a pattern of all secrets could be too large, and the error would quote it.
  const text = (given: string): string => {
    let result = given
    for (const one of known) result = result.replaceAll(one, MASK)
    for (const [form, by] of FORMS) result = result.replace(form, by)
    return result
  }
  const value = (given: unknown): unknown => {
    if (typeof given === 'string') return text(given)
    if (Array.isArray(given)) return given.map(value)
    if (typeof given !== 'object' || given === null) return given
    return Object.fromEntries(Object.entries(given).map(([name, one]) => [text(name), value(one)]))
  }
  return {
    /** Replaces the secrets in a text with stars. */
    text,
    /** Does the same for every name and every text in a JSON value. */
    value,
  }
}

/** Returns a secret as it may be written: plain, as JSON, in Base64 and base64url at any offset, percent-encoded. */
function formsOf(secret: string): string[] {
  const coded = base64Forms(Buffer.from(secret))
    .filter(({ length }) => length >= MIN_LENGTH)
    .flatMap((one) => [one, one.replaceAll('+', '-').replaceAll('/', '_')])
  const plain = [secret, JSON.stringify(secret).slice(1, -1), ...coded]
  return plain.flatMap((one) => {
    const escaped = percentEncoded(one)
    const lower = escaped.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase())
    return [one, escaped, lower, escaped.replaceAll('%', '%25')]
  })
}

/** Percent-encodes a text; a lone surrogate, which has no encoding, stays out of it. */
function percentEncoded(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
