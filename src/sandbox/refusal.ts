import type { NegotiatedAnswer } from './negotiate.ts'

/** An error as the service words it: a JSON message (wire facts, error bodies). */
export function refusal(status: number, message: string): NegotiatedAnswer {
  return jsonAnswer(status, { message })
}

/** Any value as a JSON answer. */
export function jsonAnswer(status: number, value: unknown): NegotiatedAnswer {
  const body = Buffer.from(JSON.stringify(value))
  const headers = { 'Content-Type': 'application/json' }
  return { status, headers, length: body.length, body: () => [body] }
}
