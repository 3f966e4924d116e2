import { expect, test } from 'vitest'
import { identifyComponent } from '../../../src/base/identity/identity.ts'
import { isMeant } from '../../../src/base/identity/meant.ts'
import { readRelease } from '../../../src/base/identity/releases.ts'

/** Spellings of a release by its ecosystem, as generators write them. */
const SPELLED: Record<string, readonly [base: string, ...spellings: string[]]> = {
  'Debian:12': [
    'Debian',
    'debian-12',
    'debian-12.7',
    'Debian 12',
    'debian:12',
    'debian12',
    'debian_12',
    'bookworm',
    'debian-bookworm',
    '12',
    '12.7',
    'Debian GNU/Linux 12 (bookworm)',
    'bookworm-security',
    'debian-bookworm-backports',
    'bookworm-slim',
  ],
  'Debian:8': ['Debian', 'jessie', 'debian-8.11'],
  'Debian:3.1': ['Debian', 'sarge', '3.1'],
  'Debian:sid': ['Debian', 'sid', 'debian-sid', 'unstable', 'trixie/sid'],
  'Ubuntu:22.04': [
    'Ubuntu',
    'ubuntu-22.04',
    'ubuntu-22.04.4',
    'Ubuntu 22.04.4 LTS',
    'ubuntu-22.04-lts',
    'jammy',
    'ubuntu-jammy',
    '22.04',
    'Ubuntu 22.04.4 LTS (Jammy Jellyfish)',
    'jammy-updates',
    'ubuntu-jammy-security',
  ],
  'Ubuntu:23.10': ['Ubuntu', 'mantic', 'ubuntu-23.10'],
  'Alpine:v3.18': [
    'Alpine',
    'alpine-3.18',
    'alpine-3.18.6',
    'alpine-v3.18',
    '3.18',
    '3.18.6',
    'v3.18',
    'Alpine Linux v3.18',
  ],
  'Alpine:edge': ['Alpine', 'edge', 'alpine-edge', 'alpine-3.21_alpha20240923'],
  'Red Hat:enterprise_linux:9.4': [
    'Red Hat',
    'rhel-9.4',
    'redhat-9.4',
    'Red Hat Enterprise Linux 9.4 (Plow)',
    'Red Hat Enterprise Linux Server 9.4',
    'Red Hat Enterprise Linux release 9.4 (Plow)',
  ],
  'Red Hat:enterprise_linux:9': ['Red Hat', 'rhel-9', 'el9', 'centos-9', 'centos-stream-9', 'CentOS Stream 9'],
  'Red Hat:enterprise_linux:7.9': ['Red Hat', 'centos-7.9.2009', 'CentOS Linux 7.9'],
  'AlmaLinux:9': ['AlmaLinux', 'almalinux-9', 'almalinux-9.6', 'alma-9.3', 'AlmaLinux 9.6 (Sage Margay)'],
  'Rocky Linux:9': [
    'Rocky Linux',
    'rocky-9',
    'rocky-9.3',
    'rocky-linux-9',
    'rockylinux-9.3',
    'Rocky Linux 9.3 (Blue Onyx)',
  ],
  'openSUSE:Leap 15.6': [
    'openSUSE',
    'opensuse-leap-15.6',
    'opensuse.leap-15.6',
    'opensuse-15.6',
    'openSUSE Leap 15.6',
    'leap-15.6',
    '15.6',
  ],
  'openSUSE:Tumbleweed': [
    'openSUSE',
    'tumbleweed',
    'opensuse-tumbleweed',
    'opensuse.tumbleweed',
    'opensuse-tumbleweed-20240101',
  ],
  'openSUSE:Leap Micro 5.3': ['openSUSE', 'opensuse-leap-micro-5.3'],
  'SUSE:15 SP5': [
    'SUSE',
    'sles-15.5',
    'sles-15-sp5',
    'SLES-15SP5',
    'sle-15.5',
    'sles_sap-15.5',
    'SUSE Linux Enterprise Server 15 SP5',
    'SUSE Linux Enterprise Desktop 15 SP5',
    'suse linux enterprise server-15.5',
  ],
  'SUSE:15': ['SUSE', 'sles-15', 'sles-15.0'],
  'SUSE:16.0': ['SUSE', 'sles-16.0'],
  'SUSE:Micro 5.3': ['SUSE', 'sle-micro-5.3', 'slem-5.3', 'suse-5.3'],
  'Azure Linux:3': ['Azure Linux', 'azurelinux-3.0', 'azure-linux-3', 'Microsoft Azure Linux 3.0'],
  'Azure Linux:2': ['Azure Linux', 'mariner-2.0', 'cbl-mariner-2.0.20240101'],
  'Mageia:9': ['Mageia', 'mageia-9'],
  'openEuler:22.03': ['openEuler', 'openEuler-22.03'],
  'openEuler:22.03-LTS-SP3': ['openEuler', 'openeuler-22.03-LTS-SP3', 'openEuler 22.03 (LTS-SP3)'],
  'Photon OS:4.0': ['Photon OS', 'photon-4.0', 'photon-4'],
  'Alpaquita:stream': ['Alpaquita', 'alpaquita-stream', 'stream'],
}

test.each(Object.entries(SPELLED))('the release %s is read in every spelling', (ecosystem, [base, ...spellings]) => {
  const read = spellings.map((text) => [text, readRelease(text, base)?.ecosystem])
  expect(read).toEqual(spellings.map((text) => [text, ecosystem]))
})

test('what names no release, or one of another distribution, is none', () => {
  const none: [string, string][] = [
    ['', 'Debian'],
    ['debian', 'Debian'],
    ['debian-', 'Debian'],
    ['debian-latest', 'Debian'],
    ['ubuntu-22.04', 'Debian'],
    ['debian-12', 'Ubuntu'],
    ['raspbian-12', 'Debian'],
    ['kali-2024.1', 'Debian'],
    ['fedora-40', 'Red Hat'],
    ['wolfi-20230201', 'Wolfi'],
    ['constructor', 'Debian'],
    [`debian-${'1'.repeat(300)}`, 'Debian'],
  ]
  expect(none.filter(([text, base]) => readRelease(text, base) !== null)).toEqual([])
})

test('a code name tells the distribution where the package URL does not', () => {
  const found = (purl: string) => {
    const one = identifyComponent({ purl, name: '', version: '', source: null }, { distribution: null })
    return 'code' in one ? one.code : one.ecosystem.name
  }
  expect(found('pkg:deb/a@1?distro=jammy')).toBe('Ubuntu:22.04')
  expect(found('pkg:deb/a@1?distro=debian-12')).toBe('Debian:12')
  expect(found('pkg:rpm/a@1?distro=rhel-9.4')).toBe('Red Hat:enterprise_linux:9.4')
  expect(found('pkg:rpm/a@1?distro=fedora-40')).toBe('unknown_ecosystem')
  expect(found('pkg:deb/a@1')).toBe('unknown_ecosystem')
})

/** Releases, with the ecosystems of records that are about them, and those that are about others. */
const MEANT: Record<string, { readonly own: readonly string[]; readonly other: readonly string[] }> = {
  'Debian:12': { own: ['Debian:12', 'Debian'], other: ['Debian:13', 'Debian:1', 'Root:Debian:12'] },
  'Root:Debian:12': { own: ['Root:Debian:12', 'Root:Debian'], other: ['Debian:12'] },
  'Ubuntu:22.04': {
    own: [
      ...['Ubuntu:22.04', 'Ubuntu:22.04:LTS', 'Ubuntu:Pro:22.04:LTS', 'Ubuntu'],
      ...['Ubuntu:Pro:22.04:LTS:Realtime:Kernel', 'Ubuntu:Pro:Realtime:22.04:LTS'],
      ...['Ubuntu:22.04:LTS:for:NVIDIA:BlueField', 'Ubuntu:Nvidia-BlueField:22.04:LTS'],
    ],
    other: ['Ubuntu:24.04:LTS', 'Ubuntu:Pro:FIPS:22.04:LTS', 'Ubuntu:Pro:20.04:LTS', 'Ubuntu:Pro:Realtime:24.04:LTS'],
  },
  'Ubuntu:FIPS:22.04': {
    own: ['Ubuntu:Pro:FIPS:22.04:LTS'],
    other: ['Ubuntu:22.04:LTS', 'Ubuntu:Pro:FIPS-updates:22.04:LTS'],
  },
  'Alpine:v3.18': {
    own: ['Alpine:v3.18', 'Alpine:3.18', 'Alpine'],
    other: ['Alpine:v3.19', 'Alpine:edge', 'Alpine:v3.1'],
  },
  'Alpine:3.18.6': { own: ['Alpine:v3.18'], other: ['Alpine:v3.19'] },
  'Debian:bookworm': { own: ['Debian:12'], other: ['Debian:13'] },
  'Rocky Linux:9.3': { own: ['Rocky Linux:9'], other: ['Rocky Linux:8'] },
  'AlmaLinux:9': { own: ['AlmaLinux:9', 'AlmaLinux'], other: ['AlmaLinux:8', 'Rocky Linux:9'] },
  'Red Hat:enterprise_linux:9.4': {
    own: [
      'Red Hat:enterprise_linux:9::appstream',
      'Red Hat:enterprise_linux:9::baseos',
      'Red Hat:rhel_eus:9.4::baseos',
      'Red Hat:openshift:4.12::el9',
      'Red Hat:satellite:6.15',
    ],
    other: [
      'Red Hat:enterprise_linux:8::appstream',
      'Red Hat:rhel_eus:9.2::baseos',
      'Red Hat:openshift:4.12::el8',
      'Red Hat:rhel_software_collections:3::el7',
    ],
  },
  'Red Hat:enterprise_linux:9': {
    own: ['Red Hat:rhel_eus:9.2::baseos', 'Red Hat:enterprise_linux:9::crb'],
    other: ['Red Hat:rhel_els:7'],
  },
  'SUSE:15 SP5': {
    own: [
      'SUSE:Linux Enterprise Server 15 SP5',
      'SUSE:Linux Enterprise Server 15 SP5-LTSS',
      'SUSE:Linux Enterprise Module for Basesystem 15 SP5',
      'SUSE:Linux Enterprise Module for Python 3 15 SP5',
      'SUSE:Package Hub 15 SP5',
      'SUSE:Real Time Module 15 SP5',
    ],
    other: [
      'SUSE:Linux Enterprise Server 15 SP4',
      'SUSE:Linux Enterprise Server 12 SP5',
      'SUSE:Linux Enterprise Micro 5.5',
      'SUSE:Manager Server 4.3',
      'SUSE:Linux Enterprise Server 15',
    ],
  },
  'SUSE:12 SP5': {
    own: ['SUSE:Linux Enterprise Module for Containers 12', 'SUSE:Linux Enterprise Server 12 SP5'],
    other: ['SUSE:Linux Enterprise Server 12', 'SUSE:Linux Enterprise Server 12 SP4'],
  },
  'SUSE:15': {
    own: ['SUSE:Linux Enterprise Server 15', 'SUSE:Linux Enterprise Server 15 SP5'],
    other: ['SUSE:Linux Enterprise Server 12 SP5'],
  },
  'SUSE:Micro 5.3': {
    own: ['SUSE:Linux Enterprise Micro 5.3'],
    other: ['SUSE:Linux Enterprise Micro 5.4', 'SUSE:Linux Enterprise Server 15 SP3'],
  },
  'openSUSE:Leap 15.6': {
    own: ['openSUSE:Leap 15.6'],
    other: ['openSUSE:Leap 15.5', 'openSUSE:Tumbleweed', 'openSUSE:Leap Micro 5.3'],
  },
  'openEuler:22.03': { own: ['openEuler:22.03-LTS', 'openEuler:22.03-LTS-SP3'], other: ['openEuler:24.03-LTS'] },
  'openEuler:22.03-LTS-SP3': {
    own: ['openEuler:22.03-LTS-SP3'],
    other: ['openEuler:22.03-LTS', 'openEuler:22.03-LTS-SP2'],
  },
}

test.each(Object.entries(MEANT))('records of %s are told from those of others', (asked, { own, other }) => {
  expect(own.filter((recorded) => !isMeant(recorded, asked))).toEqual([])
  expect(other.filter((recorded) => isMeant(recorded, asked))).toEqual([])
})

test('a record of a repository is not about an ecosystem that has another', () => {
  expect(isMeant('Maven', 'Maven:https://repo.example.com')).toBe(false)
  expect(isMeant('Maven:https://repo.example.com', 'Maven')).toBe(true)
})
