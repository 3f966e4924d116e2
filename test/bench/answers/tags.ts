import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { FindingsReport } from '../../../src/features/findings/task.ts'
import { type Sandbox, createSandbox } from '../../sandbox/server.ts'
import { removeFindings } from '../../../src/store/findings/database.ts'
import { catalogSettings } from '../catalog/sync.ts'
import { startDaemon } from '../world/daemon.ts'
import { ROOT, timed } from '../world/processes.ts'

/** Records that change, and records about each package. */
export const CHANGED_RECORDS = 10
const RECORDS_EACH = 10
const SETTINGS = {
  PATCHMIRROR_VIEWS_SERVE: ',',
}

/** A mirror of tags and of records about the packages in their SBOMs. */
export interface MirroredTags {
  /** Has all tags judged, and once more after records changed. */
  judgeTwice(): Promise<JudgedTags>
  close(): Promise<void>
}

/** Both judgements; packages in versions in all SBOMs, and records about them. */
export interface JudgedTags {
  readonly first: Judged
  readonly next: Judged
  readonly components: number
  readonly records: number
}

/** What a judgement took, processor time in milliseconds, and of what. */
interface Judged {
  readonly cpuMs: number
  readonly report: FindingsReport
}

/** Mirrors so many tags, each with an SBOM. */
export async function mirrorTags(tags: number): Promise<MirroredTags> {
  const service = { tags, images: Math.ceil(tags / 10), packages: 1, tickets: 1 }
  const sandbox = await createSandbox({ records: 1, service })
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-tags-'))
  const daemon = await startDaemon(sandbox.url, dir, { ...SETTINGS, ...catalogSettings(sandbox) })
  await daemon.run('osv')
  await daemon.run('catalog')
  await judge(dir)
  const { components, packages } = packagesIn(dir)
  const records = putRecords(sandbox, packages)
  let round = 0
  return {
    async judgeTwice() {
      await daemon.run('osv')
      removeFindings(dir)
      const first = await judge(dir)
      round++
      for (let n = 0; n < CHANGED_RECORDS; n++) records[(n * 97) % records.length]?.(round)
      await daemon.run('osv')
      return { first, next: await judge(dir), components, records: records.length }
    },
    async close() {
      await daemon.stop()
      await sandbox.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

interface Package {
  readonly ecosystem: string
  readonly name: string
}

function packagesIn(dir: string): { components: number; packages: Package[] } {
  const db = new Database(join(dir, 'derived', 'findings.db'), { readonly: true })
  try {
    const count = db.prepare<[], number>('SELECT count(*) FROM component').pluck()
    const named = db.prepare<[], Package>('SELECT DISTINCT ecosystem, name FROM component ORDER BY 1, 2')
    return { components: count.get() ?? 0, packages: named.all() }
  } finally {
    db.close()
  }
}

/** Puts records about packages into the feed; returns what changes each of them: the version that fixes it. */
function putRecords({ feed }: Sandbox, packages: readonly Package[]): ((round: number) => void)[] {
  return packages.flatMap((of, i) =>
    Array.from({ length: RECORDS_EACH }, (_, n) => {
      const id = `BENCH-${i}-${n}`
      const put = (round: number): void => {
        const modified = new Date(Date.UTC(2026, 4, 1 + round)).toISOString()
        const events = [{ introduced: '0' }, { fixed: `${n}.${round}.0` }]
        const affected = [{ package: of, ranges: [{ type: 'ECOSYSTEM', events }] }]
        feed.put(id, JSON.stringify({ id, modified, affected }), modified)
      }
      put(0)
      return put
    }),
  )
}

async function judge(dir: string): Promise<Judged> {
  const child = `${ROOT}test/bench/answers/judge-child.ts`
  const { out } = await timed(process.execPath, [child, dir])
  return JSON.parse(out) as Judged
}
