/**
 * Ecosystems that scanners know by themselves (OSV schema, `affected[].package.ecosystem`). A vendor's own, such as
 * `Root`, is none of them.
 */
const BASES: ReadonlySet<string> = new Set([
  ...['AlmaLinux', 'Alpaquita', 'Alpine', 'Android', 'Azure Linux', 'BellSoft Hardened Containers'],
  ...['Bioconductor', 'Bitnami', 'Chainguard', 'CleanStart', 'ConanCenter', 'CRAN', 'crates.io'],
  ...['Debian', 'Echo', 'GHC', 'GitHub Actions', 'Go', 'Hackage', 'Hex', 'Homebrew', 'Julia'],
  ...['Kubernetes', 'Linux', 'Mageia', 'Maven', 'MinimOS', 'npm', 'NuGet', 'opam', 'openEuler'],
  ...['openSUSE', 'OSS-Fuzz', 'Packagist', 'Photon OS', 'Pub', 'PyPI', 'Red Hat', 'Rocky Linux'],
  ...['RubyGems', 'SUSE', 'SwiftURL', 'Ubuntu', 'VSCode', 'Wolfi'],
])

/** Vendors whose ecosystems the OSV schema has. */
const VENDORS: ReadonlySet<string> = new Set(['Root', 'TuxCare'])

/** Whether a folder's name is an ecosystem's, or a vendor's, of the OSV schema. */
export function isKnownEcosystem(name: string): boolean {
  return BASES.has(name) || VENDORS.has(name)
}

/** An ecosystem without its vendor's prefix. */
export interface Stripped {
  readonly prefix: string
  readonly ecosystem: string
}

/**
 * Takes the vendor's prefix off: `Root:Debian:12` is `Debian:12` and `Root:npm` is `npm`. Null when there is none: what
 * stands before the first colon is a prefix only when a known ecosystem follows and it is none itself.
 */
export function stripPrefix(ecosystem: string): Stripped | null {
  const colon = ecosystem.indexOf(':')
  const prefix = ecosystem.slice(0, Math.max(0, colon))
  if (prefix === '' || BASES.has(prefix)) return null
  const [base = '', ...release] = ecosystem.slice(colon + 1).split(':')
  if (!BASES.has(base)) return null
  const suffix = release.join(':')
  return { prefix, ecosystem: suffix === '' ? base : `${base}:${spellRelease(base, suffix)}` }
}

/**
 * A release as osv-scanner derives it from a scanned system, for it compares the text: Alpine's with a `v` and two
 * numbers (`v3.18`), Ubuntu's without the `:LTS` that OSV's own records put behind it, all others as they are.
 */
function spellRelease(base: string, suffix: string): string {
  if (base === 'Alpine') return suffix.replace(/^(\d+\.\d+)(\.\d+)*$/, 'v$1')
  return base === 'Ubuntu' ? suffix.replace(/:LTS$/, '') : suffix
}
