import { type Random, createRandom } from './random.ts'
import { type Subject, buildRecord } from './record.ts'
import { topicOf } from './topic.ts'

/** A record as generated: its id, the exact text of its `modified`, its exact bytes. */
interface Generated {
  id: string
  modified: string
  bytes: Buffer
}

/** What the generated records follow from. */
export interface GenerateOptions {
  seed: number
  /** Records of more than 500 KB among the first ones; default 0. */
  large?: number
  /** Whether the malformed ids are first; default false. */
  malformedIds?: boolean
  /** Whether about every sixth record is without its `schema_version`; default false. */
  malformed?: boolean
  /** Unix milliseconds to stamp the record with, for one that is published now; default: some older time. */
  at?: number
}

/** Ids as they should not be and yet are (wire facts): all of them must survive a mirror. */
export const MALFORMED_IDS: readonly string[] = [
  'ROOT-APP-NPM-',
  'ROOT-APP-PYPI-CVE-0000-0000',
  'ROOT-OS-DEBIAN-bookworm- CVE-2023-0911',
  'ROOT-APP-NPM-CVE-2022-0883 ',
  'Root-App-Npm-cve-2021-0337',
  'ROOT-APP-MAVEN-CVE-2022-0965',
  'ROOT-APP-MAVEN-cve-2022-0965',
  'ROOT-APP-NPM-CVE-2024-0001-é漢🛡',
  'ROOT-APP-PYPI-CVE-2024-100%',
  'ROOT-APP-PYPI-CVE-2024-%2F1',
  'ROOT-OS-UBUNTU-2204-USN:0543-1',
]

/** The newest ordinary `modified`; nothing that is generated depends on the clock. */
const NEWEST = Date.UTC(2026, 5, 1)
const DAY = 86_400_000

/**
 * The i-th record of a seed (0, 1, 2, …). Each depends on the seed and its own number only; ids are
 * distinct for distinct i < 1,000,000.
 */
export function generateRecord(options: GenerateOptions, i: number): Generated {
  const random = createRandom(options.seed, i + 1)
  const malformedId = options.malformedIds === true ? MALFORMED_IDS[i] : undefined
  const topic = topicOf(options.seed, i)
  const vulnerability = malformedId === undefined ? topic.vulnerability : (/CVE-.*$/i.exec(malformedId)?.[0] ?? '')
  const { published, modified } = stampsOf(random, options.at)
  const large = i >= MALFORMED_IDS.length && i - MALFORMED_IDS.length < (options.large ?? 0)
  const subject: Subject = {
    ...topic,
    id: malformedId ?? `ROOT-${topic.target.idPart}-${topic.vulnerability}`,
    vulnerability,
    published,
    modified,
    malformed: options.malformed ?? false,
    size: large ? random.between(560_000, 700_000) : drawSize(random),
  }
  return { id: subject.id, modified, bytes: buildRecord(random, subject) }
}

function stampsOf(random: Random, at?: number): { published: string; modified: string } {
  const drawn = stamps(random)
  return at === undefined ? drawn : { published: seconds(at), modified: seconds(at) }
}

/** `modified` in 20 to 27 characters, many on a day's midnight, a few in the future or the year 1. */
function stamps(random: Random): { published: string; modified: string } {
  const time = NEWEST - Math.floor(random.next() ** 2 * 900) * DAY
  const inDay = random.int(DAY / 1000) * 1000
  const published = seconds(time - random.int(400) * DAY + inDay)
  const roll = random.next()
  if (roll < 0.35) return { published, modified: seconds(time) }
  if (roll < 0.355) return { published, modified: seconds(Date.UTC(2031, random.int(12), 1) + inDay) }
  if (roll < 0.36) return { published, modified: '0001-01-01T00:00:00Z' }
  const base = seconds(time + inDay).slice(0, -1)
  const digits = random.pick([0, 0, 0, 0, 0, 0, 0, 3, 3, 2, 6, 6])
  if (digits === 0) return { published, modified: random.chance(0.05) ? base + '+00:00' : base + 'Z' }
  const fraction = String(random.int(10 ** digits)).padStart(digits, '0')
  return { published, modified: `${base}.${fraction}Z` }
}

/** A time as OSV writes it, whole seconds, 20 characters. */
export function seconds(time: number): string {
  return new Date(time).toISOString().slice(0, 19) + 'Z'
}

/** Sizes in bytes at fractions of real records, with the shape of real feeds between them. */
const SIZES: readonly (readonly [number, number])[] = [
  [0, 620],
  [0.1, 1100],
  [0.5, 1930],
  [0.9, 3500],
  [0.95, 4300],
  [0.99, 14_614],
  [0.999, 22_000],
  [1, 170_000],
]

function drawSize(random: Random): number {
  const roll = random.next()
  for (let i = 1; i < SIZES.length; i++) {
    const [from, low] = SIZES[i - 1] as readonly [number, number] // i - 1 is in range
    const [to, high] = SIZES[i] as readonly [number, number]
    if (roll <= to) return Math.round(low * (high / low) ** ((roll - from) / (to - from)))
  }
  return 1962
}
