import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import AdmZip from 'adm-zip'
import { expect, onTestFinished, test } from 'vitest'
import { evaluate } from '../../src/api/scanners/query-evaluate.ts'
import { querySourceOf } from '../../src/api/scanners/query-source.ts'
import { MirrorError } from '../../src/core/errors.ts'
import { createFairQueue } from '../../src/core/fair-queue.ts'
import { judgeComponents } from '../../src/judging/judge.ts'
import { judgeSourceOf } from '../../src/judging/package-source.ts'
import { readInputSbom } from '../../src/sboms/read.ts'
import type { InputSbom } from '../../src/sboms/sbom.ts'
import { parseRecord } from '../../src/query/search.ts'
import { openShortReads } from '../../src/store/reads.ts'
import { generationDir, readCurrentViews } from '../../src/store/views/generations.ts'
import { type Views, openViews } from '../../src/store/views/reads.ts'
import { makeOsvViews } from '../../src/views/osv/views.ts'
import { openFilledStore } from '../support/filled-store.ts'

const SBOMS = resolve('../shared/data/sboms')
const RECORDS = ['osv-real.zip', 'series/t2.zip'].map((name) => resolve('../shared/data', name))

/** Queries in one batch: few enough that no answer of these records has a second page. */
const BATCH = 50

async function viewsOf(archives: readonly string[]): Promise<Views> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-match-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const records = archives.flatMap((archive) =>
    new AdmZip(archive).getEntries().map((entry) => {
      const content = entry.getData()
      return [String(parseRecord(content).id), content] as const
    }),
  )
  const store = openFilledStore(dir)
  store.publishOsv(Object.fromEntries(records))
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
      ...{ source: querySourceOf(views), turns: createFairQueue(), now: () => 0 },
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
  return new Map(
    [...found].map(([key, ones]) => [key, [...new Set(ones.map(({ id }) => id))].sort()]),
  )
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
    const views = await viewsOf(RECORDS)
    const sboms = readdirSync(SBOMS).flatMap((file) => {
      const sbom = readOrNull(file)
      return sbom === null ? [] : [{ file, sbom }]
    })
    expect(sboms.length).toBeGreaterThanOrEqual(10)
    let findings = 0
    for (const { file, sbom } of sboms) {
      const [expected, found] = [await queried(views, sbom), await matched(views, sbom)]
      expect([file, [...found].sort()]).toEqual([file, [...expected].sort()])
      findings += [...found.values()].flat().length
    }
    expect(findings).toBeGreaterThan(50)
  },
)
