/** What a pattern of `catalog.include` and `catalog.exclude` can name. */
type PatternKind = 'image' | 'package' | 'ecosystem'

/** One pattern: what it names, and the name, in lower case; `*` stands for any characters, `/` included. */
export interface Pattern {
  readonly kind: PatternKind
  readonly name: string
}

const FORM = /^(image|package|ecosystem):(\S{1,300})$/

/** Reads `image:library/*`, `package:curl` or `ecosystem:debian`; null when it is none of these. */
export function parsePattern(text: string): Pattern | null {
  const [, kind, name] = FORM.exec(text.trim()) ?? []
  if (kind === undefined || name === undefined) return null
  return { kind: kind as PatternKind, name: name.toLowerCase() }
}

/** What an item is called, in the terms of patterns: a repository, a package's names, its ecosystem. */
type Names = Partial<Record<PatternKind, string | readonly string[]>>

/** Whether any of the patterns names the item. Upper and lower case are the same. */
export function matchesAny(patterns: readonly Pattern[], names: Names): boolean {
  return patterns.some(({ kind, name }) =>
    [names[kind] ?? []].flat().some((own) => matchesPattern(name, own.toLowerCase())),
  )
}

/**
 * Whether a text fits a pattern in which `*` stands for any characters. Linear in the length of both, whatever the pattern:
 * no expression is built from what somebody wrote.
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
