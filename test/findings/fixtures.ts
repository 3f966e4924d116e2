import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { performFindings } from '../../src/findings/task.ts'
import { askAbout } from '../../src/match/judge.ts'
import { createMatcher } from '../../src/match/matcher.ts'
import { readMirroredSbom, sbomDigestsOf } from '../../src/sboms/mirrored.ts'
import type { ServiceOptions } from '../../src/sandbox/service/types.ts'
import { withFindings } from '../../src/store/findings/database.ts'
import { createFindingsReads } from '../../src/store/findings/reads.ts'
import { openShortReads } from '../../src/store/reads.ts'
import { derivedVendors } from '../../src/views/osv/ecosystems.ts'
import { performTask } from '../../src/views/task.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { type Bench, createBench } from '../support/mirror.ts'

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
  /** What `patchmirror match` finds in the SBOMs of a tag: package, version and record, each once. */
  matched: (tag: string) => Promise<string[]>
}

type Known = ReturnType<typeof readKnown>

/** Opens a bench until the test ends. */
export async function openFindingsBench(
  service: ServiceOptions = {},
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
): Promise<FindingsBench> {
  const bench = await createBench({
    sandbox: { records: 1, service: { images: 2, tags: 4, packages: 1, tickets: 2, ...service } },
    envOf: catalogEnv,
    env: { PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_OSV_GUARD_FRACTION: '1' },
  })
  atEnd(() => bench.close())
  const { dir, config, sandbox } = bench
  let stamps = 0
  const judge = (now = Date.now()) =>
    performFindings({ dataDir: dir, served: null, keepDays: 30 }, now)
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
  }
}

/** Reads from the findings of a data folder. */
export function readFindings<T>(
  dir: string,
  use: (reads: ReturnType<typeof createFindingsReads>) => T,
): T {
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
        `SELECT t.owner || ' ' || c.ecosystem || ' ' || c.name || '@' || c.version || ' ' ||
           coalesce(f.record || iif(f.fixable, ' fixable ', ' ') || f.level, '-')
         FROM tag t JOIN tag_component tc ON tc.tag = t.id JOIN component c ON c.id = tc.component
         LEFT JOIN finding f ON f.component = c.id ORDER BY 1`,
      )
      .pluck()
      .all()
    const unused = db
      .prepare<[], number>(
        `SELECT (SELECT count(*) FROM component WHERE id NOT IN (SELECT component FROM tag_component))
           + (SELECT count(*) FROM finding WHERE component NOT IN (SELECT id FROM component))
           + (SELECT count(*) FROM tag_component WHERE tag NOT IN (SELECT id FROM tag))`,
      )
      .pluck()
      .get()
    const tags = reads.listTags('', '', 1000).map(({ id: _, ...tag }) => tag)
    return { snapshots: [state?.osv, state?.catalog], tags, rows, unused }
  })
  if (found === null) throw new Error('there are no findings')
  return found
}

async function matchedOf({ dir, config }: Bench, tag: string): Promise<string[]> {
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const matcher = createMatcher(config, reads)
  try {
    const found = new Set<string>()
    for (const digest of sbomDigestsOf(reads.reads, tag)) {
      const sbom = readMirroredSbom(reads.reads, digest, tag)
      const request = { now: Date.now(), served: null, catalog: false, check: () => undefined }
      const { findings } = await matcher.match(sbom, request)
      for (const { id, fixed, component } of findings) {
        const query = askAbout(component)
        if ('code' in query) throw new Error(query.reason)
        const { ecosystem, name, version } = query
        const fix = fixed.length > 0 ? ' fixable' : ''
        found.add(`${tag} ${ecosystem.name} ${name}@${version} ${id}${fix}`)
      }
    }
    return [...found].sort()
  } finally {
    matcher.close()
    reads.close()
  }
}

/** A record about a package, affected from the first version on; `fixed`: to this one. */
export function affecting(
  ecosystem: string,
  name: string,
  fixed: string | null,
  severity = 'HIGH',
): object {
  const events = [{ introduced: '0' }, ...(fixed === null ? [] : [{ fixed }])]
  return {
    affected: [{ package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events }] }],
    database_specific: { severity },
  }
}

/** The packages of a tag as the index of its findings has them. */
export function componentsOf(
  dir: string,
): { owner: string; ecosystem: string; name: string; version: string }[] {
  const found = withFindings(dir, (db) =>
    db
      .prepare<[], { owner: string; ecosystem: string; name: string; version: string }>(
        `SELECT t.owner, c.ecosystem, c.name, c.version FROM tag t JOIN tag_component tc ON tc.tag = t.id
         JOIN component c ON c.id = tc.component ORDER BY t.owner, c.name, c.version`,
      )
      .all(),
  )
  return found ?? []
}
