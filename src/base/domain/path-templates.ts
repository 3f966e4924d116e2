/**
 * Paths in the form in which the store knows them: without a trailing slash, each segment percent-encoded in one way.
 * The path requested from upstream and the path requested by a client match, whichever form either used.
 */

/** Fills a template. A repository keeps its slashes; any other value is one segment. */
export function fillPath(template: string, values: Readonly<Record<string, string>>): string {
  const [first = '', ...rest] = template.split('{') // a call of a function for each match takes twice the time
  let path = first
  for (const part of rest) {
    const end = part.indexOf('}')
    const name = part.slice(0, end)
    const value = end < 0 ? undefined : values[name]
    if (value === undefined) path += `{${part}`
    else path += encodeValue(name, value) + part.slice(end + 1)
  }
  return path
}

function encodeValue(name: string, value: string): string {
  const text = value.toWellFormed() // half a surrogate pair cannot be encoded
  if (name !== 'repo') return encodeURIComponent(text)
  return text.split('/').map(encodeURIComponent).join('/')
}

/**
 * Reports whether a path keeps its meaning when normalized: no "." or ".." segments, in any encoding, and no control
 * characters.
 */
export function isAddressable(path: string): boolean {
  if (/%([01][\da-f]|7f)/i.test(path)) return false
  return path.split('/').every((part) => !/^(\.|%2e){1,2}$/i.test(part))
}

/** Paths that are canonical as they are, as most are: nothing encoded, nothing to encode, no slash at the end. */
const PLAIN = /^[\w\-.!~*'()/]*[\w\-.!~*'()]$/

/** Returns the canonical form of a path; null if it is not percent-encoded UTF-8. */
export function canonicalPath(path: string): string | null {
  if (PLAIN.test(path)) return path
  try {
    const segments = path.split('/').map((part) => encodeURIComponent(decodeURIComponent(part)))
    return segments.join('/').replace(/\/+$/, '')
  } catch {
    return null
  }
}

/** Returns an expression that matches the canonical paths of a template, with one group per value, in order. */
export function pathForm(template: string): RegExp {
  const source = template.replace(/\/+$/, '').replace(/\{(\w+)\}|[.*+?^$()|[\]\\]/g, (part, name?: string) => {
    if (name === undefined) return `\\${part}`
    return name === 'repo' ? '(.+)' : '([^/]+)'
  })
  return new RegExp(`^${source}$`)
}

/** Forms of templates; the contract has some dozen. */
const FORMS = new Map<string, RegExp>()
const MAX_FORMS = 200

function knownForm(template: string): RegExp {
  const known = FORMS.get(template)
  if (known !== undefined) return known
  const form = pathForm(template)
  if (FORMS.size < MAX_FORMS) FORMS.set(template, form)
  return form
}

/** Returns the values with which a template gives this canonical path; null if the path does not match. */
export function matchPath(template: string, canonical: string): Record<string, string> | null {
  const match = knownForm(template).exec(canonical)
  if (match === null) return null
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')]))
}
