import { compareDigits, createOrder, plainDigits } from './order.ts'

const RANKS = ['dev', 'a', 'b', 'rc', '#', 'p']
const NUMBER = RANKS.indexOf('#')

/** Words for the stability of a version, behind four numbers or a date, as composer reads them. */
const STABILITY = '[._-]?(?:(stable|beta|b|rc|alpha|a|patch|pl|p)([.-]?\\d+(?:[.-]\\d+)*)?)?([.-]?dev)?$'
const NUMBERS = new RegExp(`^v?(\\d{1,5})(?:\\.(\\d+))?(?:\\.(\\d+))?(?:\\.(\\d+))?${STABILITY}`, 'i')
const DATE = new RegExp(`^v?(\\d{4}(?:[.:-]?\\d{2}){1,6}(?:[.:-]?\\d{1,3})?)${STABILITY}`, 'i')
/** A branch whose name is a number: `2.1.x-dev` comes behind each 2.1. */
const BRANCH = /^v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?[.-]?dev$/i
const HIGHEST = '9999999'

/** What composer writes for a short word of stability; others stay. */
const LONG_WORDS = new Map([
  ['a', 'alpha'],
  ['b', 'beta'],
  ['rc', 'RC'],
  ['p', 'patch'],
  ['pl', 'patch'],
])

/**
 * Packagist: what composer does. A version is normalised as by its VersionParser (1.0 is 1.0.0.0, a build is left out), then
 * compared by PHP's version_compare. Ours, for there is no kept library. Branches (`dev-main`) have no order, nor has what
 * composer refuses, such as a fifth number.
 */
export const composerOrder = createOrder<readonly string[]>({
  read: partsOf,
  write: (parts) => parts.map(plainDigits).join('.'),
  compare(one, other) {
    const shared = Math.min(one.length, other.length)
    for (let i = 0; i < shared; i++) {
      const difference = comparePart(one[i] ?? '', other[i] ?? '')
      if (difference !== 0) return difference
    }
    if (one.length === other.length) return 0
    return one.length > other.length ? rest(one[shared]) : -rest(other[shared])
  },
})

/** Compares a version that has this part more with the one without: a number makes it later, a word by its rank. */
function rest(part = ''): number {
  return isNumber(part) ? 1 : rankOf(part) - NUMBER
}

function comparePart(one: string, other: string): number {
  if (isNumber(one) && isNumber(other)) return compareDigits(one, other)
  return rankOf(one) - rankOf(other)
}

/** dev < alpha < beta < RC < a number < patch level; a word that PHP does not know precedes them all. */
function rankOf(part: string): number {
  if (isNumber(part)) return NUMBER
  return RANKS.findIndex((rank) => part.startsWith(rank) || (rank === 'rc' && part.startsWith('RC')))
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part)
}

/**
 * Returns the numbers and words of a version as composer stores it, without an alias, a flag of stability, and a build; null
 * for a branch, and for what composer refuses.
 */
function partsOf(text: string): readonly string[] | null {
  const version = /[\s@+]/.test(text) ? withoutFlags(text) : text
  const numbers = NUMBERS.exec(version)
  if (numbers !== null) {
    const [, major = '', minor = '0', patch = '0', fourth = '0'] = numbers
    return [major, minor, patch, fourth, ...wordsOf(numbers[5], numbers[6], numbers[7])]
  }
  const date = DATE.exec(version)
  if (date !== null) {
    const [, digits = '', word, number, dev] = date
    return [...digits.split(/\D/), ...wordsOf(word, number, dev)]
  }
  const branch = BRANCH.exec(version)
  if (branch === null) return null
  const [, major = '', minor = 'x', patch = 'x', fourth = 'x'] = branch
  return [major, ...[minor, patch, fourth].map((part) => part.replace(/[x*]/i, HIGHEST)), 'dev']
}

function withoutFlags(text: string): string {
  return text
    .replace(/^([^,\s]+) +as +[^,\s]+$/, '$1')
    .replace(/@(?:stable|rc|beta|alpha|dev)$/i, '')
    .replace(/^([^,\s+]+)\+\S+$/, '$1')
}

function wordsOf(word = '', number = '', dev = ''): readonly string[] {
  const suffix = dev === '' ? [] : ['dev']
  if (word === '') return suffix
  const stability = word.toLowerCase()
  if (stability === 'stable') return []
  const digits = number.split(/[.-]/).filter((part) => part !== '')
  return [LONG_WORDS.get(stability) ?? stability, ...digits, ...suffix]
}
