/** Ends a text for many programs, or a line: a list of ids with one a line would name other records. */
const BREAKS = ['\0', '\n', '\v', '\f', '\r']

/** Longest percent-encoded id, characters: servers and proxies read request lines of 8,000 bytes (RFC 9112, section 3). */
const MAX_ENCODED = 7_900

/**
 * Why a record of this id cannot be mirrored, or null when it can. The one rule for every place that meets ids: index,
 * archive, single records, rows of bundles, requests. A record is served at `/external/osv/{id}.json` and is the member
 * `{id}.json` of `all.zip`, so its id must be text that a URL can hold and a relative path that is safe to unpack.
 */
export function faultOfRecordId(id: string): string | null {
  if (id === '') return 'its id is empty'
  if (!id.isWellFormed()) return 'its id is not Unicode text (it has half a surrogate pair)'
  if (BREAKS.some((one) => id.includes(one))) return 'its id has a line break or a NUL character'
  if (id === 'all') return 'its path would be that of the index, all.json'
  if (id.length > MAX_ENCODED || encodeURIComponent(id).length > MAX_ENCODED)
    return `its id is longer than ${MAX_ENCODED} characters in a URL`
  const leaves = id.startsWith('/') || id.includes('\\') || /^[A-Za-z]:\//.test(id)
  const isUnsafe = leaves || `${id}.json`.split('/').includes('..')
  return isUnsafe ? 'its id is not a safe relative path' : null
}

/** An id as a log or a message shows it: on one line, cut to a length that can be read. */
export function shownId(id: string): string {
  return JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id)
}
