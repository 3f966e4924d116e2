/** Documents of each format, whole and odd, by their names. Made for this test. */
export type Variants = Readonly<Record<string, Buffer>>

const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const lines = (...values: readonly unknown[]): Buffer =>
  Buffer.from(values.map((one) => JSON.stringify(one)).join('\n'))

const IMAGE = 'ab'.repeat(32)

/** Wraps content in an in-toto statement. */
function statement(predicateType: string, predicate: unknown): object {
  const subject = [{ name: 'registry.example.com/app', digest: { sha256: IMAGE } }]
  return { _type: 'https://in-toto.io/Statement/v1', subject, predicateType, predicate }
}

/** Wraps content in a DSSE envelope. */
function dsse(content: object): object {
  const payload = Buffer.from(JSON.stringify(content)).toString('base64')
  return { payloadType: 'application/vnd.in-toto+json', payload, signatures: [{ sig: 'AA==', keyid: '' }] }
}

/** Wraps content in a Sigstore bundle. */
function bundle(content: object): object {
  const mediaType = 'application/vnd.dev.sigstore.bundle.v0.3+json'
  return { mediaType, verificationMaterial: { publicKey: { hint: '' } }, dsseEnvelope: dsse(content) }
}

const CYCLONEDX = {
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  serialNumber: 'urn:uuid:3E671687-395B-41F5-A30F-A58921A69B79',
  version: 2,
  metadata: {
    timestamp: '2026-01-02T03:04:05Z',
    component: {
      type: 'container',
      name: 'registry.example.com/app',
      version: '1.2',
      purl: `pkg:oci/app@sha256%3A${IMAGE}`,
      'bom-ref': 'root',
    },
  },
  components: [
    { type: 'operating-system', name: 'debian', version: '12' },
    {
      type: 'library',
      'bom-ref': 'core',
      group: 'org.a',
      name: 'core',
      version: '2',
      purl: 'pkg:maven/org.a/core@2',
      licenses: [{ license: { id: 'MIT' } }, { license: { name: 'Own licence' } }, { expression: 'A OR B' }],
      components: [{ type: 'library', name: 'inner', version: '1', purl: 'pkg:npm/inner@1' }],
    },
    {
      type: 'library',
      name: 'openssl',
      version: '3.0.11-1',
      purl: 'pkg:deb/debian/libssl3@3.0.11-1',
      properties: [{ name: 'aquasecurity:trivy:SrcName', value: 'openssl' }],
    },
    { type: 'file', name: '/etc/<motd>' },
  ],
}

const SPDX2 = {
  spdxVersion: 'SPDX-2.3',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: 'app',
  creationInfo: { created: '2026-01-02T03:04:05Z' },
  documentDescribes: ['SPDXRef-root'],
  packages: [
    {
      SPDXID: 'SPDXRef-root',
      name: 'app',
      versionInfo: '1.2',
      primaryPackagePurpose: 'CONTAINER',
      externalRefs: [{ referenceType: 'purl', referenceLocator: `pkg:oci/app@sha256%3A${IMAGE}` }],
    },
    {
      SPDXID: 'SPDXRef-tar',
      name: 'tar',
      versionInfo: '1.34',
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: 'GPL-3.0-or-later',
      sourceInfo: 'built package from: tar 1.34',
      externalRefs: [
        { referenceType: 'cpe23Type', referenceLocator: 'cpe:2.3:a:gnu:tar:1.34' },
        { referenceType: 'purl', referenceLocator: 'pkg:deb/debian/tar@1.34' },
        { referenceType: 'http://spdx.org/rdf/references/purl', referenceLocator: 'pkg:generic/tar@1.34' },
      ],
    },
    { SPDXID: 'SPDXRef-os', name: 'debian', versionInfo: '12', primaryPackagePurpose: 'OPERATING-SYSTEM' },
  ],
}

const SPDX3 = {
  '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
  '@graph': [
    { type: 'CreationInfo', specVersion: '3.0.1', created: '2026-01-02T03:04:05Z' },
    { type: 'SpdxDocument', spdxId: 'doc', name: 'app', rootElement: ['root'] },
    { type: 'software_Package', spdxId: 'root', name: 'app', software_packageVersion: '1.2' },
    {
      type: 'software_Package',
      spdxId: 'zlib',
      name: 'zlib',
      software_packageVersion: '1.3',
      software_primaryPurpose: 'library',
      software_packageUrl: 'pkg:generic/zlib@1.3',
    },
    { type: 'ai_AIPackage', spdxId: 'model', name: 'model', software_packageVersion: '7' },
  ],
}

const MANY = Array.from({ length: 20_060 }, (_, at) => ({ type: 'library', name: `n${at}`, version: `${at}` }))

function nested(depth: number): object {
  let one: object = { name: 'deepest', version: '1', purl: 'pkg:npm/deepest@1' }
  for (let level = 0; level < depth; level++) one = { name: `level${level}`, components: [one] }
  return { bomFormat: 'CycloneDX', specVersion: '1.6', components: [one] }
}

/** SBOMs. */
export const SBOMS: Variants = {
  cyclonedx: bytes(CYCLONEDX),
  'cyclonedx-in-a-statement': bytes(statement('https://cyclonedx.org/bom', CYCLONEDX)),
  'cyclonedx-in-an-envelope': bytes(dsse(statement('https://cyclonedx.org/bom', CYCLONEDX))),
  'cyclonedx-in-a-bundle': bytes(bundle(statement('https://cyclonedx.org/bom', { Data: CYCLONEDX }))),
  'cyclonedx-as-a-text-in-a-bundle': bytes(bundle(statement('https://spdx.dev/Document', JSON.stringify(CYCLONEDX)))),
  'cyclonedx-in-a-list': bytes([bundle(statement('https://cyclonedx.org/bom', CYCLONEDX))]),
  'cyclonedx-in-lines': lines(
    dsse(statement('https://slsa.dev/provenance/v1', {})),
    dsse(statement('https://cyclonedx.org/bom', CYCLONEDX)),
  ),
  'cyclonedx-twice-in-lines': lines(CYCLONEDX, SPDX2),
  'cyclonedx-of-an-unknown-version': bytes({ ...CYCLONEDX, specVersion: '2.0' }),
  'cyclonedx-without-a-version': bytes({ ...CYCLONEDX, specVersion: undefined }),
  'cyclonedx-with-components-that-are-no-list': bytes({ ...CYCLONEDX, components: { a: 1 } }),
  'cyclonedx-with-a-component-that-is-no-object': bytes({ ...CYCLONEDX, components: [{ name: 'a' }, 7] }),
  'cyclonedx-with-names-that-are-no-text': bytes({
    ...CYCLONEDX,
    components: [{ name: { a: 1 }, version: 7, purl: 'pkg:npm/a@7', type: ['x'], licenses: [{ license: 7 }, 'MIT'] }],
  }),
  'cyclonedx-without-components': bytes({ bomFormat: 'CycloneDX', specVersion: '1.5' }),
  'cyclonedx-with-many-components': bytes({ ...CYCLONEDX, components: MANY }),
  'cyclonedx-nested-12-levels': bytes(nested(12)),
  'cyclonedx-nested-70-levels': bytes(nested(70)),
  'spdx-2': bytes(SPDX2),
  'spdx-2-in-a-bundle': bytes(bundle(statement('https://spdx.dev/Document', SPDX2))),
  'spdx-2-of-an-unknown-version': bytes({ ...SPDX2, spdxVersion: 'SPDX-9' }),
  'spdx-2-with-packages-that-are-no-list': bytes({ ...SPDX2, packages: 'x' }),
  'spdx-3': bytes(SPDX3),
  'spdx-3-in-an-envelope': bytes(dsse(statement('https://spdx.dev/Document', SPDX3))),
  'an-object-around-an-sbom': bytes({ sbom: CYCLONEDX }),
  'syft-s-own-format': bytes({ artifacts: [], schema: {} }),
  'an-openvex-document': bytes({ '@context': 'https://openvex.dev/ns/v0.2.0', statements: [] }),
  'an-empty-object': bytes({}),
  'a-truncated-text': bytes(CYCLONEDX).subarray(0, 300),
  'an-empty-text': Buffer.from(' '),
  'a-text-with-a-mark': Buffer.concat([Buffer.from('\ufeff'), bytes(CYCLONEDX)]),
}

const OPENVEX = {
  '@context': 'https://openvex.dev/ns/v0.2.0',
  '@id': 'https://example.com/vex',
  author: 'Example <security>',
  timestamp: '2026-01-02T03:04:05Z',
  last_updated: '2026-02-03T00:00:00Z',
  statements: [
    {
      vulnerability: { name: 'CVE-2026-1', aliases: ['GHSA-1'] },
      products: Array.from({ length: 7 }, (_, at) => ({ '@id': `pkg:npm/p${at}@1` })),
      status: 'not_affected',
      justification: 'vulnerable_code_not_present',
      impact_statement: 'not built in',
    },
    {
      vulnerability: { '@id': 'https://nvd.nist.gov/vuln/detail/CVE-2026-2' },
      products: [{ identifiers: { purl: 'pkg:npm/b@2' }, subcomponents: [{ '@id': 'pkg:npm/c@3' }] }],
      status: 'affected',
      action_statement: 'upgrade',
      timestamp: '2026-01-05T00:00:00Z',
    },
    { vulnerability: 'CVE-2026-3', products: ['pkg:npm/old@1'], status: 'under_investigation' },
    { vulnerability: { name: 'CVE-2026-4' }, products: [{ '@id': 'x' }], status: 'a word of nobody', justification: 7 },
    7,
  ],
}

const ANALYSES = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  metadata: { timestamp: '2026-01-02T03:04:05Z', supplier: { name: 'Example' } },
  components: [{ 'bom-ref': 'a', name: 'a', version: '1', purl: 'pkg:npm/a@1' }],
  vulnerabilities: [
    { id: 'CVE-2026-1', analysis: { state: 'exploitable', detail: 'update' }, affects: [{ ref: 'a' }] },
    {
      id: 'CVE-2026-2',
      references: [{ id: 'GHSA-2' }],
      analysis: { state: 'false_positive', justification: 'code_not_present' },
      affects: [{ ref: 'pkg:npm/b@2' }, { ref: 'urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/1#core' }],
    },
    { id: 'CVE-2026-3', affects: [{ ref: 'a' }] },
    { source: { url: 'https://example.com/CVE-2026-4' }, analysis: { state: 'in_triage' }, affects: 7 },
    'x',
  ],
}

const CSAF = {
  document: {
    csaf_version: '2.0',
    publisher: { name: 'Example' },
    tracking: { current_release_date: '2026-01-02T03:04:05Z' },
  },
  product_tree: {
    full_product_names: [
      { product_id: 'os', name: 'Example OS 9', product_identification_helper: { cpe: 'cpe:/o:e:os:9' } },
    ],
    branches: [
      {
        branches: [
          { product: { product_id: 'tar', name: 'tar 1', product_identification_helper: { purl: 'pkg:rpm/e/tar@1' } } },
          { product: { product_id: 'zip', product_identification_helper: { purl: 'pkg:rpm/e/zip@2' } } },
        ],
      },
    ],
    relationships: [
      { product_reference: 'tar', relates_to_product_reference: 'os', full_product_name: { product_id: 'os:tar' } },
    ],
    product_groups: [{ group_id: 'all', product_ids: ['zip', 'gone'] }],
  },
  vulnerabilities: [
    {
      cve: 'CVE-2026-1',
      product_status: { known_not_affected: ['os:tar'], known_affected: ['zip'], recommended: ['zip'] },
      flags: [{ label: 'component_not_present', product_ids: ['os:tar'] }],
      remediations: [{ category: 'vendor_fix', details: 'update', group_ids: ['all'] }],
    },
    { title: 'without an id', product_status: { fixed: ['tar'], no_such_group: ['tar'] } },
    7,
  ],
}

/** VEX documents. */
export const VEX: Variants = {
  openvex: bytes(OPENVEX),
  'openvex-in-an-envelope': bytes(dsse(statement('https://openvex.dev/ns', OPENVEX))),
  'openvex-in-a-bundle': bytes(bundle(statement('https://openvex.dev/ns', OPENVEX))),
  'openvex-in-a-list': bytes([dsse(statement('https://openvex.dev/ns', OPENVEX))]),
  'openvex-in-lines': lines(dsse(statement('https://slsa.dev/provenance/v1', {})), OPENVEX),
  'openvex-without-a-context': bytes({ ...OPENVEX, '@context': undefined }),
  'openvex-with-statements-that-are-no-list': bytes({ ...OPENVEX, statements: 7 }),
  cyclonedx: bytes(ANALYSES),
  'cyclonedx-in-a-statement': bytes(statement('https://cyclonedx.org/vex', ANALYSES)),
  'cyclonedx-without-vulnerabilities': bytes({ ...ANALYSES, vulnerabilities: undefined }),
  csaf: bytes(CSAF),
  'csaf-in-an-envelope': bytes(dsse(statement('csaf', CSAF))),
  'csaf-as-an-item-of-a-scanner-database': bytes({ schema: 'csaf-vex/2.0', identifier: 'x', item: CSAF }),
  'csaf-without-a-version': bytes({ ...CSAF, document: { publisher: { name: 'Example' } } }),
  'an-empty-object': bytes({}),
  'a-truncated-text': bytes(CSAF).subarray(0, 300),
  'an-empty-text': Buffer.from(' '),
}

const SLSA02 = {
  builder: { id: 'https://builder.example.com' },
  buildType: 'https://example.com/build',
  invocation: { configSource: { uri: 'git+https://example.com/a', digest: { sha1: 'ab' } } },
  metadata: { buildStartedOn: '2026-01-02T03:04:05Z', buildFinishedOn: '2026-01-02T03:14:05Z', buildInvocationId: '7' },
  materials: [{ uri: 'pkg:oci/base', digest: { sha256: 'cd' } }, { digest: { sha256: 'ef' } }, 7, {}],
}

const SLSA1 = {
  buildDefinition: {
    buildType: 'https://example.com/build/v1',
    externalParameters: { workflow: { repository: 'https://example.com/r', ref: 'main', path: 'ci.yml' } },
    resolvedDependencies: [{ uri: 'git+https://example.com/r', digest: { gitCommit: 'ab' } }],
  },
  runDetails: { builder: { id: 'https://c' }, metadata: { invocationId: 'i', startedOn: '2026-01-02T03:04:05Z' } },
}

/** Documents of provenance. */
export const PROVENANCES: Variants = {
  'slsa-0.1': bytes(
    statement('https://slsa.dev/provenance/v0.1', {
      builder: { id: 'b' },
      recipe: { type: 'make', definedInMaterial: 1 },
      materials: [{ uri: 'one' }, { uri: 'two' }],
    }),
  ),
  'slsa-0.2': bytes(dsse(statement('https://slsa.dev/provenance/v0.2', SLSA02))),
  'slsa-1': bytes(bundle(statement('https://slsa.dev/provenance/v1', SLSA1))),
  'several-in-lines': lines(
    dsse(statement('https://slsa.dev/provenance/v1', SLSA1)),
    dsse(statement('https://cyclonedx.org/bom', CYCLONEDX)),
  ),
  'several-in-a-list': bytes([dsse(statement('https://slsa.dev/provenance/v1', SLSA1)), 7, {}]),
  'attestations-of-a-registry': bytes({
    attestations: [{ predicateType: 'x', bundle: bundle(statement('https://slsa.dev/provenance/v1', SLSA1)) }],
  }),
  'summary-of-a-build-service': bytes({
    provenance_summary: {
      provenance: [{ build: { inTotoSlsaProvenanceV1: { ...statement('v1', undefined), slsaProvenance: SLSA02 } } }],
    },
  }),
  'a-statement-without-a-predicate': bytes({ _type: 'https://in-toto.io/Statement/v0.1', subject: 7 }),
  'an-envelope-of-no-statement': bytes(dsse({ a: 1 })),
  'an-envelope-of-no-json': bytes({ payloadType: 'x', payload: '%%' }),
  'a-public-key': Buffer.from('-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n'),
  'an-empty-object': bytes({}),
}

const [, core, , motd] = CYCLONEDX.components
const [app, tar] = SPDX2.packages

/** Pairs of SBOMs of which the second replaces the first. */
export const REPLACED: Readonly<Record<string, readonly [before: Buffer, after: Buffer]>> = {
  cyclonedx: [bytes(CYCLONEDX), bytes({ ...CYCLONEDX, components: [core, motd] })],
  'spdx-2': [bytes(SPDX2), bytes({ ...SPDX2, packages: [app, { ...tar, externalRefs: [] }] })],
  'cyclonedx-by-spdx-2': [bytes(CYCLONEDX), bytes(SPDX2)],
}
