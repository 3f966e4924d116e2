/** Ecosystems that compare the names of packages without case, by their own rules. */
const WITHOUT_CASE = new Set([
  'GitHub Actions', // names of GitHub's repositories
  'Go', // its proxy keeps case, but the specification of package URLs, and so most SBOMs, write lower case
  'Hex', // lower case alone is allowed
  'NuGet',
  'Packagist',
  'SwiftURL', // addresses of repositories
  'VSCode',
])

/**
 * A package's name as its ecosystem compares it: PyPI's without case, and with `-` for any run of `-`, `_` and `.` (PEP 503);
 * some others without case, and the address of a Swift package without a scheme and `.git`. `base`: without a vendor and a release; null: unknown, so nothing is changed.
 */
export function normalName(base: string | null, name: string): string {
  if (base === null) return name
  if (base === 'PyPI') return name.replace(/[-_.]+/g, '-').toLowerCase()
  if (base === 'SwiftURL')
    return name
      .toLowerCase()
      .replace(/^https?:\/\//, '')
      .replace(/\.git$/, '')
  return WITHOUT_CASE.has(base) ? name.toLowerCase() : name
}

/**
 * The name by which a package is kept in an index: as `normalName` has it. `ecosystem` may have a vendor and a release:
 * `Root:PyPI`.
 */
export function packageKey(ecosystem: string, name: string): string {
  const [first = '', second = ''] = ecosystem.split(':', 2)
  return normalName(second, normalName(first, name))
}

/**
 * The names by which a package may be kept in the index of a whole folder, the likeliest first: in a vendor's, such as
 * `Root`, each package has the name that the ecosystem behind it gives. Some of them may be of another package.
 */
export function packageKeys(folder: string, name: string): string[] {
  return [...new Set([packageKey(folder, name), name.toLowerCase(), normalName('PyPI', name)])]
}
