import { compareDigits, createOrder } from './order.ts'

interface DpkgVersion {
  readonly epoch: string
  readonly upstream: string
  readonly revision: string
}

/**
 * opam: dpkg's order (deb-version(7)), with versions such as `v0.16`. Ours, because the libraries that there are read long numbers
 * as floats and fail on `~` beside other signs.
 */
export const dpkgOrder = createOrder<DpkgVersion>({ read, compare })

/** Debian and Ubuntu: the same, where a version begins with a digit. Others, such as `stable`, would come behind all. */
export const debOrder = createOrder<DpkgVersion>({
  read(text) {
    const version = read(text)
    return version !== null && /^\d/.test(version.upstream) ? version : null
  },
  compare,
})

function read(text: string): DpkgVersion | null {
  const [, epoch, rest = ''] = /^(?:(\d+):)?(.*)$/.exec(text) ?? []
  const signs = epoch === undefined ? /^[A-Za-z0-9.+~-]+$/ : /^[A-Za-z0-9.+~:-]+$/
  if (!signs.test(rest)) return null
  const dash = rest.lastIndexOf('-')
  const upstream = dash > 0 ? rest.slice(0, dash) : rest
  return { epoch: epoch ?? '', upstream, revision: dash > 0 ? rest.slice(dash + 1) : '' }
}

function compare(one: DpkgVersion, other: DpkgVersion): number {
  return (
    compareDigits(one.epoch, other.epoch) ||
    compareParts(one.upstream, other.upstream) ||
    compareParts(one.revision, other.revision)
  )
}

/** Compares alternating stretches of other characters and digits: the former by character, the latter as numbers. */
function compareParts(one: string, other: string): number {
  const a = split(one)
  const b = split(other)
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const x = a[i] ?? ''
    const y = b[i] ?? ''
    const difference = i % 2 === 0 ? compareSigns(x, y) : compareDigits(x, y)
    if (difference !== 0) return difference
  }
  return 0
}

/** Splits into other characters at even indexes (the first may be empty) and digits at the others. */
function split(text: string): string[] {
  return text.split(/(\d+)/)
}

function compareSigns(one: string, other: string): number {
  for (let i = 0; i < Math.max(one.length, other.length); i++) {
    const difference = weightOf(one[i]) - weightOf(other[i])
    if (difference !== 0) return Math.sign(difference)
  }
  return 0
}

/** `~` precedes the end, the end before letters, letters before all else. */
function weightOf(sign: string | undefined): number {
  if (sign === undefined) return 0
  if (sign === '~') return -1
  const code = sign.charCodeAt(0)
  return /[A-Za-z]/.test(sign) ? code : code + 256
}
