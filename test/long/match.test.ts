import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import AdmZip from 'adm-zip'
import { expect, onTestFinished, test } from 'vitest'
import { evaluate } from '../../src/features/scanners/routes/query-evaluate.ts'
import { querySourceOf } from '../../src/features/scanners/routes/query-source.ts'
import { MirrorError } from '../../src/base/errors.ts'
import { createFairQueue } from '../../src/base/pacing.ts'
import { judgeComponents } from '../../src/features/match/judging/judge.ts'
import { judgeSourceOf } from '../../src/features/match/judging/package-source.ts'
import { readInputSbom } from '../../src/documents/sboms/read.ts'
import type { InputSbom } from '../../src/documents/sboms/sbom.ts'
import { parseRecord } from '../../src/features/scanners/records/search.ts'
import { openShortReads } from '../../src/store/reads.ts'
import { generationDir, readCurrentViews } from '../../src/features/scanners/store/generations.ts'
import { type Views, openViews } from '../../src/features/scanners/store/reads.ts'
import { makeOsvViews } from '../../src/features/scanners/views/osv/views.ts'
import { createRandom } from '../sandbox/feed/random.ts'
import { openFilledStore } from '../support/filled-store.ts'

const SBOMS = resolve('../shared/data/sboms')
const RECORDS = ['osv-real.zip', 'series/t2.zip'].map((name) => resolve('../shared/data', name))

/** Queries in one batch: few enough that no answer of these records has a second page. */
const BATCH = 50

function recordsIn(archives: readonly string[]): Record<string, Buffer> {
  const records = archives.flatMap((archive) =>
    new AdmZip(archive).getEntries().map((entry) => {
      const content = entry.getData()
      return [String(parseRecord(content).id), content] as const
    }),
  )
  return Object.fromEntries(records)
}

async function viewsOf(records: Readonly<Record<string, Buffer | string>>): Promise<Views> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-match-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const store = openFilledStore(dir)
  store.publishOsv(records)
  store.close()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: ['Root'], pause })
  reads.close()
  const views = openViews(generationDir(dir, readCurrentViews(dir, 'osv')?.name ?? ''))
  onTestFinished(() => views.close())
  return views
}

/** Ids by package URL and version, as a client of the query API gets them that asks about each component. */
async function queried(views: Views, { components }: InputSbom): Promise<Map<string, string[]>> {
  const asked = new Map(
    components.flatMap(({ purl, version }) => {
      if (purl === null || !/^pkg:\w+\/[^@?#]/.test(purl)) return []
      const hasOwn = /@[^/?#]+(?:[?#]|$)/.test(purl)
      if (!hasOwn && version === '') return []
      const query = { package: { purl }, ...(!hasOwn && { version }) }
      return [[JSON.stringify(hasOwn ? [purl] : [purl, version]), query] as const]
    }),
  )
  const found = new Map<string, string[]>()
  const all = [...asked]
  for (let from = 0; from < all.length; from += BATCH) {
    const part = all.slice(from, from + BATCH)
    const body = Buffer.from(JSON.stringify({ queries: part.map(([, query]) => query) }))
    const answer = await evaluate('querybatch', body, {
      source: querySourceOf(views),
      turns: createFairQueue(),
      now: () => 0,
      leftOut: () => null,
      isGone: () => false,
    })
    const { results } = JSON.parse(answer.body.toString()) as {
      results: { vulns?: { id: string }[]; next_page_token?: string }[]
    }
    for (const [at, [key]] of part.entries()) {
      expect(results[at]?.next_page_token).toBeUndefined()
      const ids = (results[at]?.vulns ?? []).map(({ id }) => id).sort()
      if (ids.length > 0) found.set(key, ids)
    }
  }
  return found
}

/** The same, as the findings of the SBOM have it. */
async function matched(views: Views, sbom: InputSbom): Promise<Map<string, string[]>> {
  const { findings } = await judgeComponents(sbom.components, judgeSourceOf(views), {
    check: () => undefined,
  })
  const found = Map.groupBy(findings, ({ component: { purl, version } }) =>
    JSON.stringify(/@[^/?#]+(?:[?#]|$)/.test(purl ?? '') ? [purl] : [purl, version]),
  )
  return new Map([...found].map(([key, ones]) => [key, [...new Set(ones.map(({ id }) => id))].sort()]))
}

function readOrNull(file: string): InputSbom | null {
  try {
    return readInputSbom(readFileSync(join(SBOMS, file)))
  } catch (error) {
    if (error instanceof MirrorError) return null
    throw error
  }
}

test.skipIf(![SBOMS, ...RECORDS].every((path) => existsSync(path)))(
  'findings of real SBOMs by real records are those of the query API for each component',
  async () => {
    const views = await viewsOf(recordsIn(RECORDS))
    const sboms = readdirSync(SBOMS).flatMap((file) => {
      const sbom = readOrNull(file)
      return sbom === null ? [] : [{ file, sbom }]
    })
    expect(sboms.length).toBeGreaterThanOrEqual(10)
    let findings = 0
    for (const { file, sbom } of sboms) {
      const expected = await queried(views, sbom)
      const found = await matched(views, sbom)
      expect([file, [...found].sort()]).toEqual([file, [...expected].sort()])
      findings += [...found.values()].flat().length
    }
    expect(findings).toBeGreaterThan(50)
  },
)

/** A distribution, how generators spell two of its releases, and how its purls begin. */
const DISTRIBUTIONS = [
  {
    base: 'Debian',
    purl: 'pkg:deb/debian',
    releases: { '12': ['debian-12', 'debian-12.7', 'bookworm', '12'], '13': ['debian-13', 'trixie'] },
  },
  {
    base: 'Alpine',
    purl: 'pkg:apk/alpine',
    releases: { 'v3.18': ['alpine-3.18.6', '3.18', '3.18.12'], 'v3.21': ['alpine-3.21', '3.21.0'] },
  },
  { base: 'Rocky Linux', purl: 'pkg:rpm/rocky', releases: { '8': ['rocky-8.9', 'rocky-8'], '9': ['rocky-9.4'] } },
] as const

const NAMES = ['a', 'b', 'c', 'd']

interface MadeRecord {
  readonly id: string
  readonly base: string
  readonly release: string
  readonly name: string
  readonly fixed: number
}

/** A component as it is, and how an SBOM says it. */
interface MadeComponent {
  readonly base: string
  readonly release: string | null
  readonly name: string
  readonly version: number
  readonly source: { readonly name: string; readonly version: number } | null
  readonly listed: object
}

function makeRecords(random: ReturnType<typeof createRandom>): MadeRecord[] {
  return Array.from({ length: 60 }, (_, at) => {
    const { base, releases } = random.pick(DISTRIBUTIONS)
    const release = random.pick(Object.keys(releases))
    return { id: `R-${at}`, base, release, name: random.pick(NAMES), fixed: random.int(9) + 1 }
  })
}

function contentOf({ id, base, release, name, fixed }: MadeRecord): string {
  const events = [{ introduced: '0' }, { fixed: `${fixed}.0-r0` }]
  const affected = [{ package: { ecosystem: `${base}:${release}`, name }, ranges: [{ type: 'ECOSYSTEM', events }] }]
  return JSON.stringify({ id, modified: '2026-05-01T00:00:00Z', affected })
}

/** A component of a random distribution: its release in the purl or nowhere, its source in the purl, in properties or nowhere. */
function makeComponent(random: ReturnType<typeof createRandom>): MadeComponent {
  const { base, purl, releases } = random.pick(DISTRIBUTIONS)
  const named = random.int(3) > 0 ? random.pick(Object.entries(releases)) : null
  const name = random.pick([...NAMES, 'binary'])
  const version = random.int(9)
  const source = random.int(3) > 0 ? { name: random.pick(NAMES), version: random.int(9) } : null
  const isInPurl = source !== null && random.int(2) === 0
  const qualifiers = [
    ...(named === null ? [] : [`distro=${random.pick(named[1] as readonly string[])}`]),
    ...(isInPurl ? [`upstream=${source.name}%40${source.version}.0-r0`] : []),
  ]
  const properties = [
    { name: 'aquasecurity:trivy:SrcName', value: source?.name },
    { name: 'aquasecurity:trivy:SrcVersion', value: `${source?.version}.0-r0` },
  ]
  const listed = {
    type: 'library',
    name,
    purl: `${purl}/${name}@${version}.0-r0?arch=x&${qualifiers.join('&')}`,
    ...(source !== null && !isInPurl && { properties }),
  }
  return { base, release: named?.[0] ?? null, name, version, source, listed }
}

/** What a component has by a reading of the records that knows nothing of this program's. */
function expectedOf(one: MadeComponent, records: readonly MadeRecord[]): string[] {
  const isBelow = (name: string | undefined, version: number | undefined, record: MadeRecord) =>
    record.name === name && (version ?? 0) < record.fixed
  return records.flatMap((record) => {
    if (record.base !== one.base || (one.release ?? record.release) !== record.release) return []
    if (isBelow(one.name, one.version, record)) return [record.id]
    const { name, version } = one.source ?? {}
    // The epoch of an rpm's source with another version is not known: there a record that names the binary decides alone.
    if (one.base === 'Rocky Linux' && record.name === one.name && version !== one.version) return []
    return isBelow(name, version, record) ? [`${record.id} by ${name}`] : []
  })
}

test('findings by release and source package are those of an independent reading of generated records', async () => {
  const random = createRandom(37, 1)
  const records = makeRecords(random)
  const views = await viewsOf(Object.fromEntries(records.map((one) => [one.id, contentOf(one)])))
  const components = Array.from({ length: 2_000 }, () => makeComponent(random))
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    components: components.map((one, at) => ({ ...one.listed, 'bom-ref': String(at) })),
  }
  const sbom = readInputSbom(Buffer.from(JSON.stringify(document)))
  const { findings } = await judgeComponents(sbom.components, judgeSourceOf(views), { check: () => undefined })
  const found = Map.groupBy(
    findings.flatMap(({ id, source, component: { refs } }) =>
      refs.map((ref) => ({ ref, words: source === null ? id : `${id} by ${source}` })),
    ),
    ({ ref }) => ref,
  )
  let bySource = 0
  let inAll = 0
  for (const [at, one] of components.entries()) {
    const own = (found.get(String(at)) ?? []).map(({ words }) => words)
    const expected = expectedOf(one, records)
    expect([one, own.sort()]).toEqual([one, expected.sort()])
    bySource += expected.filter((words) => words.includes(' by ')).length
    if (one.release === null) inAll += expected.length
  }
  expect(Math.min(bySource, inAll)).toBeGreaterThan(500)
})
