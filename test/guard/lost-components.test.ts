import { describe, expect, test } from 'vitest'
import { lostComponents } from '../../src/guard/lost-components.ts'
import { readInputSbom } from '../../src/documents/sboms/read.ts'
import { sbomOf } from '../features/findings/fixtures.ts'

const sbomWith = (...purls: string[]) => readInputSbom(Buffer.from(sbomOf('image', ...purls)))
const OLD = sbomWith('pkg:deb/debian/libx1@1-1?distro=debian-12&upstream=xsource')
const replacedBy = (purl: string) => lostComponents(OLD, sbomWith(purl), null)

describe('a package that keeps its name in an SBOM of the same image', () => {
  test.each([
    ['its source package is dropped', 'pkg:deb/debian/libx1@1-1?distro=debian-12'],
    ['it has another source package', 'pkg:deb/debian/libx1@1-1?distro=debian-12&upstream=other'],
    ['it is of another release', 'pkg:deb/debian/libx1@1-1?distro=debian-13&upstream=xsource'],
    ['it has no version any more', 'pkg:deb/debian/libx1?distro=debian-12&upstream=xsource'],
  ])('is lost where %s', (_, purl) => {
    expect(replacedBy(purl)).toMatchObject({ isShrunk: true, lost: [{ name: 'pkg:deb/debian/libx1' }] })
  })

  test('is named with what records are not asked of any more', () => {
    const [lost] = replacedBy('pkg:deb/debian/libx1@1-1?distro=debian-12').lost
    expect(lost?.because).toBe('not compared as xsource of Debian:12 any more')
  })

  test.each([
    ['it has another version', 'pkg:deb/debian/libx1@2-1?distro=debian-12&upstream=xsource%402-1'],
    ['its release is written otherwise', 'pkg:deb/debian/libx1@1-1?arch=amd64&distro=bookworm&upstream=xsource'],
    ['its release is not named any more', 'pkg:deb/debian/libx1@1-1?upstream=xsource'],
  ])('is not lost where %s', (_, purl) => {
    expect(replacedBy(purl).lost).toEqual([])
  })
})

describe('in an SBOM of the same digest, a package is lost', () => {
  const lostBy = (before: string, after: string) => lostComponents(sbomWith(before), sbomWith(after), 'same').lost

  test.each([
    ['its version is raised', 'pkg:npm/a@1.0.0', 'pkg:npm/a@99.0.0'],
    ['an epoch comes', 'pkg:deb/debian/a@1-1?distro=debian-12', 'pkg:deb/debian/a@1:1-1?distro=debian-12'],
    ['the version of its source is raised', 'pkg:deb/debian/a@1?upstream=b%401', 'pkg:deb/debian/a@1?upstream=b%4099'],
    ['it is written as another type', 'pkg:npm/a@1.0.0', 'pkg:pypi/a@1.0.0'],
  ])('where %s', (_, before, after) => {
    const [lost] = lostBy(before, after)
    expect(lost?.purls).toEqual([before])
  })

  test.each([
    ['its version is written otherwise', 'pkg:pypi/a@1.0', 'pkg:pypi/a@1.0.0'],
    ['others come', 'pkg:npm/a@1.0.0', 'pkg:npm/a@1.0.0?arch=x'],
  ])('but not where %s', (_, before, after) => {
    expect(lostBy(before, after)).toEqual([])
  })

  test('in one of its versions alone, where it has several', () => {
    const two = sbomWith('pkg:npm/a@1.0.0', 'pkg:npm/a@2.0.0')
    const { lost } = lostComponents(two, sbomWith('pkg:npm/a@2.0.0'), 'same')
    expect(lost).toMatchObject([{ name: 'pkg:npm/a', purls: ['pkg:npm/a@1.0.0'] }])
  })
})
