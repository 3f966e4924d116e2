import { type ScopeSettings, describeOsvScope, takesAllOf } from '../../base/domain/osv-scope.ts'
import { type Meta, lackOf } from '../../upstream/http/response.ts'

/**
 * Returns what a mirror that is upstream says that it lacks of the records in a scope, by the headers of its index: some could not
 * be stored (X-Mirror-Incomplete), or its own scope leaves them out (X-Mirror-Scope). Null: it says nothing, as the service.
 */
export function lackAbove(meta: Pick<Meta, 'headers'>, own: ScopeSettings): string | null {
  if (lackOf(meta) !== null) return 'upstream is a mirror, and lacks records that are listed to it'
  const value = meta.headers['x-mirror-scope']
  if (typeof value !== 'string') return null
  const above = { include: entriesOf(value, 'include'), exclude: entriesOf(value, 'exclude'), vendors: own.vendors }
  if (describeOsvScope(above) === describeOsvScope(sorted(own)) || isWithin(own, above)) return null
  return `upstream is a mirror of a part of the records: ${describeOsvScope(above)}`
}

/** Returns a scope with its entries in the order of X-Mirror-Scope. */
function sorted({ include, exclude, vendors }: ScopeSettings): ScopeSettings {
  return { include: include.toSorted(), exclude: exclude.toSorted(), vendors }
}

/** Whether everything that a scope takes is taken by another one. */
function isWithin({ include }: ScopeSettings, above: ScopeSettings): boolean {
  return include.length > 0 && include.every((entry) => takesAllOf(above, entry))
}

/** Returns the entries of a list in X-Mirror-Scope, as `include="npm,Ubuntu", exclude="GHSA-"`; none for one that is not readable. */
function entriesOf(value: string, list: string): string[] {
  const text = new RegExp(`${list}="([^"]*)"`).exec(value)?.[1] ?? ''
  try {
    return decodeURI(text)
      .split(',')
      .filter((entry) => entry !== '')
  } catch {
    return []
  }
}
