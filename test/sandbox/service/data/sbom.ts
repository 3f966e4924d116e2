import { seconds } from '../../feed/generate.ts'
import type { Random } from '../../feed/random.ts'
import { type Platform, PACKAGES, TARGETS } from '../../feed/vocabulary.ts'
import { purlOf } from './packages.ts'
import { NEWEST } from './tickets.ts'
import { digestFor } from './collection.ts'
import { jsonBytes } from '../replies.ts'

/** A package of an SBOM. */
export interface SbomPart {
  /** The ecosystem as the feed filters name it. */
  feed: Platform['feed']
  name: string
  version: string
  purl: string
  licence: string
  sha256: string
}

const LICENCES = ['MIT', 'Apache-2.0', 'BSD-3-Clause', 'GPL-2.0-or-later', 'Zlib', 'ISC'] as const
const CYCLONEDX_PART = 390
const SPDX_PART = 480
const FIRST_PARTS = 40

/** A CycloneDX SBOM of about `size` bytes. */
export function cycloneDx(random: Random, size: number, specVersion: '1.5' | '1.6'): Buffer {
  const parts = partsOf(random, Math.ceil(size / CYCLONEDX_PART))
  return jsonBytes({
    bomFormat: 'CycloneDX',
    specVersion,
    serialNumber: `urn:uuid:${uuid(random)}`,
    version: 1,
    metadata: {
      timestamp: seconds(NEWEST),
      tools: { components: [{ type: 'application', name: 'sandbox', version: '1.0.0' }] },
      component: { type: 'container', name: 'image', version: digestFor(random).slice(0, 19) },
    },
    components: parts.map(({ name, version, purl, licence, sha256 }, i) => ({
      'bom-ref': `${purl}#${i}`,
      type: 'library',
      name,
      version,
      licenses: [{ license: { id: licence } }],
      hashes: [{ alg: 'SHA-256', content: sha256 }],
      purl,
      properties: [{ name: 'layer', value: `sha256:${sha256.slice(0, 24)}` }],
    })),
  })
}

/** An SPDX 2.3 SBOM of about `size` bytes. */
export function spdx(random: Random, size: number): Buffer {
  const parts = partsOf(random, Math.ceil(size / SPDX_PART))
  return jsonBytes({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: 'image',
    documentNamespace: `https://sbom.example.com/${uuid(random)}`,
    creationInfo: { created: seconds(NEWEST), creators: ['Tool: sandbox-1.0.0'] },
    packages: parts.map(({ name, version, purl, licence, sha256 }, i) => ({
      SPDXID: `SPDXRef-Package-${i}`,
      name,
      versionInfo: version,
      downloadLocation: 'NOASSERTION',
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: licence,
      checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
      externalRefs: [
        { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl },
      ],
    })),
  })
}

/** Returns the first packages of an SBOM of about `size` bytes, in either format. */
export function firstParts(random: Random, size: number): SbomPart[] {
  return partsOf(random, Math.min(FIRST_PARTS, Math.floor(size / SPDX_PART)))
}

function partsOf(random: Random, count: number): SbomPart[] {
  const target = random.pick(TARGETS)
  return Array.from({ length: count }, () => partOf(random, target))
}

function partOf(random: Random, { feed }: Platform): SbomPart {
  const name = random.pick(PACKAGES[feed])
  const version = `${random.between(1, 9)}.${random.int(40)}.${random.int(20)}`
  const sha256 = digestFor(random).slice('sha256:'.length)
  const purl = purlOf(feed, name, version, 'amd64')
  return { feed, name, version, purl, licence: random.pick(LICENCES), sha256 }
}

function uuid(random: Random): string {
  const hex = digestFor(random).slice('sha256:'.length)
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(12, 15)}`,
    `a${hex.slice(15, 18)}`,
  ]
  return [...parts, hex.slice(18, 30)].join('-')
}
