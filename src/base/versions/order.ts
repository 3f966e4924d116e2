/**
 * The version order of an ecosystem. A version is read once and then compared; what `read` returns is for `compare` of
 * the same order alone.
 */
export interface VersionOrder<Key = unknown> {
  /** Null when no version of the ecosystem is written so: then there is nothing before or behind it. */
  read(text: string): Key | null
  /** Below 0, 0 or above 0, as for Array.sort. */
  compare(one: Key, other: Key): number
  /** Returns the one text of all spellings of a version; absent: a version has one spelling. */
  write?(key: Key): string
  /** Whether a version is another build of a version, which is meant where that is named; absent: there are no such builds. */
  isBuildOf?(version: string, named: string): boolean
  /** Whether ranges of type SEMVER are judged by it: it has SemVer's order, with more distinctions. */
  readonly refinesSemver?: boolean
  /** Whether a revision may have the number of a vendor's patch, as Alpine's `-r10071`. */
  readonly hasRevisions?: boolean
}

/** Longer than any version there is, characters: an order reads nothing beyond. */
const LONGEST_VERSION = 256

/**
 * What tools write where they do not know a version, or did not fill in a variable: some orders would read it. No version is
 * without any digit: `unknown`, `NOASSERTION`, `latest`, `main`, `*`. A range is none: `^1.0`, `>= 1.0`, `[1.0,2.0)`.
 */
const NO_VERSION = /^\D*$|\$\{|^@[^@]+@$|^[<>^~[]|^\([,\d]/

/**
 * Wraps an order so that it need not bound hostile input: its `read` gets texts of a bounded length,
 * without white space at their ends, so that matching one takes a bounded time; none that stands for no version.
 */
export function createOrder<Key>(order: VersionOrder<Key>): VersionOrder<Key> {
  return {
    read(text) {
      const version = text.length > LONGEST_VERSION ? '' : text.trim()
      const isNone = text.length > LONGEST_VERSION || NO_VERSION.test(version)
      return isNone ? null : order.read(version)
    },
    compare: (one, other) => order.compare(one, other),
    ...(order.write && { write: (key: Key) => order.write?.(key) ?? '' }),
    ...(order.isBuildOf && { isBuildOf: (version, named) => order.isBuildOf?.(version, named) ?? false }),
    refinesSemver: order.refinesSemver ?? false,
    hasRevisions: order.hasRevisions ?? false,
  }
}

/** -1, 0 or 1 for two texts, by UTF-16 code unit. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** -1, 0 or 1 for two numbers written in digits, of any length; an empty text is 0. Dates in versions outgrow 2^53. */
export function compareDigits(one: string, other: string): number {
  const a = one.replace(/^0+/, '')
  const b = other.replace(/^0+/, '')
  return Math.sign(a.length - b.length) || compareText(a, b)
}

/** Returns digits without zeros before them; any other text as it is. */
export function plainDigits(text: string): string {
  return text.replace(/^0+(?=\d+$)/, '')
}

/**
 * Returns what a tag of a repository has of a version, in one spelling; '' for none: `v1.2-rc1`, `php-1.2RC1` and `1_2_rc_1` are one.
 * `name`: of the package, which may have digits.
 */
export function numbersInTag(text: string, name: unknown): string {
  const tag = typeof name === 'string' && text.startsWith(`${name}-`) ? text.slice(name.length) : text
  const first = tag.search(/\d/)
  return first < 0
    ? ''
    : (
        tag
          .slice(first)
          .toLowerCase()
          .match(/\d+|[a-z]+/g) ?? []
      ).join('-')
}

/** The first difference that is not 0 between two lists, where `missing` replaces missing items of the shorter one. */
export function compareLists<Item>(
  one: readonly Item[],
  other: readonly Item[],
  missing: Item,
  compare: (one: Item, other: Item) => number,
): number {
  const length = Math.max(one.length, other.length)
  for (let i = 0; i < length; i++) {
    const difference = compare(one[i] ?? missing, other[i] ?? missing)
    if (difference !== 0) return difference
  }
  return 0
}
