/** The end of the versions of a vendor's builds, such as `.root.io.2`. */
const MARK = /[-+.~]root\.?io(?:\.\d+)?$/i
/** In Alpine a revision has the number of the patch behind `007`: `-r10071`. */
const REVISION = /(?<=-r\d+)007\d$/

/** Returns the version that a vendor's build patches: `8.1-r1` of `8.1-r10071` in Alpine; null of one that is no such build. */
export function patchedVersion(version: string, hasRevisions = false): string | null {
  const written = version.trim()
  const unmarked = written.replace(MARK, '')
  const plain = hasRevisions ? unmarked.replace(REVISION, '') : unmarked
  return plain === written ? null : plain
}
