import { seconds } from '../../feed/generate.ts'
import type { Random } from '../../feed/random.ts'
import { type Topic, topicOf } from '../../feed/topic.ts'
import { MALFORMED_IDS } from '../../feed/generate.ts'
import { PACKAGES } from '../../feed/vocabulary.ts'
import { purlOf } from './packages.ts'
import type { SbomPart } from './sbom.ts'
import { NEWEST } from './tickets.ts'
import { digestFor } from './collection.ts'
import { jsonBytes } from '../replies.ts'

const STATUSES = ['fixed', 'not_affected', 'under_investigation', 'affected'] as const
const ANALYSES = {
  fixed: 'resolved',
  not_affected: 'not_affected',
  under_investigation: 'in_triage',
  affected: 'exploitable',
} as const

/** What a statement can be about: a vulnerability in a package. */
export interface VexSubject {
  vulnerability: string
  product: string
}

interface Statement extends VexSubject {
  status: (typeof STATUSES)[number]
}

/** An OpenVEX 0.2.0 document: statements about some of what is known, and 3 to 60 others. */
export function openVex(random: Random, known: readonly VexSubject[]): Buffer {
  return jsonBytes({
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `https://vex.example.com/${digestFor(random).slice(7, 39)}`,
    author: 'Prüfstelle – sandbox',
    timestamp: seconds(NEWEST),
    version: 1,
    statements: statements(random, known).map(({ vulnerability, product, status }) => ({
      vulnerability: { name: vulnerability },
      products: [{ '@id': product }],
      status,
      ...(status === 'not_affected' ? { justification: 'vulnerable_code_not_present' } : {}),
      ...(status === 'affected' ? { action_statement: 'upgrade to the remediated tag' } : {}),
    })),
  })
}

/** A CycloneDX 1.5 document that only contains vulnerabilities: the same statements. */
export function cycloneDxVex(random: Random, known: readonly VexSubject[]): Buffer {
  return jsonBytes({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { timestamp: seconds(NEWEST) },
    vulnerabilities: statements(random, known).map(({ vulnerability, product, status }) => ({
      id: vulnerability,
      source: { name: 'NVD', url: `https://nvd.nist.gov/vuln/detail/${vulnerability}` },
      analysis: { state: ANALYSES[status], detail: 'geprüft' },
      affects: [{ ref: product }],
    })),
  })
}

/** Statements about a part of what is known, and about other packages. */
function statements(random: Random, known: readonly VexSubject[]): Statement[] {
  const others = Array.from({ length: random.between(3, 60) }, () => {
    const version = `${random.between(1, 9)}.${random.int(30)}.${random.int(10)}`
    return {
      vulnerability: `CVE-${random.between(2016, 2025)}-${1000 + random.int(40_000)}`,
      product: purlOf('debian', random.pick(PACKAGES.debian), version, 'amd64'),
      status: random.pick(STATUSES),
    }
  })
  const own = known
    .filter(() => random.chance(STATED))
    .map((one) => ({ ...one, status: random.pick(STATUSES) }))
  return [...own.slice(0, MOST_STATED), ...others]
}

/** How often a statement is made about a known vulnerability of a part, and how many of these there are at most. */
const STATED = 0.4
const MOST_STATED = 30
/** How many of the feed's first records statements are about. */
const RECORDS = 1_000

/**
 * Creates the function that lists, for each part of an SBOM, the vulnerabilities of the feed's records about its package, in
 * whatever versions. Without generated records there are none. What it needs is made at the first use.
 */
export function createKnown({ seed, records }: { seed: number; records: number }) {
  let topics: Map<string, Topic[]> | undefined
  const nameIn = (feed: string, name: string): string => `${feed} ${name}`
  const readTopics = (): Map<string, Topic[]> => {
    const first = MALFORMED_IDS.length // of those before it, the vulnerability is another
    const count = Math.max(0, Math.min(records, RECORDS) - first)
    const all = Array.from({ length: count }, (_, n) => topicOf(seed, first + n))
    const listed = all.filter(({ isUpstreamListed }) => isUpstreamListed)
    return Map.groupBy(listed, ({ target, name }) => nameIn(target.feed, name))
  }
  return (parts: readonly SbomPart[]): VexSubject[] => {
    topics ??= readTopics()
    const found = parts.flatMap(({ feed, name, purl }) =>
      (topics?.get(nameIn(feed, name)) ?? []).map(({ vulnerability }) => ({ vulnerability, product: purl })),
    )
    const distinct = new Map(found.map((one) => [JSON.stringify(one), one]))
    return [...distinct.values()]
  }
}
