import { existsSync, readFileSync } from 'node:fs'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect } from 'vitest'
import { readInputSbom } from '../../../src/documents/sboms/read.ts'
import { SBOM_BOUNDS } from '../../../src/documents/sboms/sbom.ts'
import { longTest, test } from '../../support/tables.ts'

/** How a file of xz begins. */
const XZ = Buffer.from('fd377a585a000004e6d6b446', 'hex')

const read = (document: unknown) => readInputSbom(Buffer.from(JSON.stringify(document)))

const CYCLONEDX = {
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  metadata: {
    component: { name: 'app', version: '1', purl: 'pkg:oci/app@sha256%3A1', 'bom-ref': 'root' },
  },
  components: [
    {
      'bom-ref': 'a',
      group: '@scope',
      name: 'a',
      version: '1.0.0',
      purl: 'pkg:npm/%40scope/a@1.0.0',
      components: [{ 'bom-ref': 'b', name: 'b', version: '2', purl: 'pkg:npm/b@2' }],
    },
    { type: 'file', name: 'c' },
  ],
}

/** A component of which the SBOM says nothing more. */
const plain = { source: null, kind: null, type: '', licences: '' }

test('a CycloneDX document gives its subject and its components, nested ones included', () => {
  expect(read(CYCLONEDX)).toEqual({
    format: 'CycloneDX 1.6',
    name: 'app',
    version: '1',
    createdAt: '',
    enveloped: false,
    subjects: ['pkg:oci/app@sha256%3A1'],
    components: [
      {
        ...plain,
        ref: 'root',
        name: 'app',
        version: '1',
        purl: 'pkg:oci/app@sha256%3A1',
        kind: 'what the SBOM describes',
      },
      { ...plain, ref: 'a', name: '@scope/a', version: '1.0.0', purl: 'pkg:npm/%40scope/a@1.0.0' },
      { ...plain, ref: 'b', name: 'b', version: '2', purl: 'pkg:npm/b@2' },
      { ...plain, ref: '', name: 'c', version: '', purl: null, kind: 'a file', type: 'file' },
    ],
    systems: [],
  })
})

test('texts longer than any real one are cut, and a purl is then too long to be judged', () => {
  const long = 'x'.repeat(600_000)
  const one = { 'bom-ref': long, name: long, version: long, purl: `pkg:npm/${long}` }
  const sbom = read({ ...CYCLONEDX, metadata: { component: { name: long } }, components: [one] })
  const [found] = sbom.components
  for (const text of [sbom.name, found?.ref, found?.name, found?.version, found?.purl])
    expect(text).toMatch(/^.{2000}…$/)
})

test('an SPDX 2.3 document gives its packages, one with two purls twice', () => {
  const purl = (referenceLocator: string, referenceType = 'purl') => ({
    referenceCategory: 'PACKAGE-MANAGER',
    referenceType,
    referenceLocator,
  })
  const sbom = read({
    spdxVersion: 'SPDX-2.3',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: 'image',
    packages: [
      { SPDXID: 'SPDXRef-1', name: 'image', externalRefs: [purl('pkg:oci/image')] },
      {
        SPDXID: 'SPDXRef-2',
        name: 'a',
        versionInfo: '1',
        externalRefs: [
          purl('pkg:npm/a@1', 'PURL'),
          purl('pkg:npm/b@1', 'http://spdx.org/rdf/references/purl'),
          purl('cpe:2.3:a:a:a:1', 'cpe23Type'),
        ],
      },
      { SPDXID: 'SPDXRef-3', name: 'c', versionInfo: '3' },
    ],
    relationships: [{ relationshipType: 'DESCRIBES', relatedSpdxElement: 'SPDXRef-1' }],
  })
  expect(sbom).toMatchObject({ format: 'SPDX 2.3', name: 'image', subjects: ['pkg:oci/image'] })
  expect(sbom.components.map(({ ref, purl: own }) => [ref, own])).toEqual([
    ['SPDXRef-1', 'pkg:oci/image'],
    ['SPDXRef-2', 'pkg:npm/a@1'],
    ['SPDXRef-2', 'pkg:npm/b@1'],
    ['SPDXRef-3', null],
  ])
})

test('elements of SPDX 3 that are written within others, or of another type with a package URL, are read', () => {
  const packageOf = (name: string) => ({
    type: 'software_Package',
    spdxId: name,
    name,
    software_packageUrl: `pkg:npm/${name}@1`,
  })
  const document = { type: 'SpdxDocument', spdxId: 'd', rootElement: [packageOf('a')], element: [packageOf('b')] }
  const related = {
    type: 'Relationship',
    relationshipType: 'contains',
    from: 'a',
    to: [{ ...packageOf('c'), type: 'spdx:software_Package' }],
  }
  const sbom = read({ '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld', '@graph': [document, related] })
  expect(sbom.components.map(({ name, kind }) => [name, kind])).toEqual([
    ['a', 'what the SBOM describes'],
    ['b', null],
    ['c', null],
  ])
  expect(sbom.subjects).toEqual(['pkg:npm/a@1'])
})

test('an SBOM of which another document describes a part is incomplete', () => {
  const spdx2 = (relationshipType: string, spdxElementId: string, relatedSpdxElement: string) =>
    read({ spdxVersion: 'SPDX-2.3', relationships: [{ relationshipType, spdxElementId, relatedSpdxElement }] })
  const spdx3 = (relationshipType: string, to: string) => {
    const document = { type: 'SpdxDocument', import: [{ type: 'ExternalMap', externalSpdxId: 'urn:other' }] }
    const related = { type: 'Relationship', relationshipType, from: 'urn:a', to: [to] }
    return read({ '@graph': [document, related] })
  }
  const cycloneDx = (component: object, more = {}) =>
    read({ ...CYCLONEDX, components: [{ type: 'container', name: 'inner', ...component }], ...more })
  const externalReferences = [{ type: 'bom', url: 'urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/1' }]
  const whole = [
    spdx2('CONTAINS', 'SPDXRef-a', 'SPDXRef-b'),
    spdx2('GENERATED_FROM', 'SPDXRef-a', 'DocumentRef-o:SPDXRef-b'),
    spdx2('CONTAINED_BY', 'SPDXRef-a', 'DocumentRef-o:SPDXRef-b'),
    spdx3('contains', 'urn:b'),
    spdx3('generates', 'urn:other'),
    cycloneDx({}),
    cycloneDx({ externalReferences, components: [{ name: 'a' }] }),
    cycloneDx({ externalReferences: [{ type: 'bom', url: 'https://a.example/bom.json' }] }),
    cycloneDx({}, { metadata: { component: { purl: 'pkg:oci/a@1', externalReferences } } }),
  ]
  const incomplete = [
    spdx2('CONTAINS', 'SPDXRef-a', 'DocumentRef-o:SPDXRef-b'),
    spdx2('DESCRIBES', 'SPDXRef-DOCUMENT', 'DocumentRef-o:SPDXRef-b'),
    spdx2('CONTAINED_BY', 'DocumentRef-o:SPDXRef-b', 'SPDXRef-a'),
    spdx2('DEPENDENCY_OF', 'DocumentRef-o:SPDXRef-b', 'SPDXRef-a'),
    spdx3('contains', 'urn:other'),
    cycloneDx({ externalReferences }),
  ]
  for (const one of whole) expect(one).not.toHaveProperty('incomplete')
  for (const one of incomplete) expect(one.incomplete).toBe('another document describes a part')
})

test('an SPDX 3 graph gives its packages, with purls of each form', () => {
  const identifier = { externalIdentifierType: 'packageUrl', identifier: 'pkg:npm/b@2' }
  const sbom = read({
    '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
    '@graph': [
      { type: 'CreationInfo', '@id': '_:info', specVersion: '3.0.1' },
      { type: 'SpdxDocument', spdxId: 'urn:doc', name: 'doc', rootElement: ['urn:sbom'] },
      { type: 'software_Sbom', spdxId: 'urn:sbom', rootElement: ['urn:a'] },
      {
        type: 'software_Package',
        spdxId: 'urn:a',
        name: 'a',
        software_packageVersion: '1',
        software_packageUrl: 'pkg:npm/a@1',
      },
      { type: 'software_Package', spdxId: 'urn:b', name: 'b', externalIdentifier: [identifier] },
      { type: ['software_Artifact', 'software_Package'], spdxId: 'urn:d', name: 'd' },
      { type: 'software_File', spdxId: 'urn:f', name: 'f' },
      { type: 'ai_AIPackage', spdxId: 'urn:m', software_packageUrl: 'pkg:huggingface/m@1' },
      { type: 'dataset_DatasetPackage', spdxId: 'urn:t', name: 't' },
      { type: 'software_Package', spdxId: 'urn:c', name: 'c', software_packageVersion: '3' },
    ],
  })
  expect(sbom).toEqual({
    format: 'SPDX 3.0.1',
    name: 'doc',
    version: '',
    createdAt: '',
    subjects: ['pkg:npm/a@1'],
    enveloped: false,
    components: [
      {
        ...plain,
        ref: 'urn:a',
        name: 'a',
        version: '1',
        purl: 'pkg:npm/a@1',
        kind: 'what the SBOM describes',
      },
      { ...plain, ref: 'urn:b', name: 'b', version: '', purl: 'pkg:npm/b@2' },
      { ...plain, ref: 'urn:d', name: 'd', version: '', purl: null },
      { ...plain, ref: 'urn:m', name: '', version: '', purl: 'pkg:huggingface/m@1' },
      { ...plain, ref: 'urn:t', name: 't', version: '', purl: null },
      { ...plain, ref: 'urn:c', name: 'c', version: '3', purl: null },
    ],
    systems: [],
  })
})

test('a package that an SPDX document describes beside others is a package, and one alone is what it describes', () => {
  const kinds = (sbom: object) => read(sbom).components.map(({ kind }) => kind)
  const packages = ['A', 'B', 'C'].map((id) => ({ SPDXID: id, name: id, versionInfo: '1' }))
  const spdx2 = (...documentDescribes: string[]) => ({ spdxVersion: 'SPDX-2.3', documentDescribes, packages })
  const subject = 'what the SBOM describes'
  expect(kinds(spdx2('A', 'A', 'File'))).toEqual([subject, null, null])
  expect(kinds(spdx2('A', 'C'))).toEqual([null, null, null])
  const relationships = ['A', 'B'].map((id) => ({ relationshipType: 'DESCRIBES', relatedSpdxElement: id }))
  expect(kinds({ ...spdx2(), relationships })).toEqual([null, null, null])
  const reversed = { spdxElementId: 'A', relationshipType: 'DESCRIBED_BY', relatedSpdxElement: 'SPDXRef-DOCUMENT' }
  expect(kinds({ ...spdx2(), relationships: [reversed] })).toEqual([subject, null, null])
  const same = [...packages, { SPDXID: 'A', name: 'D', versionInfo: '1' }]
  expect(kinds({ ...spdx2('A'), packages: same })).toEqual([null, null, null, null])
  const spdx3 = (...rootElement: string[]) => ({
    '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
    '@graph': [
      { type: 'SpdxDocument', spdxId: 'urn:doc', rootElement },
      ...['A', 'B'].map((id) => ({ type: 'software_Package', spdxId: id, name: id })),
    ],
  })
  expect(kinds(spdx3('A'))).toEqual([subject, null])
  expect(kinds(spdx3('A', 'B'))).toEqual([null, null])
})

test('an SBOM in a statement, an envelope, a bundle or a list is that SBOM', () => {
  const bare = read(CYCLONEDX)
  const statement = { _type: 'https://in-toto.io/Statement/v1', predicate: CYCLONEDX }
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64')
  const envelope = { payloadType: 'application/vnd.in-toto+json', payload, signatures: [] }
  const cosign = { predicate: { Data: JSON.stringify(CYCLONEDX), Timestamp: '' } }
  const inside = { ...bare, enveloped: true }
  for (const document of [statement, envelope, { dsseEnvelope: envelope }, cosign, [envelope], [{}, statement]])
    expect(read(document)).toEqual(inside)
  const other = { predicateType: 'https://slsa.dev/provenance/v1', predicate: {} }
  const lines = (...all: object[]) =>
    readInputSbom(Buffer.from(`${all.map((one) => JSON.stringify(one)).join('\n')}\n\n`))
  expect(lines(envelope)).toEqual(inside)
  expect(lines(other, envelope)).toEqual(inside)
  expect(() => lines(envelope, other, CYCLONEDX)).toThrow(/it has 2 SBOMs: give them one at a time/)
  expect(() => lines(other, other)).toThrow(/a statement of type https:\/\/slsa\.dev/)
  expect(() => readInputSbom(Buffer.from(`${JSON.stringify(envelope)}\n{"a`))).toThrow(/not valid JSON/)
})

test('an SBOM that names no digest is of the one image that its attestation is about', () => {
  const [one, other] = ['1', '2'].map((digit) => digit.repeat(64))
  const subjectsOf = (subject: unknown, digests: unknown[]) => {
    const predicate = { bomFormat: 'CycloneDX', specVersion: '1.6', metadata: { component: subject } }
    const about = digests.map((sha256) => ({ name: 'i', digest: { sha256 } }))
    return read({ _type: 'https://in-toto.io/Statement/v1', subject: about, predicate }).subjects
  }
  const digest = `digest=sha256%3A${one}`
  expect(subjectsOf(undefined, [one])).toEqual([`pkg:oci/image?${digest}`])
  expect(subjectsOf({ purl: 'pkg:oci/app@1?arch=amd64' }, [one])).toEqual([`pkg:oci/app@1?arch=amd64&${digest}`])
  expect(subjectsOf({ purl: `pkg:oci/app@sha256:${other}` }, [one])).toEqual([`pkg:oci/app@sha256:${other}`])
  expect(subjectsOf({ purl: 'pkg:npm/app@1' }, [one])).toEqual(['pkg:npm/app@1'])
  expect([subjectsOf(undefined, [one, other]), subjectsOf(undefined, ['x'])]).toEqual([[], []])
})

test('a document beside an SBOM that may list packages too is refused, and not left out', () => {
  const syft = { artifacts: [{ name: 'a', version: '1' }], schema: { version: '16.0.0' } }
  const stated = (predicateType: string, predicate: object) => {
    const payload = Buffer.from(JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', predicateType, predicate }))
    return { payloadType: 'application/vnd.in-toto+json', payload: payload.toString('base64') }
  }
  const refused: [object, RegExp][] = [
    [syft, /: number 2 in its list beside an SBOM cannot be read: it is in syft's own format: write it as CycloneDX/],
    [stated('https://syft.dev/bom', syft), /syft's own format/],
    [stated('https://spdx.dev/Document', { spdx: 1 }), /a statement of type https:\/\/spdx\.dev\/Document/],
    [[CYCLONEDX], /number 2 .*it is none/],
    [{ components: [] }, /number 2 .*it is none/],
  ]
  for (const [other, why] of refused) expect(() => read([CYCLONEDX, other])).toThrow(why)
  const others = [stated('https://slsa.dev/provenance/v1', {}), { '@context': 'https://openvex.dev/ns/v0.2.0' }, {}]
  expect(read([CYCLONEDX, ...others])).toEqual(read(CYCLONEDX))
})

test('an SBOM of GitHub or Docker is read from the member that holds it', () => {
  const spdx = { spdxVersion: 'SPDX-2.3', name: 'app', packages: [{ SPDXID: 'a', name: 'a', versionInfo: '1' }] }
  for (const name of ['sbom', 'SPDX']) {
    const found = read({ [name]: spdx })
    expect(found).toEqual(read(spdx))
    expect(found.enveloped).toBe(false)
  }
  expect(() => read({ SPDX: spdx, AdditionalSPDXs: [spdx, spdx] })).toThrow('it has 3 SBOMs')
  expect(() => read({ sbom: { packages: [] } })).toThrow('it is none')
})

longTest('what is no SBOM is refused with what is accepted', () => {
  const nested = (depth: number): object => (depth === 0 ? {} : { components: [nested(depth - 1)] })
  const refused: [unknown, RegExp][] = [
    [{}, /accepted are CycloneDX 1\.2 to 1\.7, SPDX 2\.1 to 2\.3 or SPDX 3\.0, in JSON$/],
    [{ artifacts: [] }, /syft's own format/],
    [{ predicateType: 'https://slsa.dev/provenance/v1', predicate: {} }, /CycloneDX 1\.2/],
    [{ bomFormat: 'CycloneDX', specVersion: '2.0' }, /CycloneDX 2\.0 is not known here/],
    [{ bomFormat: 'CycloneDX' }, /without specVersion/],
    [{ spdxVersion: 'SPDX-1.2' }, /SPDX-1\.2 is not known here/],
    [{ ...CYCLONEDX, components: { 0: {} } }, /its components are no list/],
    [{ ...CYCLONEDX, components: [{}, 'pkg:npm/a@1'] }, /number 2 in a list of its components is no object/],
    [{ ...CYCLONEDX, components: [{ components: [[{}]] }] }, /number 1 .* is no object/],
    [{ ...CYCLONEDX, metadata: { component: [{}] } }, /metadata\.component is no object/],
    [{ spdxVersion: 'SPDX-2.3', packages: {} }, /its packages are no list/],
    [{ spdxVersion: 'SPDX-2.3', packages: [{ externalRefs: ['pkg:npm/a@1'] }] }, /externalRefs is no object/],
    [{ '@graph': ['x'] }, /@graph elements is no object/],
    [{ '@graph': [{ specVersion: '3.0\n::error::x' }] }, /SPDX 3\.0\\u000a::error::x is not known/],
    [{ ...CYCLONEDX, ...nested(SBOM_BOUNDS.depth + 1) }, /nested deeper than 64 levels/],
    [{ ...CYCLONEDX, components: Array(SBOM_BOUNDS.components + 1).fill({}) }, /more than 100000/],
  ]
  for (const [document, why] of refused) expect(() => read(document)).toThrow(why)
  expect(() => readInputSbom(Buffer.from('<bom/>'))).toThrow(/it is XML: write it as CycloneDX/)
  expect(() => readInputSbom(Buffer.from('{"a":'))).toThrow(/not valid JSON/)
  expect(() => readInputSbom(Buffer.from(' \n'))).toThrow(/it is empty/)
  for (const packed of [gzipSync('{}'), zstdCompressSync('{}'), XZ])
    expect(() => readInputSbom(packed)).toThrow(/it is compressed: unpack it first$/)
  expect(() => readInputSbom(Buffer.from('504b030414000000', 'hex'))).toThrow(/it is a ZIP archive: unpack it first$/)
  for (const text of ['\ufeff{}', '{}'])
    expect(() => readInputSbom(Buffer.from(text, 'utf16le'))).toThrow(/it is not in UTF-8/)
  expect(() => readInputSbom(Buffer.from('{}\n'.repeat(1_001)))).toThrow(/more than 1000 lines/)
  expect(() => readInputSbom(Buffer.from('{}\n'.repeat(1_000)))).toThrow(/it is none/)
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  const inside = JSON.stringify({ payload: Buffer.from(deep).toString('base64') })
  for (const costly of [deep, '['.repeat(1_000_000), inside])
    expect(() => readInputSbom(Buffer.from(costly))).toThrow(/nested more than 200 deep/)
  let enveloped: object = CYCLONEDX
  for (let level = 0; level < 6; level++) enveloped = { predicate: enveloped }
  expect(() => read(enveloped)).toThrow(/it is none/)
})

longTest('a package described by an SPDX document may have many package URLs', () => {
  const externalRefs = Array.from({ length: 150_000 }, (_, at) => ({
    referenceType: 'purl',
    referenceLocator: `pkg:npm/a@${at}`,
  }))
  const packages = [{ SPDXID: 'P', externalRefs }]
  const document = { spdxVersion: 'SPDX-2.3', documentDescribes: ['P'], packages }
  expect(() => read(document)).toThrow(/more than 100000 components/)
})

const REAL = new URL('../../../../shared/data/sboms/', import.meta.url)

test.skipIf(!existsSync(REAL))('real SBOMs are read with all their components', () => {
  const counts = {
    'alpine-image.cdx.att.json': 15,
    'centos-7-image.cdx.intoto.jsonl': 3,
    'centos-7-image.spdx.json': 4,
    'distroless-fat-image.spdx.json': 7,
    'dropwizard-1.3.15.cdx.json': 168,
    'dtrack-apiserver-4.5.0.cdx.json': 133,
    'laravel-7.12.0.cdx-1.4.json': 63,
    'proton-bridge-1.8.0.cdx.json': 202,
  }
  for (const [file, count] of Object.entries(counts))
    expect([file, readInputSbom(readFileSync(new URL(file, REAL))).components.length]).toEqual([file, count])
})
