import type { Capture } from './capture.ts'
import type { KeptSecret } from '../receive/secret-file.ts'
import { type KeyForm, type Written, AS_CAPTURED, bodyForms, keyForms, readSignature } from './forms.ts'

/** A stored secret, with its label and the dates of its validity. */
export type LabelledSecret = Pick<KeptSecret, 'label' | 'secret' | 'notBefore' | 'notAfter'>

/** Whether a secret counts at a time (unix milliseconds). */
export function isValidAt({ notBefore, notAfter }: LabelledSecret, time: number): boolean {
  return (notBefore === null || notBefore <= time) && (notAfter === null || time <= notAfter)
}

/** How a captured signature was computed; every part that is a guess is marked. */
export interface SecretMatch {
  readonly secret: string
  readonly key: string
  readonly encoding: string
  readonly content: string
  readonly body: string
  /** The mirror takes it as it is, its time apart. */
  readonly usual: boolean
}

/** What was looked for, and with what. */
interface DoctorQuestion {
  readonly capture: Capture
  readonly secrets: readonly LabelledSecret[]
}

interface Attempt {
  readonly content: Buffer
  readonly name: string
  readonly body: string
}

/** Returns the first way, from the likely to the unlikely, in which one of the secrets gives one of the signatures. */
export function findMatch({ capture, secrets }: DoctorQuestion): SecretMatch | null {
  const id = captureHeader(capture, 'webhook-id')
  const timestamp = captureHeader(capture, 'webhook-timestamp')
  const signatures = signaturesOf(capture)
  const keys = secrets.flatMap(({ label, secret }) => keyForms(secret).map((form) => ({ label, form })))
  for (const attempt of attempts(id, timestamp, capture.body)) {
    for (const { label, form } of keys) {
      const signature = signatures.find((one) => form.fits(attempt.content, one))
      if (signature !== undefined) return matchOf(attempt, label, form, signature)
    }
  }
  return null
}

function matchOf(attempt: Attempt, label: string, form: KeyForm, signature: Written): SecretMatch {
  const asIs = attempt.name === USUAL && attempt.body === AS_CAPTURED
  return {
    secret: label,
    key: form.name,
    encoding: signature.encoding,
    content: attempt.name,
    body: attempt.body,
    usual: asIs && form.usual && signature.usual,
  }
}

/** What is signed: the bytes of id, time and body with dots between (Standard Webhooks). */
function signedContent(id: string, timestamp: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
}

/** The first value of a header; '' when it is not there. */
export function captureHeader({ headers }: Capture, wanted: string): string {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? ''
}

/** Every signature in the header that is 32 or 64 bytes in some form, with or without a version before it. */
export function signaturesOf(capture: Capture): Written[] {
  return captureHeader(capture, 'webhook-signature')
    .split(/\s+/)
    .flatMap((part) => readSignature(part.replace(/^(v\d+a?[,=]|sha256=)/, '')) ?? [])
}

const USUAL = 'id.timestamp.body'

/** What may have been signed: the right thing, then the body in other forms, then other contents. */
function* attempts(id: string, timestamp: string, body: Buffer): Generator<Attempt> {
  for (const form of bodyForms(body))
    yield { content: signedContent(id, timestamp, form.body), name: USUAL, body: form.name }
  const timed = Buffer.concat([Buffer.from(`${timestamp}.`), body])
  yield { content: body, name: 'the body alone', body: AS_CAPTURED }
  yield { content: timed, name: 'timestamp.body', body: AS_CAPTURED }
}
