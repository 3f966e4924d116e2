import { describe, expect, test } from 'vitest'
import { lostEntries } from '../../src/guard/feed-entries.ts'

interface Row {
  distroversion: string
  packages: { pkg: { name: string; secfixes?: Record<string, string[]>; cves?: object } }[]
}
type Feed = Record<string, Row[]>

const FEED: Feed = {
  alpine: ['3.18', '3.19'].map((distroversion) => ({
    distroversion,
    packages: [
      { pkg: { name: 'curl', secfixes: { '8.1-r7': ['CVE-1', 'CVE-2'], '8.0-r2': ['CVE-3'] } } },
      { pkg: { name: 'zlib', secfixes: { '1.3-r1': ['CVE-4'] } } },
    ],
  })),
  debian: [
    {
      distroversion: '12',
      packages: [{ pkg: { name: 'openssl', cves: { 'CVE-5': { fixed_versions: ['3.0.11-1~deb12u2'] } } } }],
    },
  ],
}

type Mutation = (feed: Feed) => void
const mutated = (mutate: Mutation): Feed => {
  const feed = structuredClone(FEED)
  mutate(feed)
  return feed
}
const packages = (feed: Feed) => Object.values(feed).flatMap((rows) => rows.flatMap((row) => row.packages))
const eachFixes = (feed: Feed, use: (fixes: Record<string, string[]>) => Record<string, string[]>): void => {
  for (const { pkg } of packages(feed)) if (pkg.secfixes) pkg.secfixes = use(pkg.secfixes)
}

/** The fixes of a feed, one for each vulnerability and version. */
const fixesIn = (feed: Feed) =>
  Object.entries(feed).flatMap(([family, releases]) =>
    releases.flatMap(({ distroversion, packages: listed }) =>
      listed.flatMap(({ pkg }) => {
        const place = { family, distroversion, name: pkg.name }
        const older = Object.keys(pkg.cves ?? {}).map((cve) => ({ ...place, cve, version: '3.0.11-1~deb12u2' }))
        const own = Object.entries(pkg.secfixes ?? {}).flatMap(([version, cves]) =>
          cves.map((cve) => ({ ...place, cve, version })),
        )
        return [...own, ...older]
      }),
    ),
  )

const row = ({ family, distroversion, name, cve, version }: ReturnType<typeof fixesIn>[number]) => ({
  ecosystem: family,
  osDistroMajor: distroversion,
  packageSrcName: name,
  cveIds: [cve],
  fixedVersion: version,
})

/** Other forms in which a service may write its feed. */
const FORMS: Record<string, (feed: Feed) => unknown> = {
  'as rows': (feed) => fixesIn(feed).map(row),
  'as rows within an object': (feed) => ({ data: fixesIn(feed).map(row) }),
  'as objects by names': (feed) => {
    const written: Record<string, Record<string, Record<string, Record<string, string>>>> = {}
    for (const { family, distroversion, name, cve, version } of fixesIn(feed)) {
      const release = ((written[family] ??= {})[distroversion] ??= {})
      ;(release[name] ??= {})[cve] = version
    }
    return written
  },
}

describe('a feed of patches in which', () => {
  test.each<[string, number, Mutation]>([
    ['fixes become version 0', 8, (feed) => eachFixes(feed, (fixes) => ({ '0': Object.values(fixes).flat() }))],
    [
      'revisions of fixes are lower',
      8,
      (feed) =>
        eachFixes(feed, (fixes) =>
          Object.fromEntries(Object.entries(fixes).map(([version, cves]) => [version.replace(/-r\d+$/, '-r0'), cves])),
        ),
    ],
    ['vulnerabilities are gone', 8, (feed) => eachFixes(feed, () => ({}))],
    [
      'vulnerabilities are others',
      8,
      (feed) =>
        eachFixes(feed, (fixes) =>
          Object.fromEntries(Object.entries(fixes).map(([version, cves]) => [version, cves.map((cve) => `${cve}9`)])),
        ),
    ],
    ['fixes cannot be read', 8, (feed) => eachFixes(feed, (fixes) => ({ 'none yet ;': Object.values(fixes).flat() }))],
    ['packages have other names', 9, (feed) => packages(feed).forEach(({ pkg }) => (pkg.name += '\u200b'))],
    ['a family is empty', 8, (feed) => (feed['alpine'] = [])],
    ['a family is not there', 1, (feed) => delete feed['debian']],
    ['the newest release is gone', 4, (feed) => feed['alpine']?.pop()],
    [
      'fixes of the older form are lower',
      1,
      (feed) =>
        packages(feed).forEach(({ pkg }) => pkg.cves && (pkg.cves = { 'CVE-5': { fixed_versions: ['3.0.1'] } })),
    ],
    [
      'a lower fix is beside the one before',
      6,
      (feed) => eachFixes(feed, (fixes) => ({ ...fixes, '0.1-r0': fixes['8.1-r7'] ?? fixes['1.3-r1'] ?? [] })),
    ],
  ])('%s has lost entries', (_name, count, mutate) => {
    const { lost, total } = lostEntries(FEED, mutated(mutate))
    expect(lost.filter(({ isEnded }) => !isEnded)).toHaveLength(count)
    expect(total).toBe(9)
  })

  test.each<[string, Mutation]>([
    ['fixes are added', (feed) => eachFixes(feed, (fixes) => ({ ...fixes, '9.0-r0': ['CVE-6'] }))],
    ['a release is added', (feed) => feed['alpine']?.push({ distroversion: '3.20', packages: [] })],
    [
      'fixes are raised',
      (feed) =>
        eachFixes(feed, (fixes) =>
          Object.fromEntries(Object.entries(fixes).map(([version, cves]) => [`${version}0`, cves])),
        ),
    ],
    ['rows change their order', (feed) => feed['alpine']?.reverse()],
  ])('%s has lost none', (_name, mutate) => {
    expect(lostEntries(FEED, mutated(mutate)).lost).toEqual([])
  })

  describe.each(Object.entries(FORMS))('%s', (_form, written) => {
    const lostIn = (mutate: Mutation) => lostEntries(written(FEED), written(mutated(mutate)))

    test('lower fixes, lost vulnerabilities and other names are lost entries', () => {
      const lowered = lostIn((feed) => eachFixes(feed, (fixes) => ({ '0': Object.values(fixes).flat() })))
      expect([lowered.lost.length, lowered.total]).toEqual([8, 9])
      expect(lostIn((feed) => eachFixes(feed, () => ({}))).lost).toHaveLength(8)
      expect(lostIn((feed) => packages(feed).forEach(({ pkg }) => (pkg.name += '2'))).lost).toHaveLength(9)
    })

    test('raised fixes, added ones and another order are none', () => {
      const raised = lostIn((feed) => {
        eachFixes(feed, (fixes) => ({ ...fixes, '9.0-r0': ['CVE-6'] }))
        feed['alpine']?.reverse()
      })
      expect(raised.lost).toEqual([])
    })

    test('written as a tree before is compared with it', () => {
      const { lost } = lostEntries(FEED, written(mutated((feed) => eachFixes(feed, () => ({})))))
      expect(lost).toHaveLength(8)
    })
  })

  test('an older release ended has lost its entries with it', () => {
    const { lost } = lostEntries(
      FEED,
      mutated((feed) => feed['alpine']?.shift()),
    )
    expect(lost.map(({ isEnded }) => isEnded)).toEqual([true, true, true, true])
  })
})
