import Database from 'better-sqlite3'
import { surroundingsOf } from '../../../src/base/identity/surroundings.ts'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { performFindings } from '../../../src/features/findings/task.ts'
import { identityOf } from '../../../src/features/match/judging/components.ts'
import type { MatchResult } from '../../../src/features/match/result.ts'
import { createMatcher } from '../../../src/features/match/matcher.ts'
import { isFixable } from '../../../src/features/match/judging/patches.ts'
import type { InputSbom } from '../../../src/documents/sboms/sbom.ts'
import { readMirroredSboms, sbomDigestsOf } from '../../../src/documents/sboms/mirrored.ts'
import type { ServiceOptions } from '../../sandbox/service/options.ts'
import { findingsPath, withFindings } from '../../../src/store/findings/database.ts'
import { createFindingsReads } from '../../../src/store/findings/reads.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { derivedVendors } from '../../../src/features/scanners/views/osv/ecosystems.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { type Bench, createBench } from '../../support/mirror.ts'

/** A mirror of a service with tags and their SBOMs, and what judges them. */
export interface FindingsBench extends Bench {
  /** Has the mirror take over records: their content by id, null for one that is removed. */
  publish: (records: Readonly<Record<string, object | null>>) => Promise<void>
  /** Has the mirror take over the catalog. */
  crawl: () => Promise<void>
  judge: (now?: number) => ReturnType<typeof performFindings>
  /** What is known of all tags, their findings and components, and the state, without numbers of rows. */
  known: () => Known
  /** The same, made from the beginning; what was known stays as it is. */
  fresh: () => Promise<Known>
  /** What `patchmirror match` finds in the SBOMs of a tag and VEX does not rule out: package, version and record, each once. */
  matched: (tag: string) => Promise<string[]>
  /** How many components of the only SBOM of a tag `patchmirror match` does not judge, or not completely; null: several SBOMs. */
  notJudged: (tag: string) => Promise<number | null>
  /** How many VEX documents `patchmirror match` could not read when it judged an SBOM of a tag. */
  unreadVex: (tag: string) => Promise<number | null>
  /** Has the next judgement compare everything, as that of a later version does. */
  forgetForm: () => void
}

type Known = ReturnType<typeof readKnown>

/** Opens a bench until the test ends. `guard`: what the guard does about changes that hide findings. */
export async function openFindingsBench(
  service: ServiceOptions = {},
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
  guard: 'enforce' | 'warn' = 'enforce',
): Promise<FindingsBench> {
  const bench = await createBench({
    sandbox: { records: 1, service: { images: 2, tags: 4, packages: 1, tickets: 2, ...service } },
    envOf: catalogEnv,
    env: {
      PATCHMIRROR_CATALOG_SCOPE: 'all',
      PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20',
      PATCHMIRROR_GUARD_MODE: guard,
    },
  })
  atEnd(() => bench.close())
  const { dir, config, sandbox } = bench
  let stamps = 0
  const judge = (now = Date.now()) => performFindings({ dataDir: dir, served: null, keepDays: 30 }, now)
  const run = async (source: 'osv' | 'catalog'): Promise<void> => {
    const { state, message } = await bench.run(source)
    if (state !== 'complete') throw new Error(`${source} is ${state}: ${message}`)
  }
  return {
    ...bench,
    judge,
    async publish(records) {
      for (const [id, record] of Object.entries(records)) {
        const stamp = new Date(Date.UTC(2026, 4, 1) + ++stamps).toISOString()
        if (record === null) sandbox.feed.delete(id)
        else sandbox.feed.put(id, JSON.stringify({ id, modified: stamp, ...record }), stamp)
      }
      await run('osv')
      const vendors = derivedVendors(config.views)
      await performTask({ dataDir: dir, kind: 'osv', vendors, rebuild: false })
    },
    crawl: () => run('catalog'),
    known: () => readKnown(dir),
    async fresh() {
      const path = join(dir, 'derived', 'findings.db')
      renameSync(path, `${path}.aside`)
      await judge()
      const made = readKnown(dir)
      renameSync(`${path}.aside`, path)
      return made
    },
    matched: (tag) => matchedOf(bench, tag),
    notJudged: (tag) => notJudgedOf(bench, tag),
    async unreadVex(tag) {
      const [unread = null] = await matchSboms(bench, tag, (_, { vex }) => vex.unread)
      return unread
    },
    forgetForm() {
      const db = new Database(findingsPath(dir))
      db.exec("UPDATE state SET form = 'of an earlier version'; PRAGMA application_id = 0")
      db.close()
    },
  }
}

/** Reads from the findings of a data folder. */
export function readFindings<T>(dir: string, use: (reads: ReturnType<typeof createFindingsReads>) => T): T {
  const found = withFindings(dir, (db) => ({ value: use(createFindingsReads(db)) }))
  if (found === null) throw new Error('there are no findings')
  return found.value
}

/** What is known of all tags of a data folder, without numbers of rows. */
export function readKnown(dir: string) {
  const found = withFindings(dir, (db) => {
    const reads = createFindingsReads(db)
    const state = reads.readState()
    const rows = db
      .prepare<[], string>(
        `SELECT t.owner || ' ' || c.ecosystem || ' ' || c.name || '@' || c.version || iif(c.gap = 0, '', ' gap' || c.gap) || ' ' ||
           coalesce(f.record || iif(f.source = '', '', ' by ' || f.source) || iif(f.fixable OR f.patched, ' fixable ', ' ') || f.level
             || iif(s.tag IS NULL, '', ' suppressed'), '-')
         FROM tag t JOIN tag_component tc ON tc.tag = t.id JOIN component c ON c.id = tc.component
         LEFT JOIN finding f ON f.component = c.id
         LEFT JOIN suppressed s ON s.component = c.id AND s.tag = t.id AND s.record = f.record ORDER BY 1`,
      )
      .pluck()
      .all()
    const unused = db
      .prepare<[], number>(
        `SELECT (SELECT count(*) FROM component WHERE id NOT IN (SELECT component FROM tag_component))
           + (SELECT count(*) FROM finding WHERE component NOT IN (SELECT id FROM component))
           + (SELECT count(*) FROM uncompared WHERE component NOT IN (SELECT id FROM component WHERE gap > 0))
           + (SELECT count(*) FROM component_name WHERE component NOT IN (SELECT id FROM component))
           + (SELECT count(*) FROM tag_component WHERE tag NOT IN (SELECT id FROM tag))
           + (SELECT count(*) FROM suppressed s LEFT JOIN finding f ON f.component = s.component AND f.record = s.record
              LEFT JOIN tag_component t ON t.tag = s.tag AND t.component = s.component
              WHERE f.record IS NULL OR t.tag IS NULL)
           + (SELECT count(*) FROM record WHERE id NOT IN (SELECT record FROM finding))
           + (SELECT count(*) FROM vex_place WHERE kind = 1 AND owner NOT IN (SELECT id FROM tag))
           + (SELECT count(*) FROM vex_place WHERE kind = 0 AND owner NOT IN (SELECT id FROM component))
           + (SELECT count(*) FROM vex_statement WHERE document NOT IN (SELECT id FROM vex_document))
           + (SELECT count(*) FROM tag WHERE vex_stale = 1)`,
      )
      .pluck()
      .get()
    const documents = db.prepare<[], string>('SELECT digest FROM vex_document ORDER BY 1').pluck().all()
    const tags = reads.listTags('', '', 1000).map(({ id: _, ...tag }) => tag)
    return { snapshots: [state?.osv, state?.catalog], tags, rows, documents, unused }
  })
  if (found === null) throw new Error('there are no findings')
  return found
}

/** Matches each SBOM of a tag. */
export async function matchSboms<T>(
  { dir, config }: Bench,
  tag: string,
  use: (sbom: InputSbom, result: MatchResult) => T,
): Promise<T[]> {
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const matcher = createMatcher(config, reads)
  try {
    const used: T[] = []
    for (const digest of sbomDigestsOf(reads.reads, tag)) {
      const request = { now: Date.now(), served: null, catalog: true, check: () => undefined }
      for (const one of readMirroredSboms(reads.reads, digest, tag)) {
        const sbom = { ...one, tag }
        used.push(use(sbom, await matcher.match(sbom, request)))
      }
    }
    return used
  } finally {
    matcher.close()
    reads.close()
  }
}

async function notJudgedOf(bench: Bench, tag: string): Promise<number | null> {
  const [count = null, ...others] = await matchSboms(bench, tag, (_, { counts }) => counts.notJudged)
  return others.length > 0 ? null : count
}

async function matchedOf(bench: Bench, tag: string): Promise<string[]> {
  const found = new Set<string>()
  await matchSboms(bench, tag, (sbom, { findings }) => {
    const around = surroundingsOf({ systems: sbom.systems, option: null })
    for (const { id, component, source, ...finding } of findings) {
      const facts = { ...component, source: component.sourcePackage, kind: null }
      const identity = identityOf(facts, around)
      if ('code' in identity) throw new Error(identity.reason)
      const { ecosystem, name, version } = identity
      const by = source === null ? '' : ` by ${source}`
      const fix = isFixable(finding) ? ' fixable' : ''
      found.add(`${tag} ${ecosystem.name} ${name}@${version} ${id}${by}${fix}`)
    }
  })
  return [...found].sort()
}

/** The findings of all tags that count, as `matched` has them. */
export function visibleRows({ rows }: Pick<Known, 'rows'>): string[] {
  const counted = rows.filter((row) => !/ (?:-|suppressed)$/.test(row))
  return counted.map((row) => row.replace(/ \d$/, '').replace(/ gap\d /, ' ')).sort()
}

/** What is known is what a judgement from the beginning finds, and what `match` does. */
export async function expectAgreement(bench: FindingsBench): Promise<void> {
  const known = bench.known()
  expect(known).toEqual(await bench.fresh())
  expect(known.unused).toBe(0)
  const matched = await Promise.all(known.tags.map(({ owner }) => bench.matched(owner)))
  expect(visibleRows(known)).toEqual(matched.flat().sort())
  for (const { owner, refusal, notJudged } of known.tags) {
    const count = refusal === null ? await bench.notJudged(owner) : null
    if (count !== null) expect(notJudged).toBe(count)
  }
}

/** An SBOM of an image with packages (CycloneDX). */
export function sbomOf(image: string, ...purls: readonly string[]): string {
  const component = { type: 'container', name: image, purl: `pkg:oci/${image}@1` }
  const components = purls.map((purl) => ({ type: 'library', name: 'a', purl }))
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', metadata: { component }, components })
}

/** A VEX document (OpenVEX) with one statement. */
export function vexAbout(
  vulnerability: string,
  products: readonly object[],
  status: string,
  timestamp = '2026-05-01T00:00:00Z',
): string {
  const one = { vulnerability: { name: vulnerability }, products, status, timestamp }
  return JSON.stringify({ '@context': 'https://openvex.dev/ns/v0.2.0', statements: [one] })
}

/** A record about a package, affected from the first version on; `fixed`: to this one. */
export function affecting(ecosystem: string, name: string, fixed: string | null, severity = 'HIGH'): object {
  const events = [{ introduced: '0' }, ...(fixed === null ? [] : [{ fixed }])]
  return {
    affected: [{ package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events }] }],
    database_specific: { severity },
  }
}

interface TagComponent {
  owner: string
  subjects: string
  ecosystem: string
  name: string
  version: string
  packages: string
  asked: string
}

/** The packages of a tag as the index of its findings has them. */
export function componentsOf(dir: string): TagComponent[] {
  const found = withFindings(dir, (db) =>
    db
      .prepare<[], TagComponent>(
        `SELECT t.owner, t.subjects, c.ecosystem, c.name, c.version, c.packages, c.asked FROM tag t JOIN tag_component tc ON tc.tag = t.id
         JOIN component c ON c.id = tc.component ORDER BY t.owner, c.name, c.version`,
      )
      .all(),
  )
  return found ?? []
}
