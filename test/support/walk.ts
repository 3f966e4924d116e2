import type { ListForm, MemberPath, Shape } from '../sandbox/service/shapes/shape.ts'

/** A page as a client of a shape reads it. */
export interface WalkedPage {
  items: Record<string, unknown>[]
  /** The path that asks for the next page; null on the last one. */
  next: string | null
}

/** Which of a shape's envelopes a path has. */
export function formOf(shape: Shape, path: string): ListForm {
  return /^\/v1\/patches(\?|$)/.test(path) ? shape.patches : shape.lists
}

/** Reads a page, and how it names the next one, by a shape's own rule. Parameters that its URL leaves out are kept. */
export async function readPage(response: Response, path: string, form: ListForm): Promise<WalkedPage> {
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  const body: unknown = await response.json()
  const items = valueAt(body, form.items)
  if (!Array.isArray(items)) throw new Error(`${path} has no items at ${form.items.join('.')}`)
  const records = items as WalkedPage['items'] // items of a list are objects
  return { items: records, next: nextPath(response, body, items.at(-1), path, form) }
}

/** Every item of a list in the order of its pages, and how many pages there were. */
export async function walkList(
  ask: (path: string) => Promise<Response>,
  path: string,
  form: ListForm,
): Promise<{ items: WalkedPage['items']; pages: number }> {
  const items: WalkedPage['items'] = []
  let next: string | null = path
  for (let pages = 1; pages <= 500; pages++) {
    const page: WalkedPage = await readPage(await ask(next), next, form)
    items.push(...page.items)
    next = page.next
    if (next === null) return { items, pages }
  }
  throw new Error(`${path} does not end`)
}

function nextPath(response: Response, body: unknown, last: unknown, path: string, { next }: ListForm): string | null {
  if (next.form === 'link') {
    const link = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    return link === undefined ? null : merged(path, link)
  }
  if (!('at' in next)) return nextByNumber(response, body, path, next)
  const value = valueAt(body, next.at)
  if (next.form === 'lastId') {
    return value === true ? withParameter(path, next.parameter, idOf(last)) : null
  }
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw new Error(`${path} has no text at ${next.at.join('.')}`)
  return next.form === 'url' ? merged(path, value) : withParameter(path, next.parameter, value)
}

/** The next page of a form that names none in its envelope: by a header, a page number or an offset. */
function nextByNumber(
  response: Response,
  body: unknown,
  path: string,
  next: Exclude<ListForm['next'], { at: MemberPath } | { form: 'link' }>,
): string | null {
  if (next.form === 'header') {
    const cursor = response.headers.get(next.name)
    return cursor === null ? null : withParameter(path, next.parameter, cursor)
  }
  if (next.form === 'range') {
    const [, end, total] = /-(\d+)\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? []
    const offset = Number(end ?? Infinity) + 1
    return offset < Number(total) ? withParameter(path, next.parameter, String(offset)) : null
  }
  if (next.form === 'none' || next.number === undefined || next.pages === undefined) return null
  const number = Number(valueAt(body, next.number))
  const last = Number(valueAt(body, next.pages)) - 1 + next.first
  return number < last ? withParameter(path, next.parameter, String(number + 1)) : null
}

function idOf(item: unknown): string {
  const record = item as Record<string, unknown> // an item of a list
  const id = record['id'] ?? record['ticket_id'] ?? record['ticketId'] ?? record['user_id']
  return String(id ?? record['userId'])
}

function merged(path: string, given: string): string {
  const url = new URL(given, `http://host${path}`)
  for (const [name, value] of new URL(path, 'http://host').searchParams)
    if (!url.searchParams.has(name) && !CURSORS.has(name)) url.searchParams.set(name, value)
  return url.pathname + url.search
}

const CURSORS = new Set(['after', 'cursor', 'page_token', 'starting_after'])

function withParameter(path: string, name: string, value: string): string {
  const url = new URL(path, 'http://host')
  url.searchParams.set(name, value)
  return url.pathname + url.search
}

/** The value at a place of a JSON value. */
export function valueAt(value: unknown, place: MemberPath): unknown {
  return place.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], value)
}
