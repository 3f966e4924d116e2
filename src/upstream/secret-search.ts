import { MirrorError } from '../core/errors.ts'

/** Looks for the credentials in use in what upstream sends, so that none of them is stored. */
export interface SecretSearch {
  /** Throws `upstream_secret`, naming `place` and not the secret, when the bytes hold a credential. */
  readonly check: (bytes: Buffer | string, place: string) => void
  /** The same for bytes that come in chunks: one across two of them is found too. */
  readonly stream: (place: string) => (chunk: Buffer) => void
  /** The text with stars in place of each credential. */
  readonly scrub: (text: string) => string
}

/** A shorter text is too likely to be there by chance. */
const LEAST = 8
/** Of a longer secret its last bytes are looked for: they identify it, and a long pattern is slow. */
const PROBE = 48
/** A byte in any of its spellings is at most so long: `%252F`, `\u002f`. */
const SPELLING = 7
const STEP = 1 << 20

/**
 * A search for the secrets that `secretsOf` gives, in each of their forms: plain, Base64 (at any place in what is encoded, as
 * in `key:`; also base64url), and any of these with characters percent-encoded or JSON-escaped. `secretsOf` gives the
 * same array as long as nothing changed, or the pattern is made again. 100 MB take about 0.3 s.
 */
export function createSecretSearch(secretsOf: () => readonly string[]): SecretSearch {
  let known: readonly string[] = []
  let made: Pattern | null = null
  const current = (): Pattern | null => {
    const secrets = secretsOf()
    if (secrets.length !== known.length || secrets.some((secret, at) => secret !== known[at])) {
      known = [...secrets]
      made = patternOf(known)
    }
    return made
  }
  const refuse = (place: string): MirrorError =>
    new MirrorError(
      'upstream_secret',
      `${scrub(place)}: upstream returned the credential that it is asked with, so this answer is not stored. ` +
        'Replace the credential by a new one, and ask the operator of the service why its answers contain it.',
    )
  const scrub = (text: string): string => {
    const pattern = current()
    return pattern === null ? text : text.replace(new RegExp(pattern.found, 'g'), '********')
  }
  return {
    scrub,
    check(bytes, place) {
      const pattern = current()
      if (pattern === null) return
      const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
      for (let at = 0; at < buffer.length; at += STEP) {
        const end = Math.min(buffer.length, at + STEP + pattern.overlap)
        if (pattern.found.test(buffer.toString('latin1', at, end))) throw refuse(place)
      }
    },
    stream(place) {
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

/** What finds any of the secrets in text whose characters are bytes. */
interface Pattern {
  found: RegExp
  /** Two pieces of one text share so many characters, or what lies across them is missed. */
  overlap: number
}

function patternOf(secrets: readonly string[]): Pattern | null {
  const needles = secrets
    .map((secret) => Buffer.from(secret))
    .filter(({ length }) => length >= LEAST)
    .map((secret) => secret.subarray(-PROBE))
    .flatMap((secret) => [secret.toString('latin1'), ...base64Forms(secret)])
  if (needles.length === 0) return null
  const found = new RegExp([...new Set(needles)].map(spelled).join('|'))
  return { found, overlap: Math.max(...needles.map(({ length }) => length)) * SPELLING - 1 }
}

/** The part of its Base64 that does not depend on what stands around it, for each place that it can begin at. */
function base64Forms(secret: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const coded = Buffer.concat([Buffer.alloc(before), secret]).toString('base64')
    const from = Math.ceil((before * 8) / 6)
    return coded.slice(from, Math.floor(((before + secret.length) * 8) / 6))
  })
}

/** A pattern for a text in which each character may be written in another way. */
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
