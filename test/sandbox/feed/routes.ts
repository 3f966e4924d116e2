import type { FeedSource } from './types.ts'
import type { FeedFilters, World } from './globals.ts'
import type { Representation } from './representation.ts'

/** The resource at an address. Faults of one kind of resource leave the others alone. */
export interface Resource {
  kind: 'index' | 'archive' | 'record' | 'feed'
  /** The record's id; undefined for other kinds. */
  id?: string
  representation: Representation
}

/** An answer that is an error before it is anything else. */
interface Refused {
  status: 400 | 404
  message: string
}

const OSV = '/external/osv/'

/** Finds the resource of a path and query (service API, section 4, public feeds). */
export function route(
  source: FeedSource,
  path: string,
  query: URLSearchParams,
  withCveFeed: boolean,
): Resource | Refused {
  if (path === OSV + 'all.json') {
    return { kind: 'index', representation: source.publisher.index.current() }
  }
  if (path === OSV + 'all.zip') {
    return { kind: 'archive', representation: source.publisher.archive.current() }
  }
  if (path.startsWith(OSV) && path.endsWith('.json')) return routeRecord(source, path)
  if (path === '/external/patch_feed') return routeFeed(source.world, 'patchFeed', query)
  if (path === '/external/cve_feed' && withCveFeed) {
    return routeFeed(source.world, 'cveFeed', query)
  }
  if (path === '/external/globals/sys_matrix') {
    return { kind: 'feed', representation: source.world.sysMatrix() }
  }
  return notFound('no such path')
}

function routeRecord(source: FeedSource, path: string): Resource | Refused {
  const raw = path.slice(OSV.length, -'.json'.length)
  if (raw.includes('/')) return notFound('no such path')
  const id = decode(raw)
  const representation = id === undefined ? undefined : source.record(id)
  if (id === undefined || representation === undefined) return notFound('no such record')
  return { kind: 'record', id, representation }
}

function routeFeed(world: World, which: 'patchFeed' | 'cveFeed', query: URLSearchParams): Resource | Refused {
  const filters: FeedFilters = {
    ecosystem: query.get('ecosystem'),
    os_distro_major: query.get('os_distro_major'),
    package_src_name: query.get('package_src_name'),
  }
  const representation = world[which](filters)
  if (representation !== undefined) return { kind: 'feed', representation }
  return { status: 400, message: `unknown ecosystem: ${filters.ecosystem ?? ''}` }
}

/** Percent-decoded; undefined when it is no valid encoding of UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function notFound(message: string): Refused {
  return { status: 404, message }
}
