/**
 * Field names as services write them (wire facts, "where the contract is silent"): `cve_id`, `cveId`, `CVE_ID` and
 * `ticket_cve_id` may all be what the contract calls `cve_id`.
 */

/** A name without case, underscores and other separators: `cve_id`, `cveId` and `CVE-ID` are one name. */
export function plainName(name: string): string {
  return name.replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase()
}

/** Words of a name, lower case: `ticketCVEId` and `ticket_cve_id` are ticket, cve, id. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase())
}

/**
 * The text of the first of these fields that has one, in whatever spelling (`tagId` for `tag_id`); numbers as texts.
 * Null when the item has none of them.
 */
export function readText(
  item: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): string | null {
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

/** Whether two names are spellings of one; that most differ in their last letter saves most of the work. */
function isSpelled(one: string, other: string): boolean {
  if (one === other) return true
  return (
    one.at(-1)?.toLowerCase() === other.at(-1)?.toLowerCase() && plainName(one) === plainName(other)
  )
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
 * Returns the names, of those that items have, by which they say `field`: its own name in whatever spelling; else the one
 * name that is this one with a prefix (`ticket_cve_id`); else, where `shortened`, the one name that is its end (`status`
 * for `ticket_status`). Empty when there is none, or when several fields could be meant.
 */
export function resolveField(
  field: string,
  names: Iterable<string>,
  shortened = false,
): readonly string[] {
  const all = [...names]
  const plain = plainName(field)
  const own = all.filter((name) => plainName(name) === plain)
  if (own.length > 0)
    return own.sort((one, other) => Number(other === field) - Number(one === field))
  const words = wordsOf(field)
  const prefixed = all.filter((name) => endsWith(wordsOf(name), words))
  if (prefixed.length > 0) return onlyOne(prefixed)
  return shortened ? onlyOne(all.filter((name) => endsWith(words, wordsOf(name)))) : []
}

/** The names when they are spellings of one; none when they are several. */
function onlyOne(names: readonly string[]): readonly string[] {
  return new Set(names.map(plainName)).size === 1 ? names : []
}
