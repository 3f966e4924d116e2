import { compareDigits, createOrder } from './order.ts'

const RANKS = ['dev', 'a', 'b', 'rc', '#', 'p']
const NUMBER = RANKS.indexOf('#')

/**
 * Packagist: PHP's version_compare, which Composer builds on, with a leading `v` taken off. Ours, for there is no kept
 * library. Branches (`dev-main`) have no order, nor has what names a commit (`1.0#a1b2`): PHP takes a `#` for equal to any number.
 */
export const composerOrder = createOrder<readonly string[]>({
  read(text) {
    const version = text.replace(/^v/i, '')
    if (!/^\d/.test(version) || /[\s#]/.test(version)) return null
    return version
      .replace(/[-_+]/g, '.')
      .replace(/([^\d.])(?=\d)/g, '$1.')
      .replace(/(\d)(?=[^\d.])/g, '$1.')
      .split('.')
      .filter((part) => part !== '')
  },
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
  return RANKS.findIndex(
    (rank) => part.startsWith(rank) || (rank === 'rc' && part.startsWith('RC')),
  )
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part)
}
