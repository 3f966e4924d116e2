import type { HeaderRefusal } from '../receive/headers.ts'
import { type KeptSecret, isValidAt } from '../receive/secret-file.ts'
import {
  type MatchedForm,
  type SignatureDialect,
  type SignatureResult,
  createSigningSecret,
  createVerifier,
} from '../receive/signature.ts'
import type { Capture } from './capture.ts'

/** Result of checking a captured delivery, and its problems. Contains no secret, no signature, no body. */
export interface Diagnosis {
  /** `accepted`: this mirror takes it at that time. */
  readonly verdict: 'accepted' | 'refused'
  /** What is wrong, worst first, each with what to do. */
  readonly problems: readonly string[]
  /** Which stored secret the signature is by, and in which form; null: none of them. */
  readonly match: { readonly secret: string; readonly form: MatchedForm } | null
  /** Seconds by which the delivery's time is behind the given clock; null: it has no time. */
  readonly ageSeconds: number | null
}

/** What is judged, and by what. `now` in unix milliseconds. */
export interface Case {
  readonly capture: Capture
  readonly secrets: readonly Pick<KeptSecret, 'label' | 'secret' | 'notBefore' | 'notAfter'>[]
  readonly now: number
  readonly toleranceSeconds: number
  readonly dialect: SignatureDialect | 'any'
  /** Whether there is an upstream, with which a secret can be registered. */
  readonly canRegister: boolean
}

/**
 * Checks a delivery exactly as the receiver does, and reports why it is refused: its headers, its time, its signature. The
 * signature is also tried by every stored secret, in every form and at any time.
 */
export function diagnose(judged: Case): Diagnosis {
  const { now, toleranceSeconds, dialect, secrets } = judged
  const valid = secrets.filter((one) => isValidAt(one, now))
  const verdict = verify(judged, { secrets: valid, dialect, toleranceSeconds })
  const any = verify(judged, { secrets, dialect: 'any', toleranceSeconds: Infinity })
  const match = any.ok ? { secret: any.label, form: any.dialect } : null
  const ageSeconds = ageOf(judged)
  if (verdict.ok) return { verdict: 'accepted', problems: [], match, ageSeconds }
  const header = HEADER_PROBLEMS[verdict.reason]
  const problems = header === undefined ? secretProblems(judged, match, ageSeconds) : [header]
  if (secrets.length === 0) problems.push(noSecret(judged))
  return { verdict: 'refused', problems, match, ageSeconds }
}

/** The receiver's own verdict, by some secrets and rules. */
function verify({ capture, now }: Case, by: Pick<Case, 'secrets' | 'dialect' | 'toleranceSeconds'>): SignatureResult {
  const signing = by.secrets.map(({ label, secret }) => createSigningSecret(label, secret))
  return createVerifier({ ...by, secrets: () => signing, now: () => now })(capture.headers.flat(), capture.body)
}

/** What is wrong with the headers, by the receiver's verdict; the others are about time and secrets. */
const HEADER_PROBLEMS: Readonly<Partial<Record<HeaderRefusal, string>>> = {
  header_missing:
    'webhook-id, webhook-timestamp or webhook-signature is missing: a proxy drops it, or the sender does not sign',
  header_repeated:
    'webhook-id, webhook-timestamp or webhook-signature is there more than once: a proxy or the sender doubles it',
  header_id: 'webhook-id is malformed: 1 to 256 of A-Z a-z 0-9 _ : - are allowed',
  header_timestamp: 'webhook-timestamp is malformed: it is unix seconds in digits',
  header_signature: 'webhook-signature is malformed: it is at most 16 of "v1,<signature>", 4 KiB, with spaces between',
}

function ageOf({ capture, now }: Case): number | null {
  const [, time = ''] = capture.headers.find(([name]) => name.toLowerCase() === 'webhook-timestamp') ?? []
  return /^\d{1,12}$/.test(time) ? Math.floor(now / 1000) - Number(time) : null
}

function secretProblems(judged: Case, match: Diagnosis['match'], age: number | null): string[] {
  const problems = timeProblems(age, judged.toleranceSeconds)
  if (judged.secrets.length === 0) return problems
  if (match === null) return [...problems, NO_MATCH]
  const used = judged.secrets.find(({ label }) => label === match.secret)
  if (used !== undefined && !isValidAt(used, judged.now))
    problems.push(`the secret ${used.label} does not count at that time (notBefore, notAfter in webhook-secrets.json)`)
  else if (problems.length === 0)
    problems.push(
      `the signature is sound, but not of the form that webhooks.dialect pins (${judged.dialect}): set it to any`,
    )
  return problems
}

function timeProblems(age: number | null, tolerance: number): string[] {
  if (age === null || Math.abs(age) <= tolerance) return []
  const side = age > 0 ? 'old' : 'ahead'
  const limit = `the time of the delivery is ${Math.abs(age)} s ${side}, ${tolerance} s are allowed`
  if (age > 0) return [`${limit}: judge an old capture by its own time (--at), else compare the two clocks`]
  return [`${limit}: the clock of this machine is behind, or the sender's ahead`]
}

const NO_MATCH =
  "no stored secret or public key gives this signature: it is by another subscription's secret, or webhook-id, " +
  'webhook-timestamp or the body was changed on the way. Compare "patchmirror webhooks list" with the sender, and ' +
  'capture the request as bytes'

function noSecret({ canRegister }: Case): string {
  const registers = canRegister ? `create one with "patchmirror webhooks register", or ` : ''
  return `the mirror has no secret: ${registers}set one in webhooks.secrets`
}
