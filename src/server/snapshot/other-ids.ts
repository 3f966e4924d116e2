import { WHITE_SPACE } from '../../store/database/schema/untidy-ids.ts'

/** Ids that some clients do not ask for as they are, by the forms in which they do. */
export interface OtherIds {
  /** Returns the stored ids that these texts may be another form of, each once; none when there are too many. */
  find(asked: readonly string[]): readonly string[]
}

/** Most ids with such forms that are looked through; a feed has a handful. */
const MOST = 5_000

/**
 * A client that puts an id into a path as it is, or without the white space around it, asks for another text than the id:
 * `a%20b` arrives as `a b`, `x ` as `x`. The forms of all ids that have any are collected at the first question. `list`
 * gives the ids with white space at an end, a space or a percent sign, at most `limit`.
 */
export function createOtherIds(list: (limit: number) => readonly string[]): OtherIds {
  let forms: Map<string, Set<string>> | null = null
  return {
    find(asked) {
      forms ??= collect(list(MOST + 1))
      return [...new Set(asked.flatMap((text) => [...(forms?.get(text) ?? [])]))]
    },
  }
}

function collect(ids: readonly string[]): Map<string, Set<string>> {
  const forms = new Map<string, Set<string>>()
  if (ids.length > MOST) return forms
  for (const id of ids) {
    for (const form of formsOf(id)) {
      const known = forms.get(form) ?? new Set()
      forms.set(form, known.add(id))
    }
  }
  return forms
}

/** Trimmed, decoded once more than it should be, and with `+` for a space as forms are encoded. */
function formsOf(id: string): string[] {
  const texts = [id, decodeWhatCanBe(id)].flatMap((text) => [text, trim(text)])
  return [...new Set(texts.flatMap((text) => [text, text.replaceAll(' ', '+')]))]
}

function trim(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && WHITE_SPACE.includes(text.charAt(from))) from++
  while (to > from && WHITE_SPACE.includes(text.charAt(to - 1))) to--
  return text.slice(from, to)
}

/** Decodes each run of escapes that is UTF-8, and leaves all else. */
function decodeWhatCanBe(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return escapes
    }
  })
}
