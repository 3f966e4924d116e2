/**
 * Characters that end a string for many programs, or a line: in a list with one id per line they would give other ids.
 */
const BREAKS = ['\0', '\n', '\v', '\f', '\r']

/**
 * Longest percent-encoded id, characters: servers and proxies accept request lines of at least 8,000 bytes (RFC 9112,
 * section 3).
 */
const MAX_ENCODED = 7_900

/**
 * Returns why a record of this id cannot be mirrored, or null if it can. The single rule for all sources of ids: index,
 * archive, single records, bundle rows, requests. A record is served at `/external/osv/{id}.json` and is the member
 * `{id}.json` of `all.zip`, so its id must be a text that fits in a URL and a relative path that is safe to extract.
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

/** Formats an id for a log line or a message: on one line, truncated to 80 characters. */
export function shownId(id: string): string {
  return JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id)
}
