import { createSecretSearch } from '../../upstream/secret-search.ts'

/** Removes secrets from texts that leave this machine. */
export interface Scrubber {
  /** Replaces the secrets in a text with stars. */
  readonly text: (text: string) => string
  /** Does the same for every name and every text in a JSON value. */
  readonly value: (value: unknown) => unknown
}

const MASK = '********'
/** Shorter values occur by chance, so that replacing them would make a text unreadable. */
const MIN_LENGTH = 6

/** What is a secret by its form, wherever it is: each pattern with what it is replaced by. */
const FORMS: readonly [RegExp, string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(bearer|basic)\s+[\w+/=.~:-]+/gi, `$1 ${MASK}`],
  [/\/\/[^\s/"'@?#]+@/g, `//${MASK}@`],
  [/(\bhttps?:\/\/[^\s"'<>?#]*)[?#][^\s"'<>]*/gi, `$1?${MASK}`],
  [/\bpmk_[\w-]+/g, MASK],
  [/\bwh(?:sec|sk)_[\w+/=-]+/g, MASK],
  [/\b(?:sk|pk|ghp|gho|xox[abp])[_-][\w-]{8,}/g, MASK],
  [/\beyJ[\w-]+(?:\.[\w-]+)*/g, MASK],
  [
    /((?:api[_-]?key|token|secret|password|passwd|pwd|signature|credential|authorization|cookie)["']?\s*[=:]\s*["']?)[^\s"'&,;}\\]+/gi,
    `$1${MASK}`,
  ],
]

/**
 * Creates a scrubber for these secrets, in plain text, Base64 and escaped forms, and for everything that has the form of a
 * secret.
 */
export function createScrubber(secrets: readonly string[]): Scrubber {
  const known = [...new Set(secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]))]
    .filter(({ length }) => length >= MIN_LENGTH)
    .sort((one, other) => other.length - one.length) // a secret may contain another one
  const search = createSecretSearch(() => known)
  const text = (given: string): string => {
    let result = given
    for (const secret of known) result = result.replaceAll(secret, MASK)
    result = search.scrub(result)
    for (const [form, by] of FORMS) result = result.replace(form, by)
    return result
  }
  const value = (given: unknown): unknown => {
    if (typeof given === 'string') return text(given)
    if (Array.isArray(given)) return given.map(value)
    if (typeof given !== 'object' || given === null) return given
    return Object.fromEntries(Object.entries(given).map(([name, one]) => [text(name), value(one)]))
  }
  return { text, value }
}
