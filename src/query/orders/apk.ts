import { compareDigits, compareLists, compareText, createOrder } from './order.ts'

interface ApkVersion {
  readonly numbers: readonly string[]
  readonly letter: string
  readonly suffixes: readonly Suffix[]
  readonly revision: string
}

interface Suffix {
  /** Rank in the order of suffixes; below `NONE` the version precedes the one without the suffix. */
  readonly rank: number
  readonly number: string
}

const SUFFIXES = ['alpha', 'beta', 'pre', 'rc', '', 'cvs', 'svn', 'git', 'hg', 'p']
const NONE: Suffix = { rank: SUFFIXES.indexOf(''), number: '' }

const FORM =
  /^v?(\d+(?:\.\d+)*)([a-z]?)((?:_(?:alpha|beta|pre|rc|cvs|svn|git|hg|p)\d*)*)(?:~[0-9a-f]+)?(?:-r(\d*))?$/

/**
 * Alpine, Wolfi, Chainguard and the others that use apk: the order of apk-tools 3. Ours, for there is no kept library. A
 * commit (`~1a2b`) has no order and is passed over.
 */
export const apkOrder = createOrder<ApkVersion>({
  read(text) {
    const [found, numbers = '', letter = '', suffixes = '', revision = ''] = FORM.exec(text) ?? []
    if (found === undefined) return null
    return {
      numbers: numbers.split('.'),
      letter,
      suffixes: [...suffixes.matchAll(/_([a-z]+)(\d*)/g)].map(([, name = '', number = '']) => ({
        rank: SUFFIXES.indexOf(name),
        number,
      })),
      revision,
    }
  },
  compare: (one, other) =>
    compareNumbers(one.numbers, other.numbers) ||
    compareText(one.letter, other.letter) ||
    compareLists(one.suffixes, other.suffixes, NONE, compareSuffixes) ||
    compareDigits(one.revision, other.revision),
})

/** Parts behind the first that begin with a zero are fractions: 1.05 precedes 1.1. A longer version is the later one. */
function compareNumbers(one: readonly string[], other: readonly string[]): number {
  for (let i = 0; i < Math.min(one.length, other.length); i++) {
    const [a = '', b = ''] = [one[i], other[i]]
    const fraction = i > 0 && (a.startsWith('0') || b.startsWith('0'))
    const difference = fraction ? compareText(a, b) : compareDigits(a, b)
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

function compareSuffixes(one: Suffix, other: Suffix): number {
  return one.rank - other.rank || compareDigits(one.number, other.number)
}
