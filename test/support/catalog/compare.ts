import { createHash } from 'node:crypto'
import { getUrl } from '../loopback.ts'
import type { CatalogBench } from './mirror.ts'

/** What an answer amounts to: comparable between the service and the mirror. */
export interface Comparable {
  status: number
  body: unknown
}

/**
 * Asks both for the same path. Bytes are compared for items; lists by their values, cursors by whether there is one;
 * links by the bytes that they lead to; refusals by their status alone, for each speaks for itself.
 */
export async function compare(made: CatalogBench, path: string): Promise<{ mirror: Comparable; upstream: Comparable }> {
  const [mirror, upstream] = await Promise.all([made.ask(path), made.askUpstream(path)])
  return { mirror: await read(mirror), upstream: await read(upstream) }
}

async function read(response: Response): Promise<Comparable> {
  const { status } = response
  const text = await response.text()
  if (status !== 200) return { status, body: null }
  const value: unknown = JSON.parse(text)
  return { status, body: isPlain(value) ? text : await resolved(value) }
}

/** An item without links is compared byte for byte. */
function isPlain(value: unknown): boolean {
  return !JSON.stringify(value).includes('http://127.0.0.1') && !isList(value)
}

function isList(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return ['cursor', 'next_cursor', 'pagination'].some((name) => name in value) || 'total' in value
}

async function resolved(value: unknown): Promise<unknown> {
  if (typeof value === 'string') return value.startsWith('http://127.0.0.1') ? digestAt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Promise.all(value.map(resolved))
  const entries = Object.entries(value).map(async ([name, inner]) => [
    name,
    /^(after|next|next_cursor|before|previous)$/.test(name) ? isCursor(name, inner) : await resolved(inner),
  ])
  return Object.fromEntries((await Promise.all(entries)) as [string, unknown][])
}

/** The mirror walks forward only, so whether there is a page before is not compared. */
function isCursor(name: string, value: unknown): unknown {
  if (name === 'before' || name === 'previous') return 'not compared'
  return typeof value === 'string' && value !== '' ? 'a cursor' : value
}

/** What a link leads to, without any credential. */
async function digestAt(url: string): Promise<string> {
  const response = await getUrl(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  return `${response.status} ${createHash('sha256').update(bytes).digest('hex')}`
}

/** Every page of a list from the first to the last, each by its items. */
export async function walkPages(ask: (path: string) => Promise<Response>, path: string): Promise<unknown[]> {
  const items: unknown[] = []
  for (let after: string | null = null, pages = 0; pages < 500; pages++) {
    const mark: string = path.includes('?') ? '&' : '?'
    const more: string = after === null ? '' : `${mark}after=${encodeURIComponent(after)}`
    const page = (await (await ask(path + more)).json()) as Record<string, unknown>
    const list = Object.values(page).find(Array.isArray) as unknown[]
    items.push(...list)
    after = cursorOf(page)
    if (after === null) return items
  }
  throw new Error(`${path} does not end`)
}

function cursorOf(page: Record<string, unknown>): string | null {
  const cursor = page['cursor'] as { after?: unknown } | undefined
  const pagination = page['pagination'] as { next?: unknown } | undefined
  const next = cursor?.after ?? pagination?.next ?? page['next_cursor']
  return typeof next === 'string' && next !== '' ? next : null
}
