import type { Fault, ResourceKind } from './fault.ts'
import type { HostileKind } from './hostile-zip.ts'
import { decode } from '../feed/routes.ts'

/** When a fault strikes: the first `after` matching requests are spared, the next `times` are hit. */
export interface FaultTiming {
  /** Default: until cleared. */
  times?: number
  /** Default 0. */
  after?: number
  /** Only requests of this method; default any. */
  method?: 'GET' | 'HEAD' | 'POST' | 'DELETE'
}

/** One fault that was set: to take it back and to see whether it struck. */
interface FaultHandle {
  /** Removes the fault; an answer that it stalls continues. */
  clear(): void
  /** Requests it has hit. */
  hits(): number
}

/** Faults per path. A request meets at most one: the oldest that matches, is due and is not used up. */
export interface Faults {
  set(path: PathPattern, fault: Fault, timing?: FaultTiming): FaultHandle
  /** Shorthand for a hostile all.zip. */
  archive(kind: HostileKind, timing?: FaultTiming): FaultHandle
  /** Takes all of them back. */
  clear(): void
}

/** What decides whether a fault applies. */
interface Met {
  method: string
  path: string
  /** Undefined when the path leads nowhere. */
  resource: ResourceKind | undefined
  hasRange: boolean
  /** Whether the request carries a cursor. */
  hasCursor?: boolean
}

interface Armed {
  path: PathPattern
  fault: Fault
  method: string | undefined
  spare: number
  left: number
  hits: number
  cleared: AbortController
}

/** No faults yet; `take` gives the one that a request meets, and counts it. */
export function createFaults(): Faults & { take(met: Met): Fault | undefined } {
  let armed: Armed[] = []
  const set: Faults['set'] = (path, fault, { times = Infinity, after = 0, method } = {}) => {
    const cleared = new AbortController()
    const until = cleared.signal
    const struck = fault.kind === 'stall' ? { ...fault, until } : fault
    const entry = { path, fault: struck, method, spare: after, left: times, hits: 0, cleared }
    armed.push(entry)
    return {
      clear() {
        armed = armed.filter((other) => other !== entry)
        cleared.abort()
      },
      hits: () => entry.hits,
    }
  }
  return {
    set,
    archive: (archive, timing) => set('/external/osv/all.zip', { kind: 'archive', archive }, timing),
    clear() {
      for (const { cleared } of armed) cleared.abort()
      armed = []
    },
    take(met) {
      for (const entry of armed) {
        if (entry.left <= 0 || !applies(entry, met)) continue
        if (entry.spare > 0) {
          entry.spare--
          continue
        }
        entry.left--
        entry.hits++
        return entry.fault
      }
      return undefined
    },
  }
}

function applies({ path, fault, method }: Armed, met: Met): boolean {
  if (method !== undefined && method !== met.method) return false
  const only = RESOURCES[fault.kind]
  if (only !== undefined && only !== met.resource) return false
  if ((fault.kind === 'wrongRange' || fault.kind === 'ignoreRange') && !met.hasRange) return false
  if (fault.kind === 'lostPage' && met.hasCursor !== true) return false
  return matches(path, met.path)
}

/** Kinds of fault that make sense for one kind of resource only. */
const RESOURCES: Partial<Record<Fault['kind'], ResourceKind>> = {
  wrongCrc: 'archive',
  truncatedZip: 'archive',
  archive: 'archive',
  shrinkIndex: 'index',
  ghostIds: 'index',
  duplicateIds: 'index',
  notArray: 'index',
  newerRecords: 'record',
  staleRecords: 'record',
  repeatPage: 'list',
  endlessCursor: 'list',
  lostPage: 'list',
  artifactUrl: 'artifact',
}

/** A whole path, in which `*` matches any characters, or an expression to find in the path. */
export type PathPattern = string | RegExp

/** Compares with the path as sent and with its percent-decoded form. */
export function matches(pattern: PathPattern, path: string): boolean {
  const expression = typeof pattern === 'string' ? glob(pattern) : pattern
  const decoded = decode(path)
  return found(expression, path) || (decoded !== undefined && found(expression, decoded))
}

function found(expression: RegExp, text: string): boolean {
  expression.lastIndex = 0 // a global expression would continue from its last match
  return expression.test(text)
}

function glob(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}
