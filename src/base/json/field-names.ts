import { remember } from '../text.ts'

/**
 * Field names as services write them (wire facts, "where the contract is silent"): `cve_id`, `cveId`, `CVE_ID` and
 * `ticket_cve_id` may all be what the contract calls `cve_id`.
 */

/** Names whose forms are remembered: every item of a list has the same ones, and the lists of a service some hundred short ones. */
const REMEMBERED = { results: 2_000, characters: 100 }

/** Remembers the results of a function of field names. */
export function ofName<T>(work: (name: string) => T): (name: string) => T {
  return remember(work, REMEMBERED)
}

/** Returns a name without case, underscores and other separators: `cve_id`, `cveId` and `CVE-ID` are equal. */
export const plainName = ofName((name) => name.replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase())

/** Returns the letters and digits of ASCII in a name, in lower case: `deliveryStatus` as `deliverystatus`. */
export function bareName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** Splits a name into lower-case words: `ticketCVEId` and `ticket_cve_id` are ticket, cve, id. */
export const wordsOf: (name: string) => readonly string[] = ofName((name) =>
  name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase()),
)

/**
 * Returns the text of the first of these fields that has one, in any spelling (`tagId` for `tag_id`); numbers as
 * text. Null when the item has none of them.
 */
export function readText(item: Readonly<Record<string, unknown>>, fields: readonly string[]): string | null {
  const [first = ''] = fields
  const direct = textOf(item[first])
  if (direct !== null) return direct // most items: no other spelling to look for
  const names = Object.keys(item)
  for (const field of fields) {
    const name = names.find((one) => isSpelled(one, field))
    const text = name === undefined ? null : textOf(item[name])
    if (text !== null) return text
  }
  return null
}

/** Returns whether two names are spellings of one name; the comparison of the last letter avoids most of the work. */
function isSpelled(one: string, other: string): boolean {
  if (one === other) return true
  return one.at(-1)?.toLowerCase() === other.at(-1)?.toLowerCase() && plainName(one) === plainName(other)
}

function textOf(value: unknown): string | null {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : null
}

function endsWith(words: readonly string[], end: readonly string[]): boolean {
  const from = words.length - end.length
  return from > 0 && end.length > 0 && end.every((word, at) => words[from + at] === word)
}

/**
 * Returns the item names that mean `field`: the same name in any spelling; otherwise the only name that is this one
 * with a prefix (`ticket_cve_id`); otherwise, if `shortened`, the only name that is its end (`status` for
 * `ticket_status`). Empty when there is none, or when it is ambiguous.
 */
export function resolveField(field: string, names: Iterable<string>, shortened = false): readonly string[] {
  const all = [...names]
  const plain = plainName(field)
  const own = all.filter((name) => plainName(name) === plain)
  if (own.length > 0) return own.sort((one, other) => Number(other === field) - Number(one === field))
  const words = wordsOf(field)
  const prefixed = all.filter((name) => endsWith(wordsOf(name), words))
  if (prefixed.length > 0) return onlyOne(prefixed)
  return shortened ? onlyOne(all.filter((name) => endsWith(words, wordsOf(name)))) : []
}

/** Returns the names if they are spellings of one name; otherwise none. */
function onlyOne(names: readonly string[]): readonly string[] {
  return new Set(names.map(plainName)).size === 1 ? names : []
}
