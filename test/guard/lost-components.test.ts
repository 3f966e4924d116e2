import { describe, expect, test } from 'vitest'
import { lostComponents } from '../../src/guard/lost-components.ts'
import { readInputSbom } from '../../src/sboms/read.ts'
import { sbomOf } from '../findings/fixtures.ts'

const sbomWith = (...purls: string[]) => readInputSbom(Buffer.from(sbomOf('image', ...purls)))
const OLD = sbomWith('pkg:deb/debian/libx1@1-1?distro=debian-12&upstream=xsource')
const replacedBy = (purl: string) => lostComponents(OLD, sbomWith(purl))

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
