import { isObject } from '../../json/objects.ts'
import { LAST_ID_PARAMS, plainMember } from '../../json/list-names.ts'
import { statusOf } from '../http/errors.ts'
import { keyOfCursor, nextLink, targetOf } from './page-key.ts'
import type { ReadPage } from './page.ts'

/** Requests a page as a probe; null when there is nothing new. */
export type Ask = (target: string) => Promise<ReadPage | null>

/** A way to request the page after another. */
export interface NextPageAttempt {
  param: string
  value: string
  byId: boolean
  /** Member of the envelope that contains the value. */
  at?: string
}

/** A successful attempt; `ends`: nothing follows the page. */
interface FoundPage {
  attempt: NextPageAttempt
  ends: boolean
}

/** Parameter of services that count: the number of items already read. */
export const OFFSET = 'offset'

/** Creates a search for the way to request the next page of a list whose pages do not name it. */
export function createSeeker(
  { path, limit, idOf }: { path: string; limit: number; idOf: (item: Buffer) => string | null },
  ask: Ask,
) {
  const lastId = ({ items }: ReadPage): string | null => {
    const last = items.at(-1)
    return last === undefined ? null : idOf(last)
  }
  const answerTo = (attempt: NextPageAttempt): Promise<ReadPage | null> => {
    const key = keyOfCursor(path, limit, attempt.param, attempt.value)
    return probe(ask, targetOf(path, limit, key))
  }
  /** Returns whether upstream supports the parameter: after the first item it must return the second. */
  const isUnderstood = async (attempt: NextPageAttempt, { items }: ReadPage): Promise<boolean> => {
    const [one, other] = items
    const value = one === undefined || !attempt.byId ? '1' : idOf(one)
    if (other === undefined || value === null || attempt.at !== undefined) return false
    const answer = await answerTo({ ...attempt, value })
    return answer?.items[0]?.equals(other) === true
  }
  return {
    lastId,
    /** Returns the ways to request a next page: unknown texts of the envelope, the last id, the number of items. */
    attempts(page: ReadPage, collected: number): NextPageAttempt[] {
      const id = lastId(page)
      const ids =
        id === null ? [] : LAST_ID_PARAMS.map((param) => ({ param, value: id, byId: true }))
      return [
        ...textsOfPage(page),
        ...ids,
        { param: OFFSET, value: String(collected), byId: false },
      ]
    },
    /** Returns the first attempt that returns new items, or nothing where the list ends. */
    async first(attempts: readonly NextPageAttempt[], page: ReadPage): Promise<FoundPage | null> {
      const known = new Set(page.items.map((item) => item.toString('latin1')))
      for (const attempt of attempts) {
        const answer = await answerTo(attempt)
        const [first] = page.items
        if (answer === null || answer.items.some((item) => first?.equals(item) === true)) continue
        const ends = answer.items.every((item) => known.has(item.toString('latin1')))
        if (!ends) return { attempt, ends }
        // An empty response can also mean that the value was not understood.
        if (page.shape.more !== true && (await isUnderstood(attempt, page)))
          return { attempt, ends }
      }
      return null
    },
    /** Returns whether a page of one item names the next one: a page that names none is then the last. */
    async namesNext(): Promise<boolean> {
      const page = await probe(ask, `${path}?limit=1`)
      if (page === null || page.items.length > 1) return false
      return page.shape.next !== null || nextLink(page.link) !== null
    },
  }
}

/** Returns parameters suggested by a cursor's name: `next_page_token` → `page_token`, `next_cursor` → `cursor`. */
export function paramsOf(field: string): string[] {
  const bare = field.replace(/^next[_-]?/i, '')
  const small = bare.charAt(0).toLowerCase() + bare.slice(1)
  const own = [small, field, 'cursor', 'page_token', 'next'].filter((name) => name !== '')
  return [...new Set(own)].filter((name) => name !== 'after')
}

/**
 * Returns texts of the envelope with unknown names: one of them may be the cursor. Excludes members that describe the
 * response itself.
 */
export function textsOfPage({ value, shape }: ReadPage): NextPageAttempt[] {
  if (!isObject(value)) return []
  const fit = Object.entries(value).flatMap(([name, text]: [string, unknown]) => {
    const isText = typeof text === 'string' && text !== '' && text.length <= 1024
    if (!isText || OWN.test(plainMember(name)) || name === shape.itemsPath[0]) return []
    return [{ param: 'after', value: text, byId: false, at: name }]
  })
  return fit.slice(0, 3)
}

/** Member names that describe the response itself. */
const OWN = /^(id|object|type|kind|status|message|self|url|version|requestid|traceid|\w*at)$/

/** Returns null for a rejected request: upstream does not support the parameter, or the value. */
async function probe(ask: Ask, target: string): Promise<ReadPage | null> {
  try {
    return await ask(target)
  } catch (error) {
    const status = statusOf(error)
    if (status !== null && status >= 400 && status < 500 && status !== 429) return null
    throw error
  }
}
