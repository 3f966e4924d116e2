const NAMESPACE_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'composer', 'deb', 'github', 'golang', 'npm', 'rpm', 'qpkg'],
])
const NAME_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'bitnami', 'composer', 'deb', 'github', 'golang', 'npm'],
])

/**
 * A package URL without version, qualifiers and subpath, spelt as packageurl-go does, which is how Trivy looks a package
 * up in a VEX repository. Null for what is no package URL.
 */
export function packageId(purl: string): string | null {
  const match = /^pkg:\/*([a-z][\w.+-]*)\/([^?#]*)/i.exec(purl.trim())
  const type = match?.[1]?.toLowerCase()
  if (type === undefined) return null
  const path = match?.[2] ?? ''
  const at = path.lastIndexOf('@')
  const unversioned = at > path.lastIndexOf('/') ? path.slice(0, at) : path
  const segments = unversioned.split('/').filter((segment) => segment !== '')
  const name = segments.pop()
  if (name === undefined) return null
  try {
    const parents = segments.map(decodeURIComponent)
    const namespace = NAMESPACE_LOWER.has(type) ? parents.map((one) => one.toLowerCase()) : parents
    const spelt = [...namespace, spellName(type, decodeURIComponent(name))].map(escape)
    return `pkg:${type}/${spelt.join('/')}`
  } catch {
    return null // not percent-encoded UTF-8
  }
}

function spellName(type: string, name: string): string {
  if (type === 'pypi') return name.toLowerCase().replaceAll('_', '-')
  return NAME_LOWER.has(type) ? name.toLowerCase() : name
}

/** All but letters, digits and `-_.~` is encoded. */
function escape(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
