import { MirrorError } from '../../base/errors.ts'
import { plainName, resolveField } from '../../base/json/field-names.ts'
import { namesOfPath } from '../../base/json/forms/item-fields.ts'
import type { Facet } from '../../base/domain/resources.ts'
import type { ListOrder, Where } from '../../store/catalog/list-query.ts'
import { onlyValue } from '../http/request-target.ts'

/** Page size of a list, in items, and the most that may be asked for (service API, section 8). */
export const DEFAULT_LIMIT = 100
export const MAX_LIMIT = 1000

/** An order, and how the request wrote it. */
export type Ordering = ListOrder & { text: string }

/** The filters of a list. Throws `bad_request` for a value outside the contract's vocabulary. */
export function readWhere(query: URLSearchParams, facets: readonly Facet[]): Where[] {
  return facets.flatMap(({ param, values, many = false, isUpperCase = false }, facet) => {
    const value = param === null ? null : onlyValue(query, param)
    if (param === null || value === null) return []
    const text = isUpperCase ? value.toUpperCase() : value
    const given = many ? text.split(',').map((value) => value.trim()) : [text]
    const wanted = [...new Set(given.filter((value) => value !== ''))]
    const unknown = wanted.filter((value) => values !== undefined && !values.includes(value))
    if (unknown.length > 0) {
      const known = (values ?? []).join(', ')
      throw new MirrorError('bad_request', `${param}: unknown ${shown(unknown.join(', '))}; it is one of: ${known}`)
    }
    return wanted.length === 0 ? [] : [{ facet, values: wanted }]
  })
}

const ORDER = /^([\p{L}_][\p{L}\p{N}_-]{0,63}):(asc|desc)$/u

/**
 * `order=<field>:<asc|desc>`; upstream's own order when not given. `fields` lists the names that items of the list have.
 * Throws `bad_request` for another form, `not_supported` for a field that no item has.
 */
export function readOrder(query: URLSearchParams, facets: readonly Facet[], fields: () => readonly string[]): Ordering {
  const text = onlyValue(query, 'order')
  if (text === null) return { facet: null, field: null, descending: false, text: '' }
  const [, field, direction] = ORDER.exec(text) ?? []
  if (field === undefined) {
    const message = `order must be <field>:asc or <field>:desc, for example created_at:desc, not ${shown(text)}`
    throw new MirrorError('bad_request', message)
  }
  const facet = facets.findIndex((one) => plainName(one.field) === plainName(field))
  const descending = direction === 'desc'
  if (facet >= 0) return { facet, field: null, descending, text }
  const path = pathOf(field, fields())
  if (path === null) throw unknownField('order', field)
  return { facet: null, field: path, descending, text }
}

/** Returns the names that lead to a field, of an item's own before those within objects; null when it has none. */
function pathOf(field: string, fields: readonly string[]): readonly string[] | null {
  const paths = fields.map(namesOfPath).filter((path) => path.every(isOrderable))
  const [name] = resolveField(
    field,
    paths.map((path) => path.at(-1) ?? ''),
  )
  const found = paths.filter((path) => path.at(-1) === name)
  return found.sort((one, other) => one.length - other.length)[0] ?? null
}

/** Reports whether a field name can be used in a JSON path of SQLite. */
function isOrderable(name: string): boolean {
  return !/["\\\p{Cc}]/u.test(name)
}

/** The refusal of a parameter for whose field the mirror has no value: only upstream can answer it. */
export function unknownField(param: string, field: string): MirrorError {
  const message =
    `${param}: no item of this list has a field ${shown(field)}, or several could be meant, so the mirror cannot ` +
    'answer this: leave the parameter out, or ask the service itself'
  return new MirrorError('not_supported', message)
}

/** Parameters that every list takes. */
const COMMON = ['limit', 'after', 'order']

/** A list's query with each parameter under its own name, and the names of those that the list does not have. */
interface ListQuery {
  readonly known: URLSearchParams
  readonly unknown: readonly string[]
}

/**
 * Parses a list's query; a parameter may be spelled like the fields are (`cveId` for `cve_id`). `pagers`: further parameters
 * by which clients of this list request the next page.
 */
export function readListQuery(
  query: URLSearchParams,
  facets: readonly Facet[],
  pagers: readonly string[] = [],
): ListQuery {
  const names = [...COMMON, ...pagers, ...facets.flatMap(({ param }) => (param === null ? [] : [param]))]
  const known = new URLSearchParams()
  const unknown = new Set<string>()
  for (const [given, value] of query) {
    const name = names.find((one) => plainName(one) === plainName(given))
    if (name === undefined) unknown.add(given)
    else known.append(name, value)
  }
  return { known, unknown: [...unknown] }
}

/** The refusal of parameters that a list does not have. */
export function unknownParameters(unknown: readonly string[], facets: readonly Facet[]): MirrorError {
  const params = facets.flatMap(({ param }) => (param === null ? [] : [param]))
  const message =
    `unknown query parameter ${unknown.slice(0, 5).map(shown).join(', ')}: this list takes ` +
    `${[...COMMON, ...params].join(', ')}; leave it out, or set server.strictParameters to false to have it ignored`
  return new MirrorError('bad_request', message)
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}
