import { MirrorError } from '../base/errors.ts'

/** Searches upstream's responses for the credentials in use, so that none of them is stored. */
export type SecretSearch = ReturnType<typeof createSecretSearch>

/** Minimum length of a secret, bytes: a shorter one can occur by chance. */
const MIN_LENGTH = 8
/** Number of last bytes of a longer secret that are searched for: they identify it, and a long pattern is slow. */
const PROBE = 48
/** Maximum length of an escaped byte: `%252F`, `\u002f`. */
const SPELLING = 7
const STEP = 1 << 20

/**
 * Creates a search for the secrets that `secretsOf` returns, in each of their forms: plain, Base64 (at any offset of
 * the encoded text, as in `key:`; also base64url), and any of these with percent-encoded or JSON-escaped characters.
 * `secretsOf` should return the same array while nothing changed, since another one is compared. 100 MB take about 0.3 s.
 */
export function createSecretSearch(secretsOf: () => readonly string[]) {
  let last: readonly string[] = []
  let known: readonly string[] = []
  let pattern: Pattern | null = null
  const current = (): Pattern | null => {
    const secrets = secretsOf()
    if (secrets === last) return pattern
    last = secrets
    if (secrets.length !== known.length || secrets.some((secret, at) => secret !== known[at])) {
      known = [...secrets]
      pattern = patternOf(known)
    }
    return pattern
  }
  const refuse = (place: string): MirrorError =>
    new MirrorError(
      'upstream_secret',
      `${scrub(place)}: upstream returned the credential that the mirror uses, so this response is not stored. ` +
        'Replace the credential by a new one, and ask the operator of the service why its responses contain it.',
    )
  const scrub = (text: string): string => {
    const pattern = current()
    return pattern === null ? text : text.replace(new RegExp(pattern.found, 'g'), '********')
  }
  return {
    /** The credentials that are searched for now, to search for them in another thread. */
    list: secretsOf,
    /** Replaces each credential in a text with stars. */
    scrub,
    /** Throws `upstream_secret`, naming `place` and not the secret, when the bytes contain a credential. */
    check(bytes: Buffer | string, place: string): void {
      const pattern = current()
      if (pattern === null) return
      const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
      for (let at = 0; at < buffer.length; at += STEP) {
        const end = Math.min(buffer.length, at + STEP + pattern.overlap)
        if (pattern.found.test(buffer.toString('latin1', at, end))) throw refuse(place)
      }
    },
    /** Does the same for chunked bytes, also across chunk boundaries. */
    stream(place: string): (chunk: Buffer) => void {
      let tail = ''
      return (chunk) => {
        const pattern = current()
        if (pattern === null) return
        const text = tail + chunk.toString('latin1')
        if (pattern.found.test(text)) throw refuse(place)
        tail = text.slice(-pattern.overlap)
      }
    },
  }
}

/** A pattern that finds any of the secrets in text whose characters are bytes. */
interface Pattern {
  found: RegExp
  /** Number of characters by which two consecutive chunks must overlap. */
  overlap: number
}

function patternOf(secrets: readonly string[]): Pattern | null {
  const needles = secrets
    .map((secret) => Buffer.from(secret))
    .filter(({ length }) => length >= MIN_LENGTH)
    .map((secret) => secret.subarray(-PROBE))
    .flatMap((secret) => [secret.toString('latin1'), ...base64Forms(secret)])
  if (needles.length === 0) return null
  const found = new RegExp([...new Set(needles)].map(spelled).join('|'))
  return { found, overlap: Math.max(...needles.map(({ length }) => length)) * SPELLING - 1 }
}

/** Returns the part of the secret's Base64 that does not depend on its context, for each possible offset. */
export function base64Forms(secret: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const coded = Buffer.concat([Buffer.alloc(before), secret]).toString('base64')
    const from = Math.ceil((before * 8) / 6)
    return coded.slice(from, Math.floor(((before + secret.length) * 8) / 6))
  })
}

/** Returns a pattern for a text in which each character may be escaped. */
function spelled(text: string): string {
  return Array.from(text, (character) => spelledCharacter(character)).join('')
}

function spelledCharacter(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(2, '0')
  const anyCase = code.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
  const others = { '+': ['-'], '/': ['_', '\\\\/'], '"': ['\\\\"'], '\\': ['\\\\\\\\'] }[character]
  const forms = [`\\x${code}`, ...(others ?? []), `%(?:25)?${anyCase}`, `\\\\u00${anyCase}`]
  return `(?:${forms.join('|')})`
}
