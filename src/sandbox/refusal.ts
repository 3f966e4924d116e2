import type { Answer } from './negotiate.ts'

/** An error as the service words it: a JSON message (wire facts, error bodies). */
export function refusal(status: number, message: string): Answer {
  return jsonAnswer(status, { message })
}

/** Any value as a JSON answer. */
export function jsonAnswer(status: number, value: unknown): Answer {
  const body = Buffer.from(JSON.stringify(value))
  const headers = { 'Content-Type': 'application/json' }
  return { status, headers, length: body.length, body: () => [body] }
}
