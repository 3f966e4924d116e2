const STAMP =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s?([Zz]|[+-]\d{2}:?\d{2})?)?$/

/** What a stamp that cannot be read is shown as: the earliest that RFC 3339 can say, so that it comes last. */
const NEVER = '0001-01-01T00:00:00Z'

/**
 * The instant of a stamp as a text that sorts as time does: UTC with nine decimals, without the Z. Stamps have many
 * forms: a day alone is its beginning, a time without a zone is UTC. Empty for what is no time.
 */
export function instantOf(stamp: unknown): string {
  const match = typeof stamp === 'string' ? STAMP.exec(stamp.trim()) : null
  if (match === null) return ''
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((digits: string | undefined) => Number(digits ?? 0))
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || hour > 24 || minute > 59 || second > 60) return ''
  date.setUTCHours(hour, minute - offsetOf(match[8]), second)
  if (date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return ''
  const decimals = (match[7] ?? '').padEnd(9, '0').slice(0, 9)
  return `${date.toISOString().slice(0, 19)}.${decimals}`
}

/** Minutes that a zone is ahead of UTC. */
function offsetOf(zone: string | undefined): number {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return zone.startsWith('-') ? -minutes : minutes
}

/** An instant as RFC 3339 writes it, with no more decimals than it has. */
export function stampOf(instant: string): string {
  return instant === ''
    ? NEVER
    : `${instant.slice(0, 19)}${instant.slice(19).replace(/\.?0*$/, '')}Z`
}
