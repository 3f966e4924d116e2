import { counted } from '../../base/text.ts'
import type { RecordDifference, RangeDifference } from './difference.ts'
import type { AffectedRange, PackageName } from './facts.ts'

/** Names and versions that a sentence lists, and characters of each. */
const LISTED = 5
const LONGEST = 120

const PLAIN = {
  record_added: 'record added',
  record_removed: 'record removed',
  package_added: 'package added',
  package_removed: 'package removed',
  no_longer_withdrawn: 'no longer withdrawn',
} as const

/** Sentences about one record. */
const SENTENCES = 200

/** Returns the differences of a record in words; the number alone of those that are too many. */
export function recordSentences(differences: readonly RecordDifference[]): string[] {
  const more = differences.length - SENTENCES
  const words = differences.slice(0, SENTENCES).map(differenceWords)
  return more > 0 ? [...words, `and ${counted(more, 'more difference')}`] : words
}

/** Returns a difference in words, in one line, such as `npm lodash: fix lowered from 4.17.21 to 4.17.20`. */
export function differenceWords(difference: RecordDifference): string {
  const named = 'package' in difference && difference.package !== null ? difference.package : null
  const text = sentenceOf(difference)
  return named === null ? text : `${packageWords(named)}: ${text}`
}

function sentenceOf(difference: RecordDifference): string {
  switch (difference.kind) {
    case 'record_added':
    case 'record_removed':
    case 'package_added':
    case 'package_removed':
    case 'no_longer_withdrawn':
      return PLAIN[difference.kind]
    case 'withdrawn':
      return `withdrawn (${clean(difference.to)})`
    case 'withdrawal_changed':
      return `date of the withdrawal changed${fromTo(difference)}`
    case 'fix_added':
      return `fix added: ${clean(difference.to)}`
    case 'fix_removed':
      return `fix removed: ${clean(difference.from)}`
    case 'fix_lowered':
    case 'fix_raised':
    case 'fix_changed':
      return `fix ${difference.kind.slice(4)}${fromTo(difference)}`
    case 'versions_added':
    case 'versions_removed':
      return `versions ${difference.kind.slice(9)}: ${listed(difference.versions)}`
    case 'aliases_added':
    case 'aliases_removed':
      return `aliases ${difference.kind.slice(8)}: ${listed(difference.aliases)}`
    case 'severity_changed':
      return severityWords(difference)
    case 'other_changed':
      return `other fields changed: ${listed(difference.fields.map((name) => `"${name}"`))}`
    case 'modified_only':
      return `only the date of modification changed${fromTo(difference)}`
    case 'range_added':
    case 'range_removed':
    case 'range_widened':
    case 'range_narrowed':
    case 'range_rewritten':
    case 'range_changed':
      return rangeWords(difference)
  }
}

const EFFECTS = {
  range_added: 'affected range added',
  range_removed: 'affected range removed',
  range_widened: 'affected range widened',
  range_narrowed: 'affected range narrowed',
  range_rewritten: 'affected range written in another way, for the same versions',
  range_changed: 'affected range changed',
} as const

function rangeWords({ kind, added, removed }: RangeDifference): string {
  const before = removed.length > 0 ? ` from ${listedRanges(removed)}` : ''
  const after = added.length > 0 ? ` to ${listedRanges(added)}` : ''
  if (kind === 'range_added') return `${EFFECTS[kind]}: ${listedRanges(added)}`
  if (kind === 'range_removed') return `${EFFECTS[kind]}: ${listedRanges(removed)}`
  return `${EFFECTS[kind]}${before}${after}`
}

const SIGNS = new Map([
  ['introduced', '>='],
  ['fixed', '<'],
  ['last_affected', '<='],
  ['limit', 'limit'],
])

/** A range as people write it: `[>= 1.0 < 1.4.2, >= 2.0 < 2.3]`. */
function rangeText({ events }: AffectedRange): string {
  const parts: string[] = []
  let before = 'introduced'
  for (const [kind, version] of events.flatMap((event) => Object.entries(event))) {
    if (before !== 'introduced') parts.push(', ')
    else if (parts.length > 0) parts.push(' ')
    parts.push(`${SIGNS.get(kind) ?? kind} ${version}`)
    before = kind
  }
  return `[${parts.join('')}]`
}

function packageWords({ ecosystem, name }: PackageName): string {
  return ecosystem === '' && name === '' ? '(no package)' : clean(`${ecosystem} ${name}`)
}

function fromTo({ from, to }: { readonly from: string | null; readonly to: string | null }): string {
  return `${from === null ? '' : ` from ${clean(from)}`}${to === null ? ' to none' : ` to ${clean(to)}`}`
}

function severityWords({ scale, from, to }: Extract<RecordDifference, { kind: 'severity_changed' }>): string {
  const where = `(${clean(scale)})`
  if (from === null) return `severity added ${where}: ${clean(to ?? '')}`
  if (to === null) return `severity removed ${where}: ${clean(from)}`
  return `severity changed ${where} from ${clean(from)} to ${clean(to)}`
}

function listedRanges(ranges: readonly AffectedRange[]): string {
  return listed(ranges.slice(0, LISTED).map(rangeText), ranges.length)
}

function listed(values: readonly string[], total = values.length): string {
  const shown = values.slice(0, LISTED).map(clean).join(', ')
  const more = total - LISTED
  return more > 0 ? `${shown} and ${more} more` : shown
}

/** Upstream's text in one line, without control characters and bounded. */
function clean(text: string | null): string {
  const line = (text ?? '')
    .slice(0, 8 * LONGEST)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
}
