import { compareDigits, compareText, createOrder } from './order.ts'

/** A number's digits without leading zeros, a qualifier, or a list of items: each hyphen begins one. */
type Item = string | Qualifier | readonly Item[]

interface Qualifier {
  /** Place in the order of qualifiers; those unknown to Maven come last. */
  readonly rank: number
  /** In lower case. */
  readonly word: string
}

const QUALIFIERS = ['alpha', 'beta', 'milestone', 'rc', 'snapshot', '', 'sp']
const RELEASE = QUALIFIERS.indexOf('')
const SHORT = new Map([
  ['a', 'alpha'],
  ['b', 'beta'],
  ['m', 'milestone'],
])
const SAME = new Map([
  ['cr', 'rc'],
  ['ga', ''],
  ['final', ''],
  ['release', ''],
])

/**
 * Maven: ComparableVersion of maven-artifact 3.9 and later, where a qualifier that ends a version or stands before digits
 * opens a list behind a dot as well (`.M1` is `-M1`). Ours, for there is no kept library. Words unknown to Maven come
 * behind a release, in alphabetical order: so does `-root.io.1`. Not transitive.
 */
export const mavenOrder = createOrder<readonly Item[]>({
  read(text) {
    // brackets and commas are those of a range
    return text === '' || /[\s[\](),]/.test(text) ? null : itemsOf(text.toLowerCase())
  },
  write: textOf,
  compare: compareItemLists,
})

/** A list is the last item of the one that it is in. */
function textOf(items: readonly Item[]): string {
  return items.map((item, at) => (isList(item) ? `-${textOf(item)}` : (at > 0 ? '.' : '') + wordOf(item))).join('')
}

function wordOf(item: string | Qualifier): string {
  return typeof item === 'string' ? item : item.word
}

const DOT = 0x2e
const HYPHEN = 0x2d

/** Character by character: long lists of versions are read for each version that is looked for. */
function itemsOf(version: string): readonly Item[] {
  const top: Item[] = []
  const lists = [top]
  let list = top
  const open = (): void => {
    const inner: Item[] = []
    list.push(inner)
    lists.push(inner)
    list = inner
  }
  let start = 0
  let areDigits = false
  for (let at = 0; at < version.length; at++) {
    const sign = version.charCodeAt(at)
    if (sign === DOT || sign === HYPHEN) {
      list.push(at === start ? '0' : itemOf(version.slice(start, at), areDigits))
      start = at + 1
      if (sign === HYPHEN) open()
      continue
    }
    const isDigit = sign >= 0x30 && sign <= 0x39
    if (at > start && isDigit !== areDigits) {
      if (isDigit && list.length > 0) open()
      list.push(itemOf(version.slice(start, at), areDigits, true))
      start = at
      open()
    }
    areDigits = isDigit
  }
  if (start < version.length) {
    if (!areDigits && list.length > 0) open()
    list.push(itemOf(version.slice(start), areDigits))
  }
  for (const each of lists.reverse()) trim(each)
  return top
}

function itemOf(text: string, areDigits: boolean, isBeforeDigits = false): Item {
  if (areDigits) return text.startsWith('0') ? text.replace(/^0+(?=\d)/, '') : text
  const long = isBeforeDigits ? (SHORT.get(text) ?? text) : text
  const word = SAME.get(long) ?? long
  const place = QUALIFIERS.indexOf(word)
  return { rank: place === -1 ? QUALIFIERS.length : place, word }
}

/** Removes the items that stand for nothing from the end, and from the end of the part before the lists there. */
function trim(list: Item[]): void {
  for (let i = list.length - 1; i >= 0; i--) {
    const item = list[i]
    if (item === undefined || isNothing(item)) list.splice(i, 1)
    else if (!isList(item)) return
  }
}

function isNothing(item: Item): boolean {
  if (typeof item === 'string') return item === '0'
  return isList(item) ? item.length === 0 : item.rank === RELEASE
}

function isList(item: Item): item is readonly Item[] {
  return Array.isArray(item)
}

function compareItemLists(one: readonly Item[], other: readonly Item[]): number {
  for (let i = 0; i < Math.max(one.length, other.length); i++) {
    const a = one[i]
    const b = other[i]
    const difference = a === undefined ? -compareToNothing(b) : compareItems(a, b)
    if (difference !== 0) return difference
  }
  return 0
}

function compareItems(one: Item, other: Item | undefined): number {
  if (other === undefined) return compareToNothing(one)
  const difference = kindOf(one) - kindOf(other)
  if (difference !== 0) return difference
  if (typeof one === 'string') return compareDigits(one, other as string)
  return isList(one) ? compareItemLists(one, other as readonly Item[]) : compareQualifiers(one, other as Qualifier)
}

/** Compares an item with the end of a version: it decides whether 1-rc precedes 1. */
function compareToNothing(item: Item | undefined): number {
  if (item === undefined) return 0
  if (typeof item === 'string') return item === '0' ? 0 : 1
  if (!isList(item)) return item.rank - RELEASE
  for (const inner of item) {
    const difference = compareToNothing(inner)
    if (difference !== 0) return difference
  }
  return 0
}

/** A qualifier precedes a list, a list a number. */
function kindOf(item: Item): number {
  if (typeof item === 'string') return 2
  return isList(item) ? 1 : 0
}

function compareQualifiers(one: Qualifier, other: Qualifier): number {
  return one.rank - other.rank || compareText(one.word, other.word)
}
