import { isObject } from '../../base/json/objects.ts'
import { toIsoOrNull } from '../../base/time.ts'
import { plainSecret, webhookSecretFault } from '../../config/kinds/keys.ts'
import { MirrorError, messageOf, systemCode, whyUnreadable } from '../../base/errors.ts'
import { readNamedFile, replacePrivateFile } from '../../base/files.ts'

/** A secret in the secret file. */
export interface KeptSecret {
  /** What log and inbox call it: letters, digits and `._-`, 64 at most; no two the same. */
  readonly label: string
  readonly secret: string
  /** The subscription of the service's that it belongs to; null when it is not known. */
  readonly subscription: string | null
  /** Valid from and until these times, unix milliseconds; null: without limit. */
  readonly notBefore: number | null
  readonly notAfter: number | null
}

/** Whether a secret counts at a time (unix milliseconds). */
export function isValidAt({ notBefore, notAfter }: Pick<KeptSecret, 'notBefore' | 'notAfter'>, time: number): boolean {
  return (notBefore === null || notBefore <= time) && (notAfter === null || time <= notAfter)
}

const LABEL = /^[A-Za-z0-9._-]{1,64}$/
/** Many times what a thousand secrets need. */
const MAX_CHARACTERS = 1_000_000

/** The text of the file; null when there is none. Throws `config` when it cannot be read. */
export function readSecretText(path: string): string | null {
  try {
    return readNamedFile(path).toString('utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw fault(path, `cannot be read (${whyUnreadable(error)})`)
  }
}

/**
 * Reads `{"secrets": [{"label", "secret", "subscription", "notBefore", "notAfter"}]}`, the last three optional, dates in
 * ISO 8601. Throws `config` and quotes nothing of the file.
 */
export function parseSecretFile(text: string, path: string): KeptSecret[] {
  const value = text.length > MAX_CHARACTERS ? null : parseJson(text, path)
  const list = isObject(value) ? value['secrets'] : null
  if (!Array.isArray(list)) throw fault(path, 'does not contain {"secrets": […]}')
  const secrets = list.map((entry: unknown, at) => readEntry(entry, `(secret ${at + 1})`, path))
  const labels = secrets.map(({ label }) => label)
  const twice = labels.find((label, at) => labels.indexOf(label) !== at)
  if (twice !== undefined) throw fault(path, `has two secrets with the label ${twice}`)
  return secrets
}

function readEntry(entry: unknown, place: string, path: string): KeptSecret {
  if (!isObject(entry)) throw fault(path, `${place} is not an object`)
  const { label, secret: given, subscription = null } = entry
  if (typeof label !== 'string' || !LABEL.test(label))
    throw fault(path, `${place} has no label of letters, digits, dots, _ and -`)
  if (typeof given !== 'string') throw fault(path, `${place} has no secret`)
  const secret = plainSecret(given)
  const weak = webhookSecretFault(secret)
  if (weak !== null) throw fault(path, `${place} ${weak}`)
  if (subscription !== null && typeof subscription !== 'string')
    throw fault(path, `${place} has a subscription that is not text`)
  const notBefore = readDate(entry['notBefore'], `${place} notBefore`, path)
  const notAfter = readDate(entry['notAfter'], `${place} notAfter`, path)
  return { label, secret, subscription, notBefore, notAfter }
}

function readDate(value: unknown, place: string, path: string): number | null {
  if (value === undefined || value === null) return null
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw fault(path, `${place} is not a date such as 2026-11-21T09:00:00Z`)
  return time
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw fault(path, 'is not JSON') // the parser's own words would quote it
  }
}

/** A `config` error about the file; `what` is wrong with it, as words that follow its name. */
export class SecretFileError extends MirrorError {
  readonly what: string
  constructor(path: string, what: string) {
    const advice = '"patchmirror webhooks register", at a mirror with an upstream, writes it.'
    super('config', `the webhook secrets in ${path}: the file ${what}. Repair or remove it; ${advice}`)
    this.what = what
  }
}

function fault(path: string, what: string): SecretFileError {
  return new SecretFileError(path, what)
}

/** Returns what is wrong with the file, as words that follow its name; null: it can be used, or there is none. */
export function faultOfSecretFile(path: string): string | null {
  try {
    const text = readSecretText(path)
    if (text !== null) parseSecretFile(text, path)
    return null
  } catch (error) {
    if (error instanceof SecretFileError) return error.what
    throw error
  }
}

/**
 * Writes the file whole, for its owner alone, by a new file that takes the place of the old: a reader sees one or the other.
 * Throws `storage`.
 */
export function replaceSecretFile(path: string, secrets: readonly KeptSecret[]): void {
  const entries = secrets.map(({ notBefore, notAfter, ...rest }) => ({
    ...rest,
    notBefore: toIsoOrNull(notBefore),
    notAfter: toIsoOrNull(notAfter),
  }))
  try {
    replacePrivateFile(path, `${JSON.stringify({ secrets: entries }, null, 2)}\n`)
  } catch (error) {
    const message = `the webhook secrets cannot be written to ${path} (${messageOf(error)})`
    throw new MirrorError('storage', message, { cause: error })
  }
}
