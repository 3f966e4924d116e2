import { LAST_ID_PARAMS, plainMember } from '../../json/list-names.ts'
import { statusOf } from '../http/errors.ts'
import { keyOfCursor, nextLink, targetOf } from './page-key.ts'
import type { ReadPage } from './page.ts'

/** Asks for a page to see what is there; null when there is nothing new. */
export type Ask = (target: string) => Promise<ReadPage | null>

/** A way to ask for the page behind another. */
export interface NextPageAttempt {
  param: string
  value: string
  byId: boolean
  /** The member of the envelope that holds the value. */
  at?: string
}

/** An attempt that worked; `ends`: there is nothing behind the page. */
interface FoundPage {
  attempt: NextPageAttempt
  ends: boolean
}

/** For services that count: how many items were seen. */
export const OFFSET = 'offset'

/** Finds out by asking how a list goes on whose pages do not say it. */
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
    return askMildly(ask, targetOf(path, limit, key))
  }
  /** Whether the parameter is understood: behind the first item stands the second one. */
  const isUnderstood = async (attempt: NextPageAttempt, { items }: ReadPage): Promise<boolean> => {
    const [one, other] = items
    const value = one === undefined || !attempt.byId ? '1' : idOf(one)
    if (other === undefined || value === null || attempt.at !== undefined) return false
    const answer = await answerTo({ ...attempt, value })
    return answer?.items[0]?.equals(other) === true
  }
  return {
    lastId,
    /** What to ask with for what may follow a page: unknown texts of its envelope, its last id, how many there were. */
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
    /** The first attempt that is answered by what the page does not have, or by nothing where the list ends. */
    async first(attempts: readonly NextPageAttempt[], page: ReadPage): Promise<FoundPage | null> {
      const known = new Set(page.items.map((item) => item.toString('latin1')))
      for (const attempt of attempts) {
        const answer = await answerTo(attempt)
        const [first] = page.items
        if (answer === null || answer.items.some((item) => first?.equals(item) === true)) continue
        const ends = answer.items.every((item) => known.has(item.toString('latin1')))
        if (!ends) return { attempt, ends }
        // An empty answer may also mean that the value was not understood.
        if (page.shape.more !== true && (await isUnderstood(attempt, page)))
          return { attempt, ends }
      }
      return null
    },
    /** Whether a page of a single item names the next one: then a page that names none is the last. */
    async namesNext(): Promise<boolean> {
      const page = await askMildly(ask, `${path}?limit=1`)
      if (page === null || page.items.length > 1) return false
      return page.shape.next !== null || nextLink(page.link) !== null
    },
  }
}

/** Parameters that a cursor's name suggests: `next_page_token` → `page_token`, `next_cursor` → `cursor`. */
export function paramsOf(field: string): string[] {
  const bare = field.replace(/^next[_-]?/i, '')
  const small = bare.charAt(0).toLowerCase() + bare.slice(1)
  const own = [small, field, 'cursor', 'page_token', 'next'].filter((name) => name !== '')
  return [...new Set(own)].filter((name) => name !== 'after')
}

/** Texts of the envelope's top that no rule knows: one of them may be the cursor. Not those of the answer itself. */
export function textsOfPage({ value, shape }: ReadPage): NextPageAttempt[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const fit = Object.entries(value).flatMap(([name, text]: [string, unknown]) => {
    const isText = typeof text === 'string' && text !== '' && text.length <= 1024
    if (!isText || OWN.test(plainMember(name)) || name === shape.itemsPath[0]) return []
    return [{ param: 'after', value: text, byId: false, at: name }]
  })
  return fit.slice(0, 3)
}

/** Members that tell of the answer itself. */
const OWN = /^(id|object|type|kind|status|message|self|url|version|requestid|traceid|\w*at)$/

/** Null for what is refused: upstream does not know the parameter, or the value. */
async function askMildly(ask: Ask, target: string): Promise<ReadPage | null> {
  try {
    return await ask(target)
  } catch (error) {
    const status = statusOf(error)
    if (status !== null && status >= 400 && status < 500 && status !== 429) return null
    throw error
  }
}
