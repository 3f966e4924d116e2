import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { count, megabytes, milliseconds, seconds } from '../report/figures.ts'
import { type Line, type Options, type Value, always, atMost, defineGroup, neverOver, ratio } from '../report/group.ts'
import { startDaemon, took } from '../world/daemon.ts'
import { ROOT, type SandboxProcess, startSandbox } from '../world/processes.ts'
import { CHANGED, type Changes, type Rebuilt, type Start, rebuild, restart, runChanges } from './changes.ts'
import { type Cold, type Loops, bareDatabase, ingest, runLoops } from './ingest.ts'
import { type Reads, readBesideIngest } from './reads.ts'

const RECORDS = 100_000
/** Real records, where they are present. */
const REAL = `${ROOT}../shared/data/osv-real.zip`

interface Run {
  readonly cold: Cold
  readonly loops: Loops
  readonly changes: Changes
  readonly start: Start
  readonly rebuilt: Rebuilt
  readonly reads: Reads
  readonly real: Value | null
}

/** The feed of records: its first sync, its changes, its memory, and reads beside it. */
export const records = defineGroup<{ sandbox: SandboxProcess; close(): Promise<void> }, Run>({
  name: 'records',
  about: 'the feed of records: first sync, changes, memory, reads beside it',
  async prepare({ size }) {
    const sandbox = await startSandbox(size(RECORDS))
    return { sandbox, close: () => sandbox.stop() }
  },
  async run({ sandbox }, { seconds: length }) {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-records-'))
    const beside = mkdtempSync(join(tmpdir(), 'patchmirror-loops-'))
    try {
      const { cold, daemon } = await ingest(sandbox.url, dir, length(30))
      const loops = await runLoops(sandbox, beside)
      const changes = await runChanges(sandbox, daemon, bareDatabase(beside)).finally(() => daemon.stop())
      const start = await restart(sandbox.url, dir)
      const rebuilt = await rebuild(dir)
      const reads = await readBesideIngest(sandbox, length(5))
      return { cold, loops, changes, start, rebuilt, reads, real: await realArchive() }
    } finally {
      for (const folder of [dir, beside]) rmSync(folder, { recursive: true, force: true })
    }
  },
  lines: (options) => [...ingestLines(options), ...changeLines(options), ...otherLines(options)],
})

function ingestLines({ size }: Options): Line<Run>[] {
  const work = `whole ingest of a ${count(size(RECORDS))}-record archive, over HTTP, with proof`
  const memory = { unit: 'MB', against: '' } as const
  return [
    {
      work,
      against: 'bare loop: read, inflate, parse, insert',
      unit: '×',
      goal: atMost(1.15),
      measure: ({ cold, loops: { bare } }) => bare && ratio(cold.ms, bare.ms, seconds),
    },
    {
      work,
      against: 'Python zipfile + sqlite3',
      unit: '×',
      goal: atMost(1),
      measure: ({ cold, loops: { python } }) => python && ratio(cold.ms, python.ms, seconds),
    },
    {
      work,
      against: 'adm-zip + better-sqlite3',
      unit: '×',
      goal: atMost(1),
      measure: ({ cold, loops: { admzip } }) => admzip && ratio(cold.ms, admzip.ms, seconds),
    },
    {
      ...memory,
      work: 'its peak memory, the whole daemon',
      goal: neverOver(200e6),
      measure: ({ cold: { peak, peakWithViews } }) => {
        return { value: peak, detail: `${megabytes(peakWithViews)} until the views were made` }
      },
    },
    {
      work: 'memory after it, idle again',
      against: 'a restarted daemon, idle',
      unit: '×',
      goal: atMost(1.2),
      measure: ({ cold }) => ratio(cold.idle, cold.restarted, megabytes),
    },
  ]
}

const BARE_CHANGES = 'bare loop: index, inflate, parse, compare, the same requests, insert'

function changeLines({ size }: Options): Line<Run>[] {
  const work = `${CHANGED} changed of ${count(size(RECORDS))}`
  return [
    {
      work: 'unchanged sync of osv and three feeds: requests',
      unit: 'count',
      goal: always(4, '1 request per feed'),
      measure: ({ changes: { unchanged } }) => {
        return { value: unchanged.requests, detail: seconds(unchanged.ms) }
      },
    },
    {
      work: 'the same: tables with another content',
      unit: 'count',
      goal: always(0),
      measure: ({ changes }) => (changes.unchanged.isSame ? 0 : 1),
    },
    {
      work,
      against: 'the cold ingest',
      unit: '×',
      measure: ({ changes, cold }) => ratio(changes.changed.ms, cold.ms, seconds),
    },
    {
      work,
      against: BARE_CHANGES,
      unit: '×',
      measure: ({ changes: { changed } }) => ratio(changed.ms, changed.bare.ms, milliseconds),
    },
    {
      work: `${work} by that bare loop`,
      against: 'the cold ingest',
      unit: '×',
      measure: ({ changes, cold }) => ratio(changes.changed.bare.ms, cold.ms, milliseconds),
    },
    {
      work: `${work}: index and records alone, requested and inflated by that loop, the records hashed`,
      against: 'the cold ingest',
      unit: '×',
      measure: ({ changes, cold }) => ratio(changes.changed.bare.wireMs, cold.ms, milliseconds),
    },
    {
      work: `${work}: requests`,
      unit: 'count',
      goal: neverOver(CHANGED + 2),
      measure: ({ changes }) => changes.changed.requests,
    },
    {
      work: `reconcile with ${CHANGED} silent changes in ${count(size(RECORDS))}`,
      against: "the archive's bytes",
      unit: '×',
      goal: atMost(0.12),
      measure: ({ changes: { reconcile } }) => ratio(reconcile.fetched, reconcile.whole, megabytes),
    },
    {
      work: 'the same: changes found',
      unit: 'count',
      goal: always(CHANGED),
      measure: ({ changes }) => changes.reconcile.found,
    },
  ]
}

function otherLines({ size }: Options): Line<Run>[] {
  return [
    {
      work: `start until /-/ready answers 200, ${count(size(RECORDS))} records`,
      unit: 'ms',
      goal: atMost(250),
      measure: ({ start: { ms, loadedMs, threadsMs } }) => {
        const parts = [
          `${milliseconds(loadedMs)} with loading the program`,
          `${milliseconds(threadsMs)} until all threads run`,
        ]
        return { value: ms, detail: parts.join(', ') }
      },
    },
    {
      work: `rebuild of all.zip, ${count(size(RECORDS))} records`,
      unit: '×',
      goal: atMost(2),
      against: 'reading the stored bytes',
      measure: ({ rebuilt: { ms, readMs } }) => ratio(ms, readMs, seconds),
    },
    {
      work: 'reads while a cold ingest runs, p99',
      against: 'the same reads idle',
      unit: '×',
      goal: atMost(2),
      measure: ({ reads: { busy, idle } }) => {
        const medians = `medians ${milliseconds(busy.p50)} to ${milliseconds(idle.p50)}`
        const { value, detail = '' } = ratio(busy.p99, idle.p99, milliseconds)
        return { value, detail: `${detail}, ${medians}` }
      },
    },
    { work: 'ingest of a real archive', unit: 's', measure: ({ real }) => real },
  ]
}

async function realArchive(): Promise<Value | null> {
  if (!existsSync(REAL)) return null
  const sandbox = await startSandbox(1, ['--osv-zip', REAL])
  const daemon = await startDaemon(sandbox.url)
  try {
    const run = await daemon.run('osv')
    const { records: count, archiveBytes } = run.facts
    const detail = `${String(count)} records, ${megabytes(Number(archiveBytes))}`
    return { value: took(run), detail }
  } finally {
    await daemon.stop()
    await sandbox.stop()
  }
}
