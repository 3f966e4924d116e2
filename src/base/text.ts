/** Longest text from upstream that a run row, a log line or a cell of a table repeats, characters. */
const MAX_LENGTH = 300

/**
 * Returns a text from upstream fit for a run row, a log and a terminal: control characters escaped, truncated to
 * `longest` characters (300). An id may be megabytes long, or contain a terminal's escape sequences.
 */
export function plainText(text: string, longest = MAX_LENGTH): string {
  return clip(text, longest).replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    return `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** Returns a text cut to `longest` characters (300). */
export function clip(text: string, longest = MAX_LENGTH): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

/** Returns a text without its percent-encoding; one that has none, or a broken one, as it is. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns a field of a CSV (RFC 4180), with `'` before what a spreadsheet would evaluate as a formula. */
export function csvField(value: string | boolean | null): string {
  const text = String(value ?? '').replace(/^(?=[=+@\t\r-])/, "'")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Returns a noun, and what follows it, as it is written beside a count; `many` is the noun with an `s` where not given. */
export function nounOf(count: number, one: string, many = `${one}s`): string {
  return count === 1 ? one : many
}

/** Returns a count with its noun: `1 record`, `2 records`; `counted(2, 'list is', 'lists are')`. */
export function counted(count: number, one: string, many?: string): string {
  return `${count} ${nounOf(count, one, many)}`
}

/** Reads a whole number above 0, in digits alone; null: that is something else. */
export function wholeNumber(text: string): number | null {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null
}

/** Returns a share of one in percent, without the digits that binary fractions add: 0.07 is `7 %`. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(12))} %`
}

const HTML_START =
  /^\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script|style|center|table|form|div|h\d|p|a|br)\b/i

/** Reports whether a text, of which the start is enough, is an HTML page. */
export function isHtmlPage(start: string): boolean {
  return HTML_START.test(start)
}

/** What is remembered at most. */
interface MemoryBounds {
  readonly results: number
  /** The results of longer texts are not remembered. */
  readonly characters: number
}

/** Remembers the results of a function of texts, of which nearly all calls have the same few. Too many are forgotten together. */
export function remember<T>(work: (text: string) => T, { results, characters }: MemoryBounds): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    const result = work(text)
    if (text.length > characters) return result
    if (known.size >= results) known.clear()
    known.set(text, result)
    return result
  }
}
