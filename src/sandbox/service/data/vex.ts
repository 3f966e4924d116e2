import { seconds } from '../../feed/generate.ts'
import type { Random } from '../../feed/random.ts'
import { PACKAGES } from '../../feed/vocabulary.ts'
import { purlOf } from './packages.ts'
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

interface Statement {
  cve: string
  product: string
  status: (typeof STATUSES)[number]
}

/** An OpenVEX 0.2.0 document; 3 to 60 statements. */
export function openVex(random: Random): Buffer {
  return jsonBytes({
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `https://vex.example.com/${digestFor(random).slice(7, 39)}`,
    author: 'Prüfstelle – sandbox',
    timestamp: seconds(NEWEST),
    version: 1,
    statements: statements(random).map(({ cve, product, status }) => ({
      vulnerability: { name: cve },
      products: [{ '@id': product }],
      status,
      ...(status === 'not_affected' ? { justification: 'vulnerable_code_not_present' } : {}),
      ...(status === 'affected' ? { action_statement: 'upgrade to the remediated tag' } : {}),
    })),
  })
}

/** A CycloneDX 1.5 document that only contains vulnerabilities. */
export function cycloneDxVex(random: Random): Buffer {
  return jsonBytes({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { timestamp: seconds(NEWEST) },
    vulnerabilities: statements(random).map(({ cve, product, status }) => ({
      id: cve,
      source: { name: 'NVD', url: `https://nvd.nist.gov/vuln/detail/${cve}` },
      analysis: { state: ANALYSES[status], detail: 'geprüft' },
      affects: [{ ref: product }],
    })),
  })
}

function statements(random: Random): Statement[] {
  return Array.from({ length: random.between(3, 60) }, () => {
    const version = `${random.between(1, 9)}.${random.int(30)}.${random.int(10)}`
    return {
      cve: `CVE-${random.between(2016, 2025)}-${1000 + random.int(40_000)}`,
      product: purlOf('debian', random.pick(PACKAGES.debian), version, 'amd64'),
      status: random.pick(STATUSES),
    }
  })
}
