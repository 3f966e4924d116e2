/** Code points that clients trim (Python's `str.strip`, Go's `strings.TrimSpace`, Java's and JavaScript's `trim`). */
export const WHITE_SPACE =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'

const CODES = Array.from(WHITE_SPACE, (one) => one.codePointAt(0)).join(', ')

/**
 * SQL condition: an id contains a space or a percent sign, or begins or ends with white space. Partial indexes in the
 * schemas (`mirror.ts`, `views.ts`) use exactly this text, so that the few such ids are found without a full scan.
 */
export const IS_UNTIDY = `(instr(id, '%') > 0 OR instr(id, ' ') > 0 OR id <> trim(id, char(${CODES})))`

/** Returns the statement that lists such ids of a table of records, up to a limit. */
export function listUntidy(table: 'osv_record' | 'record'): string {
  return `SELECT id FROM ${table} WHERE ${IS_UNTIDY} LIMIT ?`
}
