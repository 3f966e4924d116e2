import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { count, megabytes, milliseconds, pair, seconds } from '../report/figures.ts'
import { type Line, type Value, always, atMost, defineGroup, neverOver, ratio } from '../report/group.ts'
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
  about: ({ size }) =>
    `The feed of ${count(size(RECORDS))} records. An ingest is its first sync, over HTTP and with proof.`,
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
  lines: () => [...ingestLines(), ...changeLines(), ...otherLines()],
})

function ingestLines(): Line<Run>[] {
  const work = 'ingest'
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
      work: 'its peak memory',
      goal: neverOver(200e6),
      measure: ({ cold: { peak, peakWithViews } }) => {
        return { value: peak, detail: `with views ${megabytes(peakWithViews)}` }
      },
    },
    {
      work: 'memory after it, idle',
      against: 'a restarted daemon',
      unit: '×',
      goal: atMost(1.2),
      measure: ({ cold }) => ratio(cold.idle, cold.restarted, megabytes),
    },
  ]
}

const BARE_CHANGES = 'bare loop with the same requests'

function changeLines(): Line<Run>[] {
  const work = `sync of ${CHANGED} changes`
  return [
    {
      work: 'unchanged sync of four feeds: requests',
      unit: 'count',
      goal: always(4),
      measure: ({ changes: { unchanged } }) => {
        return { value: unchanged.requests, detail: seconds(unchanged.ms) }
      },
    },
    {
      work: 'the same: tables that differ',
      unit: 'count',
      goal: always(0),
      measure: ({ changes }) => (changes.unchanged.isSame ? 0 : 1),
    },
    {
      work,
      against: 'ingest',
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
      work: 'that bare loop',
      against: 'ingest',
      unit: '×',
      measure: ({ changes, cold }) => ratio(changes.changed.bare.ms, cold.ms, milliseconds),
    },
    {
      work: 'its requests, inflating and hashing alone',
      against: 'ingest',
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
      work: `reconcile of ${CHANGED} silent changes: bytes`,
      against: 'all.zip',
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

function otherLines(): Line<Run>[] {
  return [
    {
      work: 'start until /-/ready is 200',
      unit: 'ms',
      goal: atMost(250),
      measure: ({ start: { ms, loadedMs, threadsMs } }) => {
        const parts = [`with loading ${milliseconds(loadedMs)}`, `all threads ${milliseconds(threadsMs)}`]
        return { value: ms, detail: parts.join(', ') }
      },
    },
    {
      work: 'rebuild of all.zip',
      unit: '×',
      goal: atMost(2),
      against: 'reading the stored bytes',
      measure: ({ rebuilt: { ms, readMs } }) => ratio(ms, readMs, seconds),
    },
    {
      work: 'reads during an ingest, p99',
      against: 'idle',
      unit: '×',
      goal: atMost(2),
      measure: ({ reads: { busy, idle } }) => {
        const medians = `medians ${pair(busy.p50, idle.p50, milliseconds)}`
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
