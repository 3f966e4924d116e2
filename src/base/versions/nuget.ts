import { compareDigits, compareLists, compareText, createOrder, plainDigits } from './order.ts'

interface NugetVersion {
  readonly numbers: readonly string[]
  /** Lower case; empty for a release. */
  readonly before: readonly string[]
}

const FORM = /^v?(\d+(?:\.\d+){0,3})(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/i

/**
 * NuGet: four numbers, then SemVer's prerelease without regard to case; the build is ignored. Implemented here, because the
 * existing library follows SemVer 1.
 */
export const nugetOrder = createOrder<NugetVersion>({
  read(text) {
    const [found, numbers = '', before = ''] = FORM.exec(text) ?? []
    if (found === undefined) return null
    return {
      numbers: numbers.split('.'),
      before: before === '' ? [] : before.toLowerCase().split('.'),
    }
  },
  write({ numbers, before }) {
    const plain = numbers
      .map(plainDigits)
      .join('.')
      .replace(/(?:\.0)+$/, '')
    return before.length === 0 ? plain : `${plain}-${before.join('.')}`
  },
  compare: (one, other) =>
    compareLists(one.numbers, other.numbers, '0', compareDigits) ||
    Number(one.before.length === 0) - Number(other.before.length === 0) ||
    compareLists(one.before, other.before, '', compareIdentifiers),
})

/** SemVer's: an absent one first, then numbers by their value, then texts. */
function compareIdentifiers(one: string, other: string): number {
  const kinds = kindOf(one) - kindOf(other)
  if (kinds !== 0) return kinds
  return kindOf(one) === 1 ? Number(one) - Number(other) : compareText(one, other)
}

/** NuGet reads an identifier as a whole number of 32 bits with a sign; a longer one is a text. */
function kindOf(identifier: string): number {
  if (identifier === '') return 0
  const number = /^-?\d+$/.test(identifier) ? Number(identifier) : NaN
  return number >= -(2 ** 31) && number < 2 ** 31 ? 1 : 2
}
