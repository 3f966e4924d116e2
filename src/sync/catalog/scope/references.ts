import { wordsOf } from '../../../base/json/field-names.ts'

/** Kind of thing that a value refers to, by the name of its field. */
type RefKind = 'image' | 'tag' | 'package' | 'avr'

/** A value in an item and the kind of thing that it refers to. */
interface Ref {
  kind: RefKind
  /** Name of the field that contains the value. */
  field: string
  value: string
}

const MAX_DEPTH = 6

/**
 * Returns the references of an item: every short value below a field whose name states a kind; the innermost such
 * name counts (`tag.image.id` refers to an image, `package_id` to a package). This separates kinds whose ids collide.
 */
export function refsOf(item: unknown): Ref[] {
  const found: Ref[] = []
  collect(item, null, '', 0, found)
  return found
}

function collect(value: unknown, kind: RefKind | null, field: string, depth: number, found: Ref[]): void {
  if (depth > MAX_DEPTH) return
  if (Array.isArray(value)) {
    for (const inner of value) collect(inner, kind, field, depth + 1, found)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) collect(inner, kindOf(name) ?? kind, name, depth + 1, found)
  } else if (kind !== null && (typeof value === 'string' || typeof value === 'number')) {
    const text = String(value)
    if (text.length > 0 && text.length <= 500) found.push({ kind, field, value: text })
  }
}

/** Number of field names whose kind is stored: more than upstream has. */
const MAX_NAMES = 1000
const KINDS = new Map<string, RefKind | null>()

/** Returns the kind that a field name states; null when it states none. */
export function kindOf(name: string): RefKind | null {
  const known = KINDS.get(name)
  if (known !== undefined) return known
  const kind = readKind(name)
  if (KINDS.size < MAX_NAMES && name.length < 100) KINDS.set(name, kind)
  return kind
}

function readKind(name: string): RefKind | null {
  const words = wordsOf(name).flatMap((word) => word.split(/\d+/))
  if (words.includes('avr') || words.includes('avrs')) return 'avr'
  if (words.includes('tag') || words.includes('tags')) return 'tag'
  if (words.some((word) => /^(images?|repos?|repository|repositories)$/.test(word))) return 'image'
  if (words.some((word) => /^(packages?|pkgs?)$/.test(word))) return 'package'
  return null
}

/** Maximum artifact sets read from one item, far more than real items name. */
const MAX_MENTIONS = 1000

/** Returns the ids of artifact sets that an item names, at most `MAX_MENTIONS`. */
export function mentionsOf(item: unknown): string[] {
  const named = refsOf(item).filter(
    ({ kind, field }) => kind === 'avr' && /^(ids?|avrs?)$/.test(wordsOf(field).at(-1) ?? ''),
  )
  return [...new Set(named.map(({ value }) => value))].slice(0, MAX_MENTIONS)
}
