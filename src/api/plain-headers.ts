import { type Coding, chooseCoding } from './negotiate.ts'

/** Header fields that change nothing about the answer to a plain GET, or, the last three, whose value is looked at. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'user-agent',
  'accept',
  'accept-language',
  'authorization',
  'api-key',
  'cache-control',
  'cookie',
  'dnt',
  'from',
  'origin',
  'pragma',
  'referer',
  'host',
  'connection',
  'accept-encoding',
])

/** A longer block is Node's to read. */
const MAX_BLOCK = 8192
/** One class, so that a failed match takes one pass. */
const PLAIN_VALUE = /^[\t -~]*$/

/**
 * Reads a block of headers (from the end of the request line on): the coding to answer with, null when it holds
 * anything that is not plain. A client repeats the same block on a connection, so the last verdict is remembered.
 */
export function createHeaderMemory(): (block: string) => Coding | null {
  let last = ''
  let verdict: Coding | null = null
  return (block) => {
    if (block.length > MAX_BLOCK) return null
    if (block !== last) {
      verdict = readPlainHeaders(block)
      last = block
    }
    return verdict
  }
}

function readPlainHeaders(block: string): Coding | null {
  if (!block.endsWith('\r\n\r\n')) return null
  const fields = new Map<string, string>()
  for (const line of block.slice(2, -4).split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (!PLAIN_FIELDS.has(name) || fields.has(name)) return null
    const value = line.slice(colon + 1)
    if (!PLAIN_VALUE.test(value)) return null
    fields.set(name, value.trim())
  }
  const connection = fields.get('connection') ?? 'keep-alive'
  if (!fields.has('host') || connection.toLowerCase() !== 'keep-alive') return null
  return chooseCoding(fields.get('accept-encoding'))
}
