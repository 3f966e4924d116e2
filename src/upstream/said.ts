import type { RawAnswer } from './transport.ts'
import { jsonTextOf } from '../json/text.ts'

const MAX_BYTES = 16_384
const MAX_LENGTH = 300

/**
 * What the body of a refusal says of the reason, in a line of at most 300 characters: a JSON body's description,
 * message or code. Null when it says nothing that is meant for people, or cannot be read.
 */
export async function readErrorReason(body: RawAnswer['body']): Promise<string | null> {
  const chunks: Buffer[] = []
  let total = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      total += chunk.length
      if (total > MAX_BYTES) return null // leaving the loop ends the body
    }
    return reasonOf(JSON.parse(jsonTextOf(Buffer.concat(chunks))))
  } catch {
    return null // the status is what counts
  }
}

const PLACES = ['error_description', 'message', 'detail', 'title', 'error'] as const

function reasonOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null
  const fields = body as Readonly<Record<string, unknown>>
  for (const place of PLACES) {
    const value = fields[place]
    if (typeof value === 'string' && value.trim() !== '') return oneLine(value)
    if (place === 'error' && typeof value === 'object') return reasonOf(value)
  }
  return null
}

function oneLine(text: string): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim()
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH)}…` : line
}
