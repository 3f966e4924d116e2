import { type ScopeSettings, describeOsvScope, parseScopeEntry, takesAllOf } from '../../base/domain/osv-scope.ts'
import { type Meta, lackOf } from '../../upstream/http/response.ts'
import type { RunFacts } from '../../store/runs/runs.ts'
import type { UpstreamLack } from './index-parser.ts'

/**
 * Returns what a mirror that is upstream says that it lacks of the records in a scope, by the headers of its index: its own scope
 * leaves them out (X-Mirror-Scope), or some could not be stored (X-Mirror-Incomplete). Null: it says nothing, as the service.
 */
export function lackAbove(meta: Pick<Meta, 'headers'>, own: ScopeSettings): UpstreamLack | null {
  const value = meta.headers['x-mirror-scope']
  const above = value === undefined ? null : scopeIn(value)
  if (above === 'unreadable')
    return { why: 'upstream is a mirror of a part of the records, and its X-Mirror-Scope cannot be read', scope: null }
  if (above !== null && !isWithin(own, above)) {
    const why = `upstream is a mirror of a part of the records: ${describeOsvScope(above)}`
    return { why, scope: JSON.stringify(above) }
  }
  if (lackOf(meta) === null) return null
  return { why: 'upstream is a mirror, and lacks records that are listed to it', scope: null }
}

/** Returns the facts of a run that say what upstream lacks; none where it lacks nothing. */
export function lackFacts(lacks: UpstreamLack | null): RunFacts {
  if (lacks === null) return {}
  return { upstreamLacks: lacks.why, ...(lacks.scope !== null && { upstreamScope: lacks.scope }) }
}

/** Returns what the facts of an earlier run say of that. */
export function lackIn({ upstreamLacks: why, upstreamScope: scope }: RunFacts): UpstreamLack | null {
  return typeof why === 'string' ? { why, scope: typeof scope === 'string' ? scope : null } : null
}

/** Whether everything that a scope takes is taken by another one. */
function isWithin(own: ScopeSettings, above: ScopeSettings): boolean {
  if (own.vendors.some((vendor) => !above.vendors.includes(vendor))) return false
  if (describeOsvScope(above) === describeOsvScope(sorted(own))) return true
  return own.include.length > 0 && own.include.every((entry) => isEcosystem(entry) && takesAllOf(above, entry))
}

/** Whether an entry is no beginning of ids: those of an id may be of any ecosystem, also of one that is left out above. */
function isEcosystem(entry: string): boolean {
  const parsed = parseScopeEntry(entry)
  return parsed !== null && 'ecosystem' in parsed
}

/** Returns a scope with its entries in the order of X-Mirror-Scope. */
function sorted({ include, exclude, vendors }: ScopeSettings): ScopeSettings {
  return { include: include.toSorted(), exclude: exclude.toSorted(), vendors }
}

const LIST = '(?:include|exclude|vendors)="[^"]*"'
const VALUE = new RegExp(`^${LIST}(?:, ${LIST})*$`)

/** Parses X-Mirror-Scope, as `include="npm,Ubuntu", exclude="GHSA-", vendors="Root"`. */
function scopeIn(value: unknown): ScopeSettings | 'unreadable' {
  if (typeof value !== 'string' || !VALUE.test(value)) return 'unreadable'
  try {
    return {
      include: entriesOf(value, 'include'),
      exclude: entriesOf(value, 'exclude'),
      vendors: entriesOf(value, 'vendors'),
    }
  } catch {
    return 'unreadable'
  }
}

/** Returns the entries of a list in the header; none where it is not there. Throws where it is not encoded as it should be. */
function entriesOf(value: string, list: string): string[] {
  const text = new RegExp(`${list}="([^"]*)"`).exec(value)?.[1] ?? ''
  return decodeURI(text)
    .split(',')
    .filter((entry) => entry !== '')
}
