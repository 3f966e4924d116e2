/** Records that name no ecosystem lie in this folder of osv.dev's bucket. */
export const NO_ECOSYSTEM = '[EMPTY]'

/** Records with a range of commits lie in this folder as well, whatever package they name. */
export const COMMITS = 'GIT'

/** The folder of an ecosystem in osv.dev's bucket: what stands before the first colon (`Debian` of `Debian:12`). */
export function folderOf(ecosystem: string): string {
  const colon = ecosystem.indexOf(':')
  return colon < 0 ? ecosystem : ecosystem.slice(0, colon)
}

/**
 * The name by which a package of an ecosystem is looked up. PyPI's names are one whatever their case and separators are
 * (PEP 503), a vendor's (`Root:PyPI`) too; all others are taken as they are written.
 */
export function packageKey(ecosystem: string, name: string): string {
  const python = ecosystem === 'PyPI' || ecosystem.endsWith(':PyPI')
  return python ? name.toLowerCase().replace(/[-_.]+/g, '-') : name
}
