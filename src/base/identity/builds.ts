/** The end of the versions of a vendor's builds, such as `.root.io.2`; in Alpine it is a revision, such as `-r10071`. */
const MARK = /[-+.~]root\.?io(?:\.\d+)?$/i
const REVISION = /-r\d+007\d$/

/**
 * Returns the name that a vendor's records have for its own build of a package, which an SBOM may list by the plain name: `rootio-curl`,
 * `@rootio/babel__core`, `io.root.org.ow2.asm:asm`. None of a version that is no such build. `base`: the ecosystem without a release.
 */
export function buildNames(base: string | null, name: string, version: string): string[] {
  const isBuild = MARK.test(version) || (base === 'Alpine' && REVISION.test(version))
  if (!isBuild || /^(?:rootio[-_.]|@rootio\/|io\.root\.)/i.test(name)) return []
  if (base === 'npm') return [`@rootio/${name.replace(/^@/, '').replace('/', '__')}`]
  return [base === 'Maven' ? `io.root.${name}` : `rootio-${name}`]
}
