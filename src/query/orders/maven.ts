import { compareDigits, compareText, createOrder } from './order.ts'

interface Token {
  /** The separator before it; a change between letters and digits counts as a hyphen. */
  readonly separator: '.' | '-'
  /** Lower case, no leading zeros; empty for a release. */
  readonly value: string
  /** A token that only fills up the shorter version. */
  readonly filled?: boolean
}

const QUALIFIERS = ['alpha', 'beta', 'milestone', 'rc', 'snapshot', '', 'sp']
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
 * Maven: the version order that its POM reference specifies, which osv.dev follows too. Ours, for there is no kept library.
 * Words unknown to Maven come behind a release, in alphabetical order: so does `-root.io.1`.
 */
export const mavenOrder = createOrder<readonly Token[]>({
  read(text) {
    return text === '' || /\s/.test(text) ? null : trim(tokensOf(text.toLowerCase()))
  },
  compare(one, other) {
    for (let i = 0; i < Math.max(one.length, other.length); i++) {
      const a = one[i] ?? fill(other[i])
      const b = other[i] ?? fill(one[i])
      const difference = compareTokens(a, b)
      if (difference !== 0) return difference
    }
    return 0
  },
})

const DOT = 0x2e
const HYPHEN = 0x2d

/** Character by character: long lists of versions are read for each version that is looked for. */
function tokensOf(version: string): Token[] {
  const tokens: Token[] = []
  let separator: Token['separator'] = '.'
  let start = 0
  for (let at = 0; at <= version.length; at++) {
    const sign = at < version.length ? version.charCodeAt(at) : DOT
    if (sign !== DOT && sign !== HYPHEN) continue
    addRuns(tokens, separator, version.slice(start, at))
    separator = sign === DOT ? '.' : '-'
    start = at + 1
  }
  return tokens
}

/** Adds the runs of digits and of other characters between two separators. */
function addRuns(tokens: Token[], before: Token['separator'], piece: string): void {
  let separator = before
  let start = 0
  for (let at = 1; at <= piece.length; at++) {
    const isEnd = at === piece.length
    const digits = isDigit(piece, start)
    if (!isEnd && isDigit(piece, at) === digits) continue
    const run = piece.slice(start, at)
    tokens.push({ separator, value: digits ? withoutZeros(run) : wordOf(run, !isEnd) })
    separator = '-'
    start = at
  }
  if (piece === '') tokens.push({ separator, value: '0' })
}

function isDigit(text: string, at: number): boolean {
  const sign = text.charCodeAt(at)
  return sign >= 0x30 && sign <= 0x39
}

function withoutZeros(digits: string): string {
  return digits.startsWith('0') ? digits.replace(/^0+(?=\d)/, '') : digits
}

function wordOf(word: string, beforeDigits: boolean): string {
  return SAME.get(word) ?? (beforeDigits ? SHORT.get(word) : undefined) ?? word
}

/** Removes zeros and empty values from the end, and from the end of the part before each hyphen. */
function trim(tokens: Token[]): Token[] {
  for (let i = tokens.length - 1; i > 0; i--) {
    const next = tokens[i + 1]
    const value = tokens[i]?.value
    if ((next === undefined || next.separator === '-') && (value === '0' || value === ''))
      tokens.splice(i, 1)
  }
  return tokens
}

/** A null value fit for its neighbour: 0 behind a dot, a release behind a hyphen. `.sp` is later than a release. */
function fill(neighbour: Token | undefined): Token {
  const separator = neighbour?.separator ?? '.'
  const value = separator === '.' && neighbour?.value !== 'sp' ? '0' : ''
  return { separator, value, filled: true }
}

function compareTokens(one: Token, other: Token): number {
  if (one.separator !== other.separator) return rankOf(one) - rankOf(other)
  const numbers = [isNumber(one.value), isNumber(other.value)]
  if (numbers[0] && numbers[1]) return compareDigits(one.value, other.value)
  if (numbers[0] && one.filled !== true) return 1
  if (numbers[1] && other.filled !== true) return -1
  return compareQualifiers(one.value, other.value)
}

/** `.word` < `-word` < `-number` < `.number` */
function rankOf({ separator, value }: Token): number {
  if (isNumber(value)) return separator === '-' ? 2 : 3
  return separator === '-' ? 1 : 0
}

function compareQualifiers(one: string, other: string): number {
  const known = [QUALIFIERS.indexOf(one), QUALIFIERS.indexOf(other)].map((place) =>
    place === -1 ? QUALIFIERS.length : place,
  )
  const [a = 0, b = 0] = known
  return a - b || (a === QUALIFIERS.length ? compareText(one, other) : 0)
}

function isNumber(value: string): boolean {
  return /^\d+$/.test(value)
}
