/**
 * Paths as the store knows them: without a trailing slash, each segment percent-encoded in one way, so that the path
 * upstream was asked for and the path a client asks for meet whatever form either chose.
 */

/** Fills a template. A repository keeps its slashes, any other value is one segment. */
export function fillPath(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name]
    if (value === undefined) return whole
    const text = value.toWellFormed() // half a surrogate pair cannot be encoded
    return name === 'repo'
      ? text.split('/').map(encodeURIComponent).join('/')
      : encodeURIComponent(text)
  })
}

/** Whether a path leads where it says: "." and ".." as segments, however encoded, lead elsewhere, control characters nowhere. */
export function isAddressable(path: string): boolean {
  if (/%([01][\da-f]|7f)/i.test(path)) return false
  return path.split('/').every((part) => !/^(\.|%2e){1,2}$/i.test(part))
}

/** The one form of a path; null when it is not percent-encoded UTF-8. */
export function canonicalPath(path: string): string | null {
  try {
    const segments = path.split('/').map((part) => encodeURIComponent(decodeURIComponent(part)))
    return segments.join('/').replace(/\/+$/, '')
  } catch {
    return null
  }
}

/** What canonical paths of a template look like: a group for each of its values, in order. */
export function pathForm(template: string): RegExp {
  const source = template
    .replace(/\/+$/, '')
    .replace(/\{(\w+)\}|[.*+?^$()|[\]\\]/g, (part, name?: string) =>
      name === undefined ? `\\${part}` : name === 'repo' ? '(.+)' : '([^/]+)',
    )
  return new RegExp(`^${source}$`)
}

/** The values that make a template the given canonical path; null when it is another path. */
export function matchPath(template: string, canonical: string): Record<string, string> | null {
  const match = pathForm(template).exec(canonical)
  if (match === null) return null
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return Object.fromEntries(
    names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')]),
  )
}
