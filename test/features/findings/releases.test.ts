import Database from 'better-sqlite3'
import { join } from 'node:path'
import { expect } from 'vitest'
import { readCurrentViews } from '../../../src/features/scanners/store/generations.ts'
import { derivedVendors } from '../../../src/features/scanners/views/osv/ecosystems.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import {
  type FindingsBench,
  affecting,
  expectAgreement,
  openFindingsBench,
  readFindings,
  visibleRows,
} from './fixtures.ts'
import { removeFindings } from '../../../src/store/findings/database.ts'
import { longTest, test } from '../../support/tables.ts'

const LIBSSL = 'pkg:deb/debian/libssl3@3.0.9-1?arch=amd64&distro=debian-12&upstream=openssl'
const CURL = 'pkg:deb/debian/curl@7.88.1-9?distro=debian-12'
/** Its source has an epoch, and it has none. */
const ERRNO = 'pkg:rpm/almalinux/perl-Errno@1.30-481.el9?distro=almalinux-9&upstream=perl-5.32.1-481.el9.src.rpm'
const ZLIB = 'pkg:conan/zlib@1.2.11'
const BARE = 'pkg:deb/debian/openssl@3.0.9-1'

/** An SBOM with packages, as an SBOM of an image names its operating system. */
function imageOf(purls: readonly string[], version: string | null): string {
  const system = { type: 'operating-system', name: 'debian', version }
  const components = purls.map((purl) => ({ type: 'library', name: 'a', purl }))
  const all = version === null ? components : [system, ...components]
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components: all })
}

/** One tag with these packages, judged by no record yet. */
async function openTag(purls: readonly string[], version: string | null = null) {
  const bench = await openFindingsBench({ images: 1, tags: 1 })
  const [tag = ''] = bench.sandbox.service.ids('tags')
  const write = (listed: readonly string[], release: string | null) =>
    bench.sandbox.service.writeArtifact('tag', tag, 'sbom', imageOf(listed, release))
  write(purls, version)
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  return { ...bench, tag, write }
}

const found = (bench: FindingsBench): string[] => visibleRows(bench.known()).map((row) => row.replace(/^\S+ /, ''))

const countsOf = (bench: FindingsBench, tag: string) => readFindings(bench.dir, (reads) => reads.readTag(tag))

longTest(
  'a new record about a source package, or another release, is followed to the components that it is about',
  async () => {
    const bench = await openTag([LIBSSL, CURL])
    await bench.publish({ 'D-13': affecting('Debian:13', 'openssl', '3.5.1-1') })
    await bench.judge()
    expect(found(bench)).toEqual([])
    await bench.publish({ 'D-12': affecting('Debian:12', 'openssl', '3.0.11-1') })
    expect(await bench.judge()).toMatchObject({ records: { components: 1, tags: 1 } })
    expect(found(bench)).toEqual(['Debian:12 libssl3@3.0.9-1 D-12 by openssl fixable'])
    await expectAgreement(bench)
    const [listed] = readFindings(bench.dir, (reads) => reads.listTagsWith('D-12').tags)
    expect(listed).toMatchObject({ package: 'libssl3', source: 'openssl' })

    await bench.publish({ 'D-12': affecting('Debian:12', 'libssl3', '3.0.11-1') })
    await bench.judge()
    expect(found(bench)).toEqual(['Debian:12 libssl3@3.0.9-1 D-12 fixable'])
    await expectAgreement(bench)
    await bench.publish({ 'D-12': affecting('Debian:11', 'openssl', '3.0.11-1') })
    await bench.judge()
    expect(found(bench)).toEqual([])
    await expectAgreement(bench)
  },
)

longTest('a record of AlmaLinux that comes to name a package is compared with it by that name alone', async () => {
  const bench = await openTag([ERRNO])
  const bySource = affecting('AlmaLinux:9', 'perl', '4:5.32.1-482.el9') as { affected: object[] }
  await bench.publish({ L: bySource })
  await bench.judge()
  expect(found(bench)).toEqual(['AlmaLinux:9 perl-Errno@1.30-481.el9 L by perl fixable'])
  await expectAgreement(bench)
  const own = affecting('AlmaLinux:9', 'perl-Errno', '1.30-481.el9') as { affected: object[] }
  await bench.publish({ L: { affected: [...bySource.affected, ...own.affected] } })
  await bench.judge()
  expect(found(bench)).toEqual([])
  await expectAgreement(bench)
})

longTest(
  'a package of a module has the findings of its stream, and one whose stream is not known is in doubt',
  async () => {
    const node = (version: string) => `pkg:rpm/almalinux/nodejs@1:${version}.module_el8.9.0+1+a?distro=almalinux-8`
    const bench = await openTag([node('20.1.0-1'), `${node('20.1.0-2')}&rpmmod=nodejs:20:809:rhel8`])
    const fix = (stream: number) => ({
      ...affecting('AlmaLinux:8', 'nodejs', `1:${stream}.2.0-1.module_el8.9.0+${stream}+b`),
      summary: `Important: nodejs:${stream} security update`,
    })
    await bench.publish({ 'A-18': fix(18), 'A-22': fix(22) })
    await bench.judge()
    const row = (version: string, record: string) =>
      `AlmaLinux:8 nodejs@1:${version}.module_el8.9.0+1+a ${record} fixable`
    expect(found(bench)).toEqual([row('20.1.0-1', 'A-22')])
    expect(countsOf(bench, bench.tag)).toMatchObject({ notJudged: 1 })
    await expectAgreement(bench)
    await bench.publish({ 'A-20': fix(20) })
    await bench.judge()
    expect(found(bench)).toEqual([row('20.1.0-1', 'A-20'), row('20.1.0-1', 'A-22'), row('20.1.0-2', 'A-20')])
    await expectAgreement(bench)
  },
)

longTest(
  'a package without a release has that of the operating system of its SBOM, else the records of all releases',
  async () => {
    const bench = await openTag([BARE], '12.7')
    await bench.publish({
      'D-12': affecting('Debian:12', 'openssl', '3.0.9-1'),
      'D-13': affecting('Debian:13', 'openssl', '3.5.1-1'),
    })
    await bench.judge()
    expect(found(bench)).toEqual([])
    expect(countsOf(bench, bench.tag)).toMatchObject({ allReleases: 0, binaryNameOnly: 1 })
    bench.write([BARE], null)
    await bench.crawl()
    await bench.judge()
    expect(found(bench)).toEqual(['Debian openssl@3.0.9-1 D-13 fixable'])
    expect(countsOf(bench, bench.tag)).toMatchObject({ allReleases: 1, binaryNameOnly: 1 })
    await expectAgreement(bench)
  },
)

test('an image that moves to another release keeps the findings that it still has', async () => {
  const bench = await openTag([BARE], '12')
  const affected = ['Debian:12', 'Debian:13'].flatMap(
    (ecosystem) => (affecting(ecosystem, 'openssl', null) as { affected: object[] }).affected,
  )
  await bench.publish({ D: { affected } })
  await bench.judge()
  const { last } = (await bench.judge()) ?? { last: 0 }
  bench.write([BARE], '13')
  await bench.crawl()
  expect(await bench.judge()).toMatchObject({ read: 1, tags: 0, last })
  expect(found(bench)).toEqual(['Debian:13 openssl@3.0.9-1 D'])
})

longTest(
  'packages without a record of their release, or none that can be compared, are counted as not judged as records come and go',
  async () => {
    const bench = await openTag(['pkg:rpm/mageia/curl@7.88.1-9?distro=mageia-9', ZLIB])
    const notJudged = async (): Promise<number | undefined> => {
      await bench.judge()
      await expectAgreement(bench)
      return countsOf(bench, bench.tag)?.notJudged
    }
    expect(await notJudged()).toBe(2) // neither ecosystem has a record
    await bench.publish({ 'M-8': affecting('Mageia:8', 'curl', null) })
    expect(await notJudged()).toBe(2)
    await bench.publish({ 'M-9': affecting('Mageia:9', 'other', null) })
    expect(await notJudged()).toBe(1)
    await bench.publish({ 'C-0': affecting('ConanCenter', 'other', '2') })
    expect(await notJudged()).toBe(0)
    await bench.publish({ 'C-1': affecting('ConanCenter', 'zlib', '1.2.12') })
    expect(await notJudged()).toBe(1)
    await bench.publish({
      'C-1': { affected: [{ package: { ecosystem: 'ConanCenter', name: 'zlib' }, versions: ['1'] }] },
    })
    expect(await notJudged()).toBe(0)
    await bench.publish({ 'C-1': affecting('ConanCenter', 'zlib', '1.2.12') })
    expect(await notJudged()).toBe(1)
    await bench.publish({ 'C-1': affecting('ConanCenter', 'other', '1') })
    expect(await notJudged()).toBe(0)
    await bench.publish({ 'M-9': null })
    expect(await notJudged()).toBe(1)
    // A record without a release does not say that this release was looked at, where others name theirs.
    await bench.publish({ 'M-0': affecting('Mageia', 'other', null) })
    expect(await notJudged()).toBe(1)
    await bench.publish({ 'M-8': null })
    expect(await notJudged()).toBe(0)
    await bench.publish({ 'M-8': affecting('Mageia:8', 'curl', null) })
    expect(await notJudged()).toBe(1)
    await bench.publish({ 'M-9': affecting('Mageia:9', 'other', null) })
    expect(await notJudged()).toBe(0)
  },
)

longTest(
  'a version that names no single one is not judged completely while a record tells those apart that it may be',
  async () => {
    const bench = await openTag(['pkg:githubactions/a/action@v4', 'pkg:githubactions/a/action@v4.1.5'])
    const notJudged = async (records: Parameters<FindingsBench['publish']>[0]) => {
      await bench.publish(records)
      await bench.judge()
      await expectAgreement(bench)
      return countsOf(bench, bench.tag)?.notJudged
    }
    expect(await notJudged({ G: affecting('GitHub Actions', 'a/other', '4.1.5') })).toBe(0)
    const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '4.1.0' }, { fixed: '4.1.5' }] }]
    const about = { affected: [{ package: { ecosystem: 'GitHub Actions', name: 'a/action' }, ranges }] }
    expect(await notJudged({ G: about })).toBe(1)
    expect(found(bench)).toEqual([])
    expect(await notJudged({ G: affecting('GitHub Actions', 'a/other', '4.1.5') })).toBe(0)
  },
)

const APK = 'pkg:apk/alpine/libcrypto3@3.1.4-r0?distro=alpine-3.18.6&upstream=openssl'

longTest(
  'an image that came after the last look at releases is judged when the first record of its release comes',
  async () => {
    const bench = await openTag([])
    await bench.publish({ 'A-19': affecting('Alpine:v3.19', 'other', null), A: affecting('Alpine', 'other', null) })
    await bench.judge()
    bench.write([APK], null)
    await bench.crawl()
    await bench.judge()
    expect(countsOf(bench, bench.tag)?.notJudged).toBe(1)
    await bench.publish({ 'A-18': affecting('Alpine:v3.18', 'other', null) })
    await bench.judge()
    expect(countsOf(bench, bench.tag)?.notJudged).toBe(0)
    await expectAgreement(bench)
  },
)

longTest(
  'the last record of a release goes after a judgement of everything: its packages are not judged any more',
  async () => {
    const bench = await openTag([APK])
    await bench.publish({ 'A-19': affecting('Alpine:v3.19', 'other', null), A: affecting('Alpine', 'other', null) })
    await bench.judge()
    await bench.publish({ 'A-18': affecting('Alpine:v3.18', 'other', null) })
    bench.forgetForm()
    expect(await bench.judge()).toMatchObject({ records: { records: null } })
    expect(countsOf(bench, bench.tag)?.notJudged).toBe(0)
    await bench.publish({ 'A-18': null })
    await bench.judge()
    expect(countsOf(bench, bench.tag)?.notJudged).toBe(1)
    await expectAgreement(bench)
  },
)

longTest(
  'findings that go because other records are mirrored have a cause of their own, and come back by it',
  async () => {
    const bench = await openTag([CURL])
    const logged = () =>
      readFindings(bench.dir, (reads) => reads.listLog(0, 100)).map(({ cause, found, gone }) => [cause, found, gone])
    const mirror = async (include: string): Promise<void> => {
      await bench.runWith({ PATCHMIRROR_OSV_SCOPE: include }, 'osv')
      const vendors = derivedVendors(bench.config.views)
      await performTask({ dataDir: bench.dir, kind: 'osv', vendors, rebuild: false })
      await bench.judge()
    }
    await bench.publish({ 'T-1': affecting('Debian:12', 'curl', null), 'U-1': affecting('npm', 'u', null) })
    await bench.judge()
    await mirror('U-')
    await mirror('')
    await bench.publish({ 'T-1': null })
    await bench.judge()
    expect(logged()).toEqual([
      ['records', 1, 0],
      ['scope', 0, 1],
      ['scope', 1, 0],
      ['records', 0, 1],
    ])
  },
)

longTest(
  'the scope is that of the judged records, also where other ones are stored by now, and unknown without their run',
  async () => {
    const bench = await openTag([CURL])
    const vendors = derivedVendors(bench.config.views)
    /** Publishes under a scope and builds views; then a further snapshot is stored, which has none yet. */
    const mirror = async (include: string, further: string): Promise<void> => {
      await bench.runWith({ PATCHMIRROR_OSV_SCOPE: include }, 'osv')
      await performTask({ dataDir: bench.dir, kind: 'osv', vendors, rebuild: false })
      const record = { id: further, modified: new Date().toISOString(), ...affecting('npm', 'u', null) }
      bench.sandbox.feed.put(further, JSON.stringify(record), record.modified)
      await bench.runWith({ PATCHMIRROR_OSV_SCOPE: include }, 'osv')
    }
    await bench.publish({ 'T-1': affecting('Debian:12', 'curl', null), 'U-1': affecting('npm', 'u', null) })
    await mirror('', 'U-2')
    removeFindings(bench.dir)
    await bench.judge()
    await bench.publish({ 'T-2': affecting('Debian:12', 'curl', null) })
    await bench.judge()
    await mirror('U-', 'U-3')
    await bench.judge()
    await mirror('', 'U-4')
    const snapshot = readCurrentViews(bench.dir, 'osv')?.snapshot ?? ''
    const db = new Database(join(bench.dir, 'mirror.db'))
    expect(db.prepare('DELETE FROM run WHERE snapshot = ?').run(snapshot).changes).toBe(1)
    db.close()
    await bench.judge()
    await bench.publish({ 'T-1': null })
    await bench.judge()
    await bench.publish({ 'T-2': null })
    await bench.judge()
    const logged = readFindings(bench.dir, (reads) => reads.listLog(0, 100))
    expect(logged.map(({ cause, found, gone }) => [cause, found, gone])).toEqual([
      ['records', 1, 0],
      ['scope', 0, 2],
      ['unknown', 2, 0],
      ['unknown', 0, 1],
      ['records', 0, 1],
    ])
  },
)
