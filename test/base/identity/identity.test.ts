import { describe, expect, test } from 'vitest'
import {
  type ComponentFacts,
  type Identity,
  type Surroundings,
  identifyComponent,
} from '../../../src/base/identity/identity.ts'
import { normalName, packageKey } from '../../../src/base/identity/names.ts'

const ALONE: Surroundings = { distribution: null }

function read(facts: Partial<ComponentFacts>, around = ALONE) {
  return identifyComponent({ purl: null, name: '', version: '', source: null, ...facts }, around)
}

function identityOf(facts: Partial<ComponentFacts>, around = ALONE): Identity {
  const found = read(facts, around)
  if ('code' in found) throw new Error(found.reason)
  return found
}

function told(purl: string): readonly string[] {
  const found = read({ purl })
  if ('code' in found) return [found.code]
  return [found.ecosystem.name, found.name, found.version]
}

describe('the release of a component', () => {
  const debian = { distribution: { name: 'debian-12.7', from: 'sbom' } } as const

  test('is that of its package URL, else that of its surroundings', () => {
    const own = identityOf({ purl: 'pkg:deb/debian/a@1?distro=trixie' }, debian)
    expect(own.release).toEqual({ name: 'Debian:13', from: 'purl' })
    const outer = identityOf({ purl: 'pkg:deb/debian/a@1' }, debian)
    expect(outer).toMatchObject({ release: { name: 'Debian:12', from: 'sbom' }, needsRelease: false })
    const option = { distribution: { name: 'jammy', from: 'option' } } as const
    const named = identityOf({ purl: 'pkg:deb/ubuntu/a@1' }, option)
    expect(named.release).toEqual({ name: 'Ubuntu:22.04', from: 'option' })
  })

  test('is not that of surroundings of another distribution', () => {
    const found = identityOf({ purl: 'pkg:apk/alpine/a@1' }, debian)
    expect(found).toMatchObject({ release: null, needsRelease: true, ecosystem: { name: 'Alpine' } })
    expect(identityOf({ purl: 'pkg:npm/a@1' }, debian)).toMatchObject({
      release: null,
      needsRelease: false,
    })
  })

  test('that cannot be read is said, and counts as none', () => {
    const found = identityOf({ purl: 'pkg:deb/debian/a@1?distro=debian-latest' })
    expect(found).toMatchObject({
      release: null,
      unreadRelease: 'debian-latest',
      needsRelease: true,
      ecosystem: { name: 'Debian' },
    })
    expect(identityOf({ purl: 'pkg:deb/debian/a@1' })).toMatchObject({ unreadRelease: null })
  })

  test('is in the qualifiers of cdxgen and Docker Scout as well', () => {
    const releaseOf = (path: string) => identityOf({ purl: `pkg:${path}` }).release?.name
    expect(releaseOf('deb/debian/a@1?distro=x&distro_name=bookworm')).toBe('Debian:12')
    expect(releaseOf('deb/debian/a@1?os_distro=bookworm&os_name=debian&os_version=12')).toBe('Debian:12')
    expect(releaseOf('apk/alpine/a@1?os_name=alpine&os_version=3.18')).toBe('Alpine:v3.18')
    expect(releaseOf('rpm/a@1?os_name=rhel&os_version=9.4')).toBe('Red Hat:enterprise_linux:9.4')
  })

  test('is in the namespace of what has no numbers, and a number is of what the namespace names', () => {
    const releaseOf = (path: string) => identityOf({ purl: `pkg:rpm/${path}` }).release?.name
    expect(releaseOf('opensuse-tumbleweed/a@1')).toBe('openSUSE:Tumbleweed')
    expect(releaseOf('opensuse.tumbleweed/a@1?distro=20240101')).toBe('openSUSE:Tumbleweed')
    expect(releaseOf('sle-micro/a@1?distro=5.3')).toBe('SUSE:Micro 5.3')
    expect(releaseOf('sles/a@1?distro=15.5')).toBe('SUSE:15 SP5')
    expect(releaseOf('opensuse/a@1')).toBeUndefined()
  })

  test('is not needed in a distribution without releases', () => {
    const found = identityOf({ purl: 'pkg:apk/wolfi/a@1?distro=wolfi-20230201' })
    expect(found).toMatchObject({ release: null, needsRelease: false, unreadRelease: null })
  })

  test('names the distribution of a package URL without a namespace', () => {
    expect(identityOf({ purl: 'pkg:deb/a@1' }, debian).ecosystem.name).toBe('Debian:12')
  })
})

describe('the source package of a component', () => {
  const questionsOf = (facts: Partial<ComponentFacts>) =>
    identityOf(facts).questions.map(({ name, version, by }) => [by, name, version])

  test('is asked for beside the binary name, with its own version where it is known', () => {
    const perl = 'pkg:deb/debian/perl-base@5.36.0-7%2Bdeb12u1?distro=debian-12&upstream=perl'
    expect(questionsOf({ purl: perl })).toEqual([
      ['name', 'perl-base', '5.36.0-7+deb12u1'],
      ['source', 'perl', '5.36.0-7+deb12u1'],
    ])
    const rebuilt = 'pkg:deb/debian/x@1.0-1%2Bb3?upstream=y'
    expect(questionsOf({ purl: rebuilt })[1]).toEqual(['source', 'y', '1.0-1'])
    const other = 'pkg:deb/debian/x@1.0-1?upstream=y%402.0%2Bdeb12u1'
    expect(questionsOf({ purl: other })[1]).toEqual(['source', 'y', '2.0+deb12u1'])
    expect(questionsOf({ purl: other.replace('%2B', '+') })[1]).toEqual(['source', 'y', '2.0+deb12u1'])
  })

  test('of rpm is the name in the file of the source package, with the epoch of the component', () => {
    const purl = 'pkg:rpm/rocky/openssl-libs@3.0.7-24.el9?epoch=1&upstream=openssl-3.0.7-24.el9.src.rpm'
    expect(identityOf({ purl }).source).toEqual({ name: 'openssl', version: '1:3.0.7-24.el9' })
  })

  test('has the epoch of an rpm, however it is named, unless it is named with its own', () => {
    const version = (path: string, source: ComponentFacts['source'] = null) =>
      identityOf({ purl: `pkg:rpm/rocky/openssl-libs@${path}`, source }).source?.version
    const stated = { name: 'openssl', version: '3.0.7-28.el9' }
    expect(version('3.0.7-28.el9?epoch=1', stated)).toBe('1:3.0.7-28.el9')
    expect(version('1%3A3.0.7-28.el9', stated)).toBe('1:3.0.7-28.el9')
    expect(version('3.0.7-28.el9?epoch=1&upstream=openssl', stated)).toBe('1:3.0.7-28.el9')
    expect(version('3.0.7-28.el9?epoch=1&upstream=openssl%403.0.7-28.el9')).toBe('1:3.0.7-28.el9')
    expect(version('3.0.7-28.el9?epoch=1&upstream=openssl-3.0.7-28.el9.src.rpm')).toBe('1:3.0.7-28.el9')
    expect(version('3.0.7-28.el9?epoch=1&upstream=openssl')).toBe('1:3.0.7-28.el9')
    expect(version('3.0.7-28.el9?epoch=1', { ...stated, version: '2:3.0.7-28.el9' })).toBe('2:3.0.7-28.el9')
    expect(version('3.0.7-28.el9', stated)).toBe('3.0.7-28.el9')
  })

  test('of deb has the epoch of the package where no version is named: dpkg names one where it is another, if by the epoch alone', () => {
    const version = (path: string, source: ComponentFacts['source'] = null) =>
      identityOf({ purl: `pkg:deb/debian/${path}`, source }).source?.version
    const util = { name: 'util-linux', version: '2.38.1-5' }
    expect(version('bsdutils@2.38.1-5%2Bb1?epoch=1', util)).toBe('2.38.1-5')
    expect(version('bsdutils@1:2.38.1-5?upstream=util-linux%402.38.1-5')).toBe('2.38.1-5')
    expect(version('a@1%3A1.2-3%2Bb1', { name: 'b', version: '1:1.2-3' })).toBe('1:1.2-3')
    expect(version('a@1.2-3?epoch=1&upstream=b')).toBe('1:1.2-3')
    expect(version('gcc@4:12.2.0-3?upstream=gcc-defaults%401.203')).toBe('1.203')
  })

  test('is that of the SBOM where the package URL names none', () => {
    const source = { name: 'openssl', version: '3.1.4-r0' }
    const found = identityOf({ purl: 'pkg:apk/alpine/libcrypto3@3.1.4-r0?distro=3.18', source })
    expect(found).toMatchObject({ source, needsSource: false })
    expect(found.questions.map(({ ecosystem }) => ecosystem.name)).toEqual(['Alpine:v3.18', 'Alpine:v3.18'])
  })

  test('of a signed kernel of Debian is asked for as the kernel, too', () => {
    const image = 'pkg:deb/debian/linux-image-6.1.0-9-amd64@6.1.27-1?distro=debian-12&upstream=linux-signed-amd64'
    expect(questionsOf({ purl: `${image}%406.1.27%2B1` })).toEqual([
      ['name', 'linux-image-6.1.0-9-amd64', '6.1.27-1'],
      ['source', 'linux-signed-amd64', '6.1.27+1'],
      ['source', 'linux', '6.1.27-1'],
    ])
    expect(questionsOf({ purl: image })).toContainEqual(['source', 'linux', '6.1.27-1'])
    const backport = questionsOf({ purl: `${image}%406.1.27%2B1~bpo11%2B1` })
    expect(backport).toContainEqual(['source', 'linux', '6.1.27-1~bpo11+1'])
  })

  test('of a signed kernel of Ubuntu is asked for as the kernel of the same name, too', () => {
    const asked = (source: string) => questionsOf({ purl: `pkg:deb/ubuntu/a@5.15-1.2?upstream=${source}` })
    expect(asked('linux-signed')).toContainEqual(['source', 'linux', '5.15-1.2'])
    expect(asked('linux-signed-hwe-5.15')).toContainEqual(['source', 'linux-hwe-5.15', '5.15-1.2'])
    expect(asked('linux-signed-hwe-5.15')).toHaveLength(3)
  })

  test('of a signed boot loader of Debian is asked for as what it signs, too', () => {
    const asked = (path: string) => questionsOf({ purl: `pkg:deb/debian/${path}` })
    const grub = asked('grub-efi-amd64-signed@1%2B2.06%2B13%2Bdeb12u1?upstream=grub-efi-amd64-signed')
    expect(grub).toContainEqual(['source', 'grub2', '2.06-13+deb12u1'])
    const shim = asked('shim-helpers-arm64-signed@1%2B15.8%2B1~deb12u1?upstream=shim-helpers-arm64-signed')
    expect(shim).toContainEqual(['source', 'shim', '15.8-1~deb12u1'])
    const boot = asked('systemd-boot-efi-amd64-signed@257.6%2B1?upstream=systemd-boot-efi-amd64-signed')
    expect(boot).toContainEqual(['source', 'systemd', '257.6-1'])
  })

  test('of rpm with another version than the package is asked for with any epoch, unless one is named', () => {
    const asked = (version: string, upstream: string) =>
      questionsOf({ purl: `pkg:rpm/rocky/perl-Errno@${version}?upstream=${upstream}` })[1]
    expect(asked('1.30-481.el9', 'perl-5.32.1-481.el9.src.rpm')).toEqual(['source', 'perl', '?:5.32.1-481.el9'])
    expect(asked('1:1.30-481.el9', 'perl%405.32.1-481.el9')).toEqual(['source', 'perl', '?:5.32.1-481.el9'])
    expect(asked('1.30-481.el9', 'perl%404:5.32.1-481.el9')).toEqual(['source', 'perl', '4:5.32.1-481.el9'])
    const purl = 'pkg:rpm/rocky/perl-Errno@1.30-481.el9?upstream=perl-5.32.1-481.el9.src.rpm'
    expect(identityOf({ purl }).source).toEqual({ name: 'perl', version: '5.32.1-481.el9' })
  })

  test('is in the words of dpkg, or in a file name without its ending', () => {
    const source = (path: string) => identityOf({ purl: `pkg:${path}` }).source
    const glibc = { name: 'glibc', version: '2.36-9' }
    expect(source('deb/debian/libc6@2.36-9?upstream=glibc%20(2.36-9)')).toEqual(glibc)
    expect(source('deb/debian/libc6@2.36-9%2Bb1?source=glibc%20%282.36-9%29')).toEqual(glibc)
    expect(source('deb/debian/a@1?upstream=libstdc%2B%2B')).toEqual({ name: 'libstdc++', version: '1' })
    const openssl = { name: 'openssl', version: '3.0.7-24.el9' }
    expect(source('rpm/rocky/openssl-libs@3.0.7-24.el9?upstream=openssl-3.0.7-24.el9')).toEqual(openssl)
    expect(source('rpm/rocky/openssl-libs@3.0.7-24.el9?upstream=openssl-3.0.7-24.el9.src')).toEqual(openssl)
    const java = { name: 'java-1.8.0-openjdk', version: '1.8.0.1-2' }
    expect(source('rpm/rocky/java-1.8.0@1.8.0.1-2?upstream=java-1.8.0-openjdk')).toEqual(java)
  })

  test('of the same name and version is asked for once', () => {
    expect(questionsOf({ purl: 'pkg:deb/debian/a@1?upstream=a' })).toHaveLength(1)
  })

  test('is needed only where records name source packages', () => {
    const needs = (purl: string) => identityOf({ purl }).needsSource
    expect(['pkg:deb/debian/a@1', 'pkg:apk/alpine/a@1', 'pkg:rpm/suse/a@1'].map(needs)).toEqual([true, true, true])
    expect(['pkg:rpm/redhat/a@1', 'pkg:rpm/almalinux/a@1', 'pkg:npm/a@1'].map(needs)).toEqual([false, false, false])
  })
})

describe('the spellings of generators', () => {
  test('of Photon OS and Azure Linux have other namespaces, too', () => {
    expect(told('pkg:rpm/photon%20os/a@1?distro=photon-5.0')).toEqual(['Photon OS:5.0', 'a', '1'])
    expect(told('pkg:rpm/azure/a@1?distro=azure-3.0')).toEqual(['Azure Linux:3', 'a', '1'])
  })

  test('of rpm name the distribution by its ID of os-release, or as Trivy does', () => {
    const known: Record<string, string> = {
      rocky: 'Rocky Linux',
      rockylinux: 'Rocky Linux',
      'rocky-linux': 'Rocky Linux',
      alma: 'AlmaLinux',
      almalinux: 'AlmaLinux',
      redhat: 'Red Hat',
      rhel: 'Red Hat',
      centos: 'Red Hat',
      RHEL: 'Red Hat',
      sles: 'SUSE',
      sle: 'SUSE',
      sled: 'SUSE',
      suse: 'SUSE',
      'sle-micro': 'SUSE',
      opensuse: 'openSUSE',
      'opensuse-leap': 'openSUSE',
      'opensuse.leap': 'openSUSE',
      tumbleweed: 'openSUSE:Tumbleweed',
      'opensuse-tumbleweed': 'openSUSE:Tumbleweed',
      azurelinux: 'Azure Linux',
      mariner: 'Azure Linux',
      'cbl-mariner': 'Azure Linux',
      openEuler: 'openEuler',
      mageia: 'Mageia',
      photon: 'Photon OS',
      'suse%20linux%20enterprise%20server': 'SUSE',
    }
    const named = Object.keys(known).map((namespace) => [namespace, told(`pkg:rpm/${namespace}/a@1`)[0]])
    expect(Object.fromEntries(named)).toEqual(known)
  })

  test('of distributions that OSV has no records of are said by name', () => {
    const titles: Record<string, string> = {
      'rpm/fedora': 'Fedora',
      'rpm/oracle': 'Oracle Linux',
      'rpm/ol': 'Oracle Linux',
      'rpm/amzn': 'Amazon Linux',
      'rpm/amazon': 'Amazon Linux',
      'deb/raspbian': 'Raspbian',
      'deb/kali': 'Kali Linux',
    }
    for (const [path, title] of Object.entries(titles))
      expect(read({ purl: `pkg:${path}/a@1` })).toEqual({
        code: 'unknown_ecosystem',
        reason: `OSV has no vulnerability records of ${title} (pkg:${path})`,
      })
  })

  test.each<[purl: string, expected: readonly string[]]>([
    ['pkg:MAVEN/org.a:b@1.0', ['Maven', 'org.a:b', '1.0']],
    ['pkg:maven/org.a%3Ab@1.0', ['Maven', 'org.a:b', '1.0']],
    ['pkg:gradle/org.a/b@1.0', ['Maven', 'org.a:b', '1.0']],
    ['pkg:gradle/org.a:b@1.0', ['Maven', 'org.a:b', '1.0']],
    ['pkg:maven/org/apache/a@1.0', ['Maven', 'org.apache:a', '1.0']],
    ['pkg:maven/org.a/b@1.0?classifier=sources&type=jar', ['Maven', 'org.a:b', '1.0']],
    ['pkg:PIP/Django@4', ['PyPI', 'django', '4']],
    ['pkg:pypi/requests%5Bsecurity%2Csocks%5D@2.0', ['PyPI', 'requests', '2.0']],
    ['pkg:npm/angular/core@1.0', ['npm', '@angular/core', '1.0']],
    ['pkg:apk/cleanstart/curl@8.1-r0', ['CleanStart', 'curl', '8.1-r0']],
    ['pkg:RUBYGEMS/rails@7', ['RubyGems', 'rails', '7']],
    ['pkg:RUST/serde@1', ['crates.io', 'serde', '1']],
    ['pkg:crates/serde@1', ['crates.io', 'serde', '1']],
    ['pkg:GO/example.com/M@v1', ['Go', 'example.com/m', 'v1']],
    ['pkg:ACTIONS/Actions/checkout@v4', ['GitHub Actions', 'actions/checkout', 'v4']],
    ['pkg:githubactions/actions/checkout@v4', ['GitHub Actions', 'actions/checkout', 'v4']],
    ['pkg:github/actions/checkout@v4', ['GitHub Actions', 'actions/checkout', 'v4']],
    ['pkg:brew/glibc@2.39', ['Homebrew', 'glibc', '2.39']],
    ['pkg:dhi/python@3.12', ['Docker Hardened Images', 'python', '3.12']],
    ['pkg:apk/dhi/python@3.12', ['Docker Hardened Images', 'python', '3.12']],
    ['pkg:alpine/curl@8.1-r0?distro=3.18', ['Alpine:v3.18', 'curl', '8.1-r0']],
    ['pkg:golang/stdlib@go1.21.3', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/std@1.21.3', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/go@1.21.3', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/stdlib@go1.21.3%20X:loopvar,nocoverageredesign', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/stdlib@1.22.5-fips', ['Go', 'stdlib', '1.22.5']],
    ['pkg:golang/stdlib@go1.21rc2-custom', ['Go', 'stdlib', '1.21rc2']],
    ['pkg:golang/stdlib@1.21.0-rc.2', ['Go', 'stdlib', '1.21.0-rc.2']],
    ['pkg:golang/crypto/tls@go1.21.3', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/net/http@1.21.3', ['Go', 'stdlib', '1.21.3']],
    ['pkg:golang/net/http@v1.21.3', ['Go', 'net/http', 'v1.21.3']],
    ['pkg:vscode-extension/ms-python/Python@1.0.0', ['VSCode', 'ms-python/python', '1.0.0']],
    ['pkg:golang/example.com/m@v1.0.0-fips', ['Go', 'example.com/m', 'v1.0.0-fips']],
    ['pkg:golang/golang.org/toolchain@v0.0.1-go1.21.3.linux-amd64', ['Go', 'toolchain', '1.21.3']],
    ['pkg:golang/github.com/!masterminds/x@v1', ['Go', 'github.com/masterminds/x', 'v1']],
    ['pkg:gem/nokogiri@1.16.0-x86_64-linux', ['RubyGems', 'nokogiri', '1.16.0']],
    ['pkg:gem/nokogiri@1.16.0-arm64-darwin-23', ['RubyGems', 'nokogiri', '1.16.0']],
    ['pkg:gem/nokogiri@1.16.0-java', ['RubyGems', 'nokogiri', '1.16.0']],
    ['pkg:gem/a@1.0.0-beta1', ['RubyGems', 'a', '1.0.0-beta1']],
    ['pkg:npm/a-cjs@npm:real@4.2.0', ['npm', 'real', '4.2.0']],
    ['pkg:npm/a-cjs@npm%3Areal%404.2.0', ['npm', 'real', '4.2.0']],
    ['pkg:npm/a@npm:@scope/real@4.2.0', ['npm', '@scope/real', '4.2.0']],
    ['pkg:cran/a', ['no_version']],
  ])('%s is read', (purl, expected) => {
    expect(told(purl)).toEqual(expected)
  })

  test('take the epoch from the version beside the package URL', () => {
    const versionOf = (version: string, purl = 'pkg:rpm/rocky/a@3.0.7-25.el9') => identityOf({ purl, version }).version
    expect(versionOf('1:3.0.7-25.el9')).toBe('1:3.0.7-25.el9')
    expect(versionOf('0:3.0.7-25.el9')).toBe('3.0.7-25.el9')
    expect(versionOf('1:3.0.7-26.el9')).toBe('3.0.7-25.el9')
    expect(versionOf('2:3.0.7-25.el9', 'pkg:rpm/rocky/a@3.0.7-25.el9?epoch=1')).toBe('1:3.0.7-25.el9')
    expect(versionOf('1:2.0', 'pkg:npm/a@2.0')).toBe('2.0')
  })

  test('of a part of a package ask for the whole one as well', () => {
    const asked = (purl: string) => identityOf({ purl }).questions.map(({ name }) => name)
    expect(asked('pkg:golang/example.com/m@v1#sub/dir')).toEqual(['example.com/m/sub/dir', 'example.com/m'])
    expect(asked('pkg:githubactions/actions/cache/restore@v3')).toEqual(['actions/cache/restore', 'actions/cache'])
  })

  test.each([
    'github.com/apple/swift-nio.git',
    'github.com/Apple/swift-nio.git/swift-nio',
    'github.com/apple/swift-nio/swift-nio',
    'github.com/apple/swift-nio/NIO',
    'https%3A//github.com/apple/swift-nio.git',
    'git%40github.com%3Aapple/swift-nio.git',
  ])('of Swift ask for the repository as well: %s', (path) => {
    const found = identityOf({ purl: `pkg:swift/${path}@1.0.0` })
    expect(found.questions.map(({ name }) => name)).toContain('github.com/apple/swift-nio')
    expect(found.doubt).toBeNull()
  })

  test('of Swift ask once for a repository, and doubt a name without a host', () => {
    const asked = (path: string) => identityOf({ purl: `pkg:swift/${path}@1.0.0` }).questions.map(({ name }) => name)
    expect(asked('github.com/apple/swift-nio')).toEqual(['github.com/apple/swift-nio'])
    expect(asked('gitlab.com/a/b/c')).toEqual(['gitlab.com/a/b/c'])
    expect(asked('gitlab.com/a/b/b')).toEqual(['gitlab.com/a/b/b', 'gitlab.com/a/b'])
    expect(identityOf({ purl: 'pkg:swift/apple/swift-nio@1.0.0' }).doubt).toContain('no host')
  })

  test('pkg:github is judged as an action, and says that it may be something else', () => {
    expect(identityOf({ purl: 'pkg:github/madler/zlib@1.2.13' }).doubt).toContain('GitHub Action')
    expect(identityOf({ purl: 'pkg:githubactions/a/b@v1' }).doubt).toBeNull()
  })

  test('an action without an owner is doubted', () => {
    expect(identityOf({ purl: 'pkg:actions/checkout@v4' }).doubt).toContain('no owner')
  })

  test('pkg:generic is judged as a project of OSS-Fuzz, and says that it may be something else', () => {
    const openssl = identityOf({ purl: 'pkg:generic/openssl@1.1.1' })
    expect(openssl).toMatchObject({ ecosystem: { name: 'OSS-Fuzz' }, name: 'openssl' })
    expect(openssl.doubt).toContain('OSS-Fuzz')
  })

  test('ask certified builds of Ubuntu by their own records as well', () => {
    const asked = (version: string) =>
      identityOf({ purl: `pkg:deb/ubuntu/a@${version}?distro=jammy` }).questions.map(({ ecosystem }) => ecosystem.name)
    expect(asked('1.0')).toEqual(['Ubuntu:22.04'])
    expect(asked('1.0%2BFips1')).toContain('Ubuntu:FIPS:22.04')
  })
})

describe('a build of a vendor', () => {
  test.each<[purl: string, asked: readonly string[]]>([
    ['pkg:deb/debian/curl@7.8-1%2Bdeb12u5.root.io.1?distro=debian-12', ['curl', 'rootio-curl']],
    ['pkg:deb/debian/libc6@2.36-9.root.io.2?upstream=glibc', ['libc6', 'glibc', 'rootio-libc6', 'rootio-glibc']],
    ['pkg:apk/alpine/zlib@1.2.13-r10071?distro=3.18', ['zlib', 'rootio-zlib']],
    ['pkg:pypi/Flask@2.0%2Broot.io.1', ['flask', 'rootio-flask']],
    ['pkg:npm/%40babel/core@7.1.0-root.io.1', ['@babel/core', '@rootio/babel__core']],
    ['pkg:maven/org.ow2.asm/asm@9.1-root.io.1', ['org.ow2.asm:asm', 'io.root.org.ow2.asm:asm']],
  ])('is asked for by the name in the records of the vendor as well: %s', (purl, asked) => {
    expect(identityOf({ purl }).questions.map(({ name }) => name)).toEqual(asked)
  })

  test.each([
    'pkg:deb/debian/rootio-curl@7.8-1%2Bdeb12u5.root.io.1',
    'pkg:npm/%40rootio/semver@7.1.0-root.io.1',
    'pkg:maven/io.root.org.ow2.asm/asm@9.1-root.io.1',
    'pkg:deb/debian/curl@7.8-1%2Bdeb12u5',
    'pkg:apk/wolfi/zlib@1.2.13-r10071',
    'pkg:npm/chroot.io@1.0.0',
  ])('is not what has that name already, or the version of upstream: %s', (purl) => {
    expect(identityOf({ purl }).questions).toHaveLength(1)
  })
})

describe('names', () => {
  test('are compared as their ecosystem does', () => {
    const folded = ['NuGet', 'Packagist', 'Hex', 'Go', 'GitHub Actions', 'SwiftURL', 'VSCode']
    expect(folded.map((base) => normalName(base, 'A_B.c'))).toEqual(folded.map(() => 'a_b.c'))
    expect(normalName('PyPI', 'A_B..c')).toBe('a-b-c')
    expect(normalName('SwiftURL', 'https://github.com/Apple/swift-nio.git')).toBe('github.com/apple/swift-nio')
    for (const base of ['npm', 'Maven', 'RubyGems', 'Debian', 'Alpine', null])
      expect(normalName(base, 'A_B.c')).toBe('A_B.c')
  })

  test('of npm and Alpine keep the case that the package URL has', () => {
    expect(told('pkg:npm/JSONStream@1')[1]).toBe('JSONStream')
    expect(told('pkg:npm/%40Scope/Name@1')[1]).toBe('@Scope/Name')
    expect(told('pkg:apk/alpine/R@1')[1]).toBe('R')
  })

  test('of npm are asked as the SBOM writes them, too, where the package URL is in lower case', () => {
    const asked = (purl: string, name: string) => identityOf({ purl, name }).questions.map((question) => question.name)
    expect(asked('pkg:npm/jsonstream@1', 'JSONStream')).toEqual(['jsonstream', 'JSONStream'])
    expect(asked('pkg:npm/jsonstream@1', 'jsonstream')).toEqual(['jsonstream'])
    expect(asked('pkg:npm/JSONStream@1', 'jsonstream')).toEqual(['JSONStream'])
    expect(asked('pkg:npm/a@1', 'Other')).toEqual(['a'])
  })

  test('are kept by the rule of the ecosystem behind a vendor', () => {
    expect(packageKey('Root:NuGet', 'A.B')).toBe('a.b')
    expect(packageKey('Root:PyPI', 'A.B')).toBe('a-b')
    expect(packageKey('Root:npm', 'A.B')).toBe('A.B')
    expect(packageKey('Maven:https://x', 'A.B')).toBe('A.B')
  })
})
