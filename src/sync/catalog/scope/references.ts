import { wordsOf } from '../../../json/field-names.ts'

/** What a value can point at, by the name of the field that holds it. */
type RefKind = 'image' | 'tag' | 'package' | 'avr'

/** A value found in an item, and what it points at. */
interface Ref {
  kind: RefKind
  /** Name of the field itself. */
  field: string
  value: string
}

const MAX_DEPTH = 6

/**
 * The references of an item: every short value below a field whose name says what it points at, the innermost such name
 * counting (`tag.image.id` points at an image, `package_id` at a package). That keeps apart kinds whose ids collide.
 */
export function refsOf(item: unknown): Ref[] {
  const found: Ref[] = []
  collect(item, null, '', 0, found)
  return found
}

function collect(
  value: unknown,
  kind: RefKind | null,
  field: string,
  depth: number,
  found: Ref[],
): void {
  if (depth > MAX_DEPTH) return
  if (Array.isArray(value)) {
    for (const inner of value) collect(inner, kind, field, depth + 1, found)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value))
      collect(inner, kindOf(name) ?? kind, name, depth + 1, found)
  } else if (kind !== null && (typeof value === 'string' || typeof value === 'number')) {
    const text = String(value)
    if (text.length > 0 && text.length <= 500) found.push({ kind, field, value: text })
  }
}

/** What a name says that a value is; null when it says nothing. */
export function kindOf(name: string): RefKind | null {
  const words = wordsOf(name).flatMap((word) => word.split(/\d+/))
  if (words.includes('avr') || words.includes('avrs')) return 'avr'
  if (words.includes('tag') || words.includes('tags')) return 'tag'
  if (words.some((word) => /^(images?|repos?|repository|repositories)$/.test(word))) return 'image'
  if (words.some((word) => /^(packages?|pkgs?)$/.test(word))) return 'package'
  return null
}

/** More artifact sets than any item names in earnest. */
const MAX_MENTIONS = 1000

/** The ids of artifact sets that an item names, the first thousand of them. */
export function mentionsOf(item: unknown): string[] {
  const named = refsOf(item).filter(
    ({ kind, field }) => kind === 'avr' && /^(ids?|avrs?)$/.test(wordsOf(field).at(-1) ?? ''),
  )
  return [...new Set(named.map(({ value }) => value))].slice(0, MAX_MENTIONS)
}
