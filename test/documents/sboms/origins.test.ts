import { expect, test } from 'vitest'
import { readInputSbom } from '../../../src/documents/sboms/read.ts'

const read = (document: unknown) => readInputSbom(Buffer.from(JSON.stringify(document)))

const cyclonedx = (components: object[], specVersion = '1.6') =>
  read({ bomFormat: 'CycloneDX', specVersion, components })

const property = ([name, value]: readonly string[]) => ({ name, value })

const sourceBy = (...properties: (readonly string[])[]) =>
  cyclonedx([{ name: 'libssl3', properties: properties.map(property) }]).components[0]?.source

const TRIVY = 'aquasecurity:trivy:'
const SYFT = 'syft:metadata:'

test('the properties of Trivy name the source package with its epoch and release', () => {
  expect(sourceBy([`${TRIVY}SrcName`, 'openssl'])).toEqual({ name: 'openssl', version: '' })
  expect(
    sourceBy([`${TRIVY}SrcName`, 'perl'], [`${TRIVY}SrcVersion`, '5.36.0'], [`${TRIVY}SrcRelease`, '7+deb12u1']),
  ).toEqual({ name: 'perl', version: '5.36.0-7+deb12u1' })
  const openssl = [
    [`${TRIVY}SrcName`, 'openssl'],
    [`${TRIVY}SrcVersion`, '1.0.2k'],
    [`${TRIVY}SrcRelease`, '16.el7'],
    [`${TRIVY}SrcEpoch`, '1'],
  ]
  expect(sourceBy(...openssl)).toEqual({ name: 'openssl', version: '1:1.0.2k-16.el7' })
  expect(sourceBy(['SrcName', 'curl'], ['SrcVersion', '8.0-1'], ['SrcEpoch', '0'])).toEqual({
    name: 'curl',
    version: '8.0-1',
  })
})

test('the properties of syft name the source package of each kind', () => {
  expect(sourceBy([`${SYFT}source`, 'perl'], [`${SYFT}sourceVersion`, '5.36.0-7'])).toEqual({
    name: 'perl',
    version: '5.36.0-7',
  })
  expect(sourceBy([`${SYFT}originPackage`, 'busybox'])).toEqual({ name: 'busybox', version: '' })
  expect(sourceBy([`${SYFT}sourceRpm`, 'openssl-3.0.7-27.el9.src.rpm'])).toEqual({
    name: 'openssl',
    version: '3.0.7-27.el9',
  })
  expect(sourceBy([`${SYFT}sourceRpm`, 'python3.11-3.11.5-1.el9.nosrc.rpm'])).toEqual({
    name: 'python3.11',
    version: '3.11.5-1.el9',
  })
})

test('properties that name no source package give none', () => {
  expect(sourceBy()).toBeNull()
  expect(sourceBy([`${SYFT}sourceRpm`, '(none)'])).toBeNull()
  expect(sourceBy([`${TRIVY}SrcVersion`, '1'], [`${SYFT}sourceVersion`, '1'])).toBeNull()
  expect(sourceBy([`${TRIVY}SrcName`, ''])).toBeNull()
  expect(cyclonedx([{ name: 'a', properties: 'SrcName' }]).components[0]?.source).toBeNull()
})

/** An SPDX 2 document with packages. */
const spdx = (packages: object[], spdxVersion = 'SPDX-2.3') => read({ spdxVersion, packages })

test('a text of SPDX names the source package where Trivy writes it, and none where syft does', () => {
  const sourceIn = (sourceInfo: unknown) => spdx([{ name: 'a', sourceInfo }]).components[0]?.source
  expect(sourceIn('built package from: openssl 3.0.11-1~deb12u2')).toEqual({
    name: 'openssl',
    version: '3.0.11-1~deb12u2',
  })
  expect(sourceIn('built package from: bash')).toEqual({ name: 'bash', version: '' })
  for (const other of ['acquired package info from DPKG DB: /var/lib/dpkg/status', 'openssl 1', 5])
    expect(sourceIn(other)).toBeNull()
})

test('an operating system is named by Trivy, by syft and by SPDX, and is no package', () => {
  const trivy = { type: 'operating-system', name: 'debian', version: '12.7' }
  const syft = {
    type: 'operating-system',
    name: 'Debian GNU/Linux',
    version: '12 (bookworm)',
    swid: { tagId: 'debian', name: 'Debian', version: '12' },
    properties: [
      { name: 'syft:distro:id', value: 'debian' },
      { name: 'syft:distro:versionID', value: '12' },
    ],
  }
  expect(cyclonedx([trivy])).toMatchObject({
    systems: ['debian-12.7'],
    components: [{ name: 'debian', kind: 'an operating system' }],
  })
  expect(cyclonedx([syft]).systems).toEqual(['debian-12'])
  expect(cyclonedx([{ ...syft, properties: [] }]).systems).toEqual(['debian-12'])
  const purpose = {
    name: 'alpine',
    versionInfo: '3.18.6',
    primaryPackagePurpose: 'OPERATING-SYSTEM',
  }
  const trivySpdx = { SPDXID: 'SPDXRef-OperatingSystem-2e91', name: 'centos', versionInfo: '7.6' }
  expect(spdx([purpose]).systems).toEqual(['alpine-3.18.6'])
  const underscored = { ...purpose, primaryPackagePurpose: 'OPERATING_SYSTEM' }
  expect(spdx([underscored]).systems).toEqual(['alpine-3.18.6'])
  expect(spdx([trivySpdx], 'SPDX-2.2').systems).toEqual(['centos-7.6'])
  expect(spdx([trivySpdx]).components[0]?.kind).toBe('an operating system')
  const subject = { bomFormat: 'CycloneDX', specVersion: '1.5', metadata: { component: trivy } }
  expect(read(subject)).toMatchObject({ systems: ['debian-12.7'], components: [] })
})

test('different operating systems are all named, equal ones once', () => {
  const system = (version: string) => ({ type: 'operating-system', name: 'Debian', version })
  expect(cyclonedx([system('12'), system('12')]).systems).toEqual(['debian-12'])
  expect(cyclonedx([system('12'), system('13')]).systems).toEqual(['debian-12', 'debian-13'])
  expect(cyclonedx([{ ...system(''), name: '' }]).systems).toEqual([])
})

test('lists of packages that Trivy names are no packages, but an application is', () => {
  const list = {
    type: 'application',
    name: 'package-lock.json',
    properties: [property([`${TRIVY}Class`, 'lang-pkgs'])],
  }
  const [first, second] = cyclonedx([list, { type: 'application', name: 'app' }]).components
  expect([first?.kind, second?.kind]).toEqual(['a list of packages', null])
  expect(spdx([{ SPDXID: 'SPDXRef-Application-1' }]).components[0]?.kind).toBe('a list of packages')
})

test('every version of the formats that is named in refusals is read', () => {
  const component = { type: 'library', name: 'a', version: '1', purl: 'pkg:npm/a@1' }
  for (const version of ['1.2', '1.3', '1.4', '1.5', '1.6', '1.7'])
    expect(cyclonedx([component], version)).toMatchObject({
      format: `CycloneDX ${version}`,
      components: [{ purl: 'pkg:npm/a@1' }],
    })
  const refs = (referenceCategory: string) => [
    { referenceCategory, referenceType: 'purl', referenceLocator: 'pkg:npm/a@1' },
  ]
  for (const version of ['2.1', '2.2', '2.3'])
    expect(spdx([{ name: 'a', externalRefs: refs('PACKAGE_MANAGER') }], `SPDX-${version}`)).toMatchObject({
      format: `SPDX ${version}`,
      components: [{ purl: 'pkg:npm/a@1' }],
    })
  for (const specVersion of ['1.0', '1.1', '1.', '1.x'])
    expect(() => cyclonedx([], specVersion)).toThrow(/is not known here: use CycloneDX 1\.2 to 1\.7/)
  for (const version of ['SPDX-2.0', 'SPDX-1.2'])
    expect(() => spdx([], version)).toThrow(/is not known here: use .*SPDX 2\.1 to 2\.3/)
})

test('the elements of SPDX 3 are read in each form of JSON-LD', () => {
  const info = { type: 'CreationInfo', '@id': '_:c', specVersion: '3.0.1' }
  const elements = [
    { type: 'software_Package', software_packageUrl: 'pkg:npm/a@1' },
    { '@type': 'software:Package', 'software:packageUrl': 'pkg:npm/b@1' },
    {
      '@type': ['https://spdx.org/rdf/3.0.1/terms/Software/Package'],
      software_packageUrl: 'pkg:npm/c@1',
      software_sourceInfo: 'built package from: d 2-1',
    },
    {
      type: 'software_Package',
      name: 'debian',
      software_packageVersion: '12',
      software_primaryPurpose: 'operatingSystem',
    },
  ]
  const sbom = read({ '@graph': [info, ...elements] })
  expect(sbom.components.map(({ purl }) => purl)).toEqual([...['pkg:npm/a@1', 'pkg:npm/b@1', 'pkg:npm/c@1', null]])
  expect(sbom.components[2]?.source).toEqual({ name: 'd', version: '2-1' })
  expect(sbom.systems).toEqual(['debian-12'])
  const context = 'https://spdx.org/rdf/3.0.0/spdx-context.jsonld'
  expect(read({ '@context': context, ...elements[0] })).toMatchObject({
    format: 'SPDX 3.0.0',
    components: [{ purl: 'pkg:npm/a@1' }],
  })
})
