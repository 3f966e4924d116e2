import { MirrorError } from '../errors.ts'
import type { Facet } from '../resources.ts'
import type { Order, Where } from '../store/catalog-query.ts'
import { onlyValue } from './query.ts'

/** Items on a page, when the request does not say (service API, section 8). */
export const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** An order, and how the request wrote it. */
export type Ordering = Order & { text: string }

/** `limit`, 1000 at most (service API, section 8); null when not given. Throws `bad_request`. */
export function readLimit(query: URLSearchParams): number | null {
  const text = onlyValue(query, 'limit')
  if (text === null) return null
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new MirrorError(
    'bad_request',
    `limit must be a whole number from 1 to ${MAX_LIMIT}, not ${shown(text)}`,
  )
}

/** The filters of a list. Throws `bad_request` for a value outside the contract's vocabulary. */
export function readWhere(query: URLSearchParams, facets: readonly Facet[]): Where[] {
  return facets.flatMap(({ param, values, many = false }, facet) => {
    const text = param === null ? null : onlyValue(query, param)
    if (param === null || text === null) return []
    const given = many ? text.split(',').map((value) => value.trim()) : [text]
    const wanted = [...new Set(given.filter((value) => value !== ''))]
    const unknown = wanted.filter((value) => values !== undefined && !values.includes(value))
    if (unknown.length > 0) {
      const known = (values ?? []).join(', ')
      throw new MirrorError(
        'bad_request',
        `${param}: unknown ${shown(unknown.join(', '))}; it is one of: ${known}`,
      )
    }
    return wanted.length === 0 ? [] : [{ facet, values: wanted }]
  })
}

const FIELD = /^([A-Za-z_]\w{0,63}):(asc|desc)$/

/** `order=<field>:<asc|desc>` of a list that can be narrowed; upstream's own order for others. Throws `bad_request`. */
export function readOrder(query: URLSearchParams, facets: readonly Facet[]): Ordering {
  const text = facets.length === 0 ? null : onlyValue(query, 'order')
  if (text === null) return { facet: null, field: null, descending: false, text: '' }
  const [, field, direction] = FIELD.exec(text) ?? []
  if (field === undefined) {
    const message = `order must be <field>:asc or <field>:desc, for example created_at:desc, not ${shown(text)}`
    throw new MirrorError('bad_request', message)
  }
  const facet = facets.findIndex((one) => one.field === field)
  return { facet: facet < 0 ? null : facet, field, descending: direction === 'desc', text }
}

/** The refusal of an order by a field that no item of the list has. */
export function unknownField({ field }: Ordering): MirrorError {
  const message = `order: no item of this list has a field ${shown(field ?? '')}`
  return new MirrorError('bad_request', message)
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}
