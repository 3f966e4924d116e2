import { compareDigits, compareLists, compareText, createOrder, plainDigits } from './order.ts'

const FORM = /^\d+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

/**
 * The platform for which a gem was built, as a lockfile writes it behind the version: `1.16.0-x86_64-linux-musl`. The gems of
 * all platforms have one version.
 */
const PLATFORM =
  /-(?:ruby|java|jruby|dalvik|dotnet|mswin(?:32|64)?|mingw32|(?:x86|x64|x86_64|i[3-6]86|aarch64|arm64|arm|armv[5-8]l?|universal|powerpc|ppc64|ppc64le|powerpc64|powerpc64le|s390x|riscv64|sparc|mips64el|wasm32|wasm64)-(?:linux|darwin|mingw|mswin|freebsd|openbsd|netbsd|dragonfly|solaris|aix|cygwin|java|wasi|android|unknown)[\w.-]*)$/

/**
 * RubyGems: Gem::Version. A word makes a prerelease, a dash is `.pre.`, trailing zeros are ignored. Implemented here, because
 * @renovatebot/ruby-semver 5.0.0 differs from RubyGems: it compares words by the locale of the process (`RC` after `a`, Ruby:
 * before), reads numbers as floats (two that differ beyond 2^53 are equal), and takes the empty text for version 0.
 */
export const gemOrder = createOrder<readonly string[]>({
  read(text) {
    const version = text.includes('-') ? text.replace(PLATFORM, '') : text
    if (!FORM.test(version)) return null
    const segments = version.replaceAll('-', '.pre.').match(/\d+|[A-Za-z]+/g) ?? []
    const word = segments.findIndex((segment) => !isNumber(segment))
    const release = word === -1 ? segments.length : word
    return [...withoutZeros(segments.slice(0, release)), ...withoutZeros(segments.slice(release))]
  },
  write: (segments) => segments.map(plainDigits).join('.'),
  compare: (one, other) => compareLists(one, other, '0', compareSegments),
})

function withoutZeros(segments: readonly string[]): readonly string[] {
  return segments.slice(0, segments.findLastIndex((segment) => !/^0+$/.test(segment)) + 1)
}

/** Words come before numbers. */
function compareSegments(one: string, other: string): number {
  const a = isNumber(one)
  const b = isNumber(other)
  if (a !== b) return a ? 1 : -1
  return a ? compareDigits(one, other) : compareText(one, other)
}

function isNumber(segment: string): boolean {
  return /^\d/.test(segment)
}
