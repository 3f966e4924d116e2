import { type Random, createRandom } from './random.ts'
import { type Platform, PACKAGES, TARGETS } from './vocabulary.ts'

/**
 * What a generated record is about. It costs little beside the record's text, so that what else is generated, such as
 * patch tickets and VEX statements, can be about the same.
 */
export interface Topic {
  /** The CVE or GHSA id, upstream of the record. */
  vulnerability: string
  target: Platform
  /** The upstream name of the package. */
  name: string
  /** Whether the record lists the package by its upstream name, as SBOMs do. */
  isUpstreamListed: boolean
  /** Whether a patched version exists: a few records have no `fixed` yet, as OSV allows. */
  isFixed: boolean
}

/** Ids per vulnerability: one is fixed in up to three places. */
const PLACES = 3
/** One vulnerability in so many has no fix, the `UNFIXED`-th of each group. */
const GROUP = 24
const UNFIXED = 5
/** Random numbers of names, apart from those of records and of vulnerabilities. */
const NAMES = 0x2000_0000

/** Returns what the i-th record of a seed is about; distinct i < 1,000,000 have distinct vulnerabilities or targets. */
export function topicOf(seed: number, i: number): Topic {
  const number = Math.floor(i / PLACES)
  const random = createRandom(seed, -1 - number)
  const step = 5 * (i % PLACES) // 13 targets: three different ones
  const target = TARGETS[(random.int(TARGETS.length) + step) % TARGETS.length] as Platform // in range
  const year = 2014 + (number % 13)
  const cve = `CVE-${year}-${1000 + Math.floor(number / 13) * 7 + random.int(7)}`
  const vulnerability = random.chance(0.12) ? ghsa(random, number) : cve
  const isFixed = number % GROUP !== UNFIXED
  const own = createRandom(seed, NAMES + i)
  const name = own.pick(PACKAGES[target.feed])
  // Before there is a patched package, a record can only list the upstream one.
  return { vulnerability, target, name, isFixed, isUpstreamListed: !isFixed || own.chance(0.3) }
}

/** Returns the number of one of the first `records` records that have no fix; null: there is none. */
export function pickUnfixed(random: Random, records: number): number | null {
  const groups = Math.floor(records / PLACES / GROUP)
  if (groups === 0) return null
  return (random.int(groups) * GROUP + UNFIXED) * PLACES + random.int(PLACES)
}

const GHSA_DIGITS = '23456789cfghjmpqrvwx'

function ghsa(random: Random, number: number): string {
  let tail = ''
  for (let left = number, k = 0; k < 4; k++, left = Math.floor(left / 20)) {
    tail += GHSA_DIGITS.charAt(left % 20)
  }
  const group = (): string => Array.from({ length: 4 }, () => GHSA_DIGITS.charAt(random.int(20))).join('')
  return `GHSA-${group()}-${group()}-${tail}`
}
