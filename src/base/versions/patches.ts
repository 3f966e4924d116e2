/** The end of the versions of a vendor's builds, such as `.root.io.2`. */
const MARK = /[-+.~]root\.?io(?:\.\d+)?$/i
/** In Alpine a revision has the number of the patch behind `007`: `-r10071`. */
export const REVISION = /(?<=-r\d+)007\d$/

/** Returns the version that a vendor's build patches: `8.1-r1` of `8.1-r10071`; null of one that is no such build. */
export function patchedVersion(version: string): string | null {
  const written = version.trim()
  const plain = written.replace(MARK, '').replace(REVISION, '')
  return plain === written ? null : plain
}
