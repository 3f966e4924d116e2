import { compareDigits, compareText, createOrder } from './order.ts'

/**
 * The kinds of parts, in the order in which a version with one precedes a version with another at the same place: `_rc` comes
 * before the end of a version, and all else behind it.
 */
const PART = {
  before: 0,
  end: 1,
  revision: 2,
  commit: 3,
  number: 4,
  behind: 5,
  letter: 6,
  digits: 7,
}

interface Part {
  /** Of `PART`. */
  readonly kind: number
  readonly text: string
}

const END: Part = { kind: PART.end, text: '' }

const BEFORE = ['alpha', 'beta', 'pre', 'rc']
const BEHIND = ['cvs', 'svn', 'git', 'hg', 'p']

/** A letter with digits behind it (`1.8.28p1`) is what apk-tools 2 read, and what old versions of packages have. */
const FORM = /^v?\d+(?:\.\d+)*(?:[a-z]\d*)?(?:_(?:alpha|beta|pre|rc|cvs|svn|git|hg|p)\d*)*(?:~[0-9a-f]+)?(?:-r\d+)?$/
const PARTS = /\d+|_[a-z]+|~[0-9a-f]+|-r\d+|[a-z]/g

/**
 * Alpine, Wolfi, Chainguard and the others that use apk: the order of apk-tools 3. Ours, for there is no kept library. A
 * revision and a commit count: 1.2 < 1.2-r0 < 1.2~1a2b.
 */
export const apkOrder = createOrder<readonly Part[]>({
  hasRevisions: true,
  read(text) {
    const version = text.startsWith('v') ? text.slice(1) : text
    if (!FORM.test(version)) return null
    const parts: Part[] = []
    for (const found of version.match(PARTS) ?? []) parts.push(partOf(found, parts.at(-1)))
    return parts
  },
  compare(one, other) {
    const shared = Math.min(one.length, other.length)
    for (let i = 0; i <= shared; i++) {
      const difference = compareParts(one[i] ?? END, other[i] ?? END, i)
      if (difference !== 0) return difference
    }
    return 0
  },
})

function partOf(text: string, before: Part | undefined): Part {
  if (text.startsWith('_')) return suffixOf(text.slice(1))
  if (text.startsWith('~')) return { kind: PART.commit, text: text.slice(1) }
  if (text.startsWith('-r')) return { kind: PART.revision, text: text.slice(2) }
  if (text >= 'a') return { kind: PART.letter, text }
  const isOfSuffix = before?.kind === PART.before || before?.kind === PART.behind
  return { kind: isOfSuffix ? PART.number : PART.digits, text }
}

/** The text of a suffix is its place among those of its kind. */
function suffixOf(name: string): Part {
  const place = BEFORE.indexOf(name)
  return place === -1
    ? { kind: PART.behind, text: String(BEHIND.indexOf(name)) }
    : { kind: PART.before, text: String(place) }
}

function compareParts(one: Part, other: Part, place: number): number {
  if (one.kind !== other.kind) return one.kind - other.kind
  if (one.kind === PART.letter || one.kind === PART.commit) return compareText(one.text, other.text)
  const isFraction = one.kind === PART.digits && place > 0
  // 1.05 precedes 1.1
  return isFraction && (one.text.startsWith('0') || other.text.startsWith('0'))
    ? compareText(one.text, other.text)
    : compareDigits(one.text, other.text)
}
