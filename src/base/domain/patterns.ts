/** What a pattern of `catalog.patterns` can name. */
type PatternKind = 'image' | 'package' | 'ecosystem'

/** One pattern: its kind and its name in lower case; `*` matches any characters, `/` included. */
export interface Pattern {
  readonly kind: PatternKind
  readonly name: string
}

const FORM = /^(image|package|ecosystem):(\S{1,300})$/

/** Parses `image:library/*`, `package:curl` or `ecosystem:debian`; null for any other text. */
export function parsePattern(text: string): Pattern | null {
  const [, kind, name] = FORM.exec(text.trim()) ?? []
  if (kind === undefined || name === undefined) return null
  return { kind: kind as PatternKind, name: name.toLowerCase() }
}

/** The names of an item by kind of pattern: its repository, its package names, its ecosystem. */
type Names = Partial<Record<PatternKind, string | readonly string[]>>

/** Reports whether any of the patterns matches the item, ignoring case. */
export function matchesAny(patterns: readonly Pattern[], names: Names): boolean {
  return patterns.some(({ kind, name }) =>
    [names[kind] ?? []].flat().some((own) => matchesPattern(name, own.toLowerCase())),
  )
}

/**
 * Reports whether a text matches a pattern in which `*` matches any characters. Linear in the length of both for every
 * pattern: no regular expression is built from input.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  if (pieces.length === 1) return text === first
  const last = pieces[pieces.length - 1] ?? ''
  if (text.length < first.length + last.length) return false
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return at <= text.length - last.length
}
