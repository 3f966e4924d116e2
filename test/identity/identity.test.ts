import { expect, test } from 'vitest'
import {
  type ComponentFacts,
  type Identity,
  type Surroundings,
  identifyComponent,
} from '../../src/identity/identity.ts'

const ALONE: Surroundings = { distribution: null }

function identityOf(facts: Partial<ComponentFacts>, around = ALONE): Identity {
  const found = identifyComponent({ purl: null, name: '', version: '', source: null, ...facts }, around) // prettier-ignore
  if ('code' in found) throw new Error(found.reason)
  return found
}

function releaseOf(purl: string): string | null {
  return identityOf({ purl }).release?.name ?? null
}

test('a release is read in every spelling that generators use', () => {
  const known: Record<string, string | null> = {
    'pkg:deb/debian/a@1?distro=debian-12': 'Debian:12',
    'pkg:deb/debian/a@1?distro=debian-12.7': 'Debian:12',
    'pkg:deb/debian/a@1?distro=bookworm': 'Debian:12',
    'pkg:deb/debian/a@1?distro=12': 'Debian:12',
    'pkg:deb/debian/a@1?distro=debian-bookworm': 'Debian:12',
    'pkg:deb/debian/a@1?distro=sid': 'Debian:sid',
    'pkg:deb/debian/a@1?distro=ubuntu-22.04': null,
    'pkg:deb/ubuntu/a@1?distro=ubuntu-22.04': 'Ubuntu:22.04',
    'pkg:deb/ubuntu/a@1?distro=jammy': 'Ubuntu:22.04',
    'pkg:apk/alpine/a@1?distro=alpine-3.18.6': 'Alpine:v3.18',
    'pkg:apk/alpine/a@1?distro=3.18': 'Alpine:v3.18',
    'pkg:apk/alpine/a@1?distro=edge': 'Alpine:edge',
    'pkg:rpm/rhel/a@1?distro=rhel-9.4': 'Red Hat:enterprise_linux:9.4',
    'pkg:rpm/alma/a@1?distro=almalinux-9.6': 'AlmaLinux:9',
    'pkg:rpm/rocky/a@1?distro=rocky-9': 'Rocky Linux:9',
    'pkg:rpm/opensuse-leap/a@1?distro=opensuse-leap-15.6': 'openSUSE:Leap 15.6',
    'pkg:rpm/opensuse.tumbleweed/a@1?distro=opensuse.tumbleweed-20240101': 'openSUSE:Tumbleweed',
    'pkg:rpm/sles/a@1?distro=sles-15.5': 'SUSE:15 SP5',
    'pkg:rpm/azurelinux/a@1?distro=azurelinux-3.0': 'Azure Linux:3',
    'pkg:rpm/openeuler/a@1?distro=openeuler-22.03': 'openEuler:22.03',
    'pkg:apk/wolfi/a@1?distro=wolfi-20230201': null,
  }
  const read = Object.keys(known).map((purl) => [purl, releaseOf(purl)])
  expect(Object.fromEntries(read)).toEqual(known)
})
