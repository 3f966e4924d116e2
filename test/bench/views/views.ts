import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { count, megabytes, seconds } from '../report/figures.ts'
import { atMost, defineGroup, neverOver, ratio } from '../report/group.ts'
import { startDaemon, took } from '../world/daemon.ts'
import { plainScript } from '../world/plain.ts'
import { ROOT, type SandboxProcess, startSandbox, timed } from '../world/processes.ts'
import { diskUsage } from '../world/usage.ts'

const RECORDS = 100_000
const CHANGED = 100
/** The daemon only syncs here: views are made in a process that does nothing else. */
const NO_VIEWS = {
  PATCHMIRROR_VIEWS_SERVE: ',',
}

/** How making views went: wall and processor time in milliseconds, peak memory in bytes. */
interface Made {
  readonly ms: number
  readonly cpuMs: number
  readonly peak: number
}

interface Run {
  readonly ingestMs: number
  readonly first: Made
  readonly next: Made
  /** Null: no Python here. */
  readonly pythonMs: number | null
  /** What the data folder grew by when the first views were made, and the size of `all.zip`. Bytes. */
  readonly disk: number
  readonly zip: number
}

/** The views of the records: the first, and the next after some records changed. */
export const views = defineGroup<{ sandbox: SandboxProcess; close(): Promise<void> }, Run>({
  name: 'views',
  about: ({ size }) => `The views for scanners of ${count(size(RECORDS))} records.`,
  async prepare({ size }) {
    const sandbox = await startSandbox(size(RECORDS))
    return { sandbox, close: () => sandbox.stop() }
  },
  run: ({ sandbox }) => makeTwice(sandbox),
  lines: () => [
    {
      work: 'first views',
      against: 'ingest',
      unit: '×',
      measure: ({ first, ingestMs }) => ratio(first.ms, ingestMs, seconds),
    },
    {
      work: 'their processor time',
      against: 'Python json + zipfile',
      unit: '×',
      measure: ({ first, pythonMs }) => pythonMs && ratio(first.cpuMs, pythonMs, seconds),
    },
    {
      work: `next views, ${CHANGED} changes`,
      against: 'first views',
      unit: '×',
      measure: ({ next, first }) => ratio(next.ms, first.ms, seconds),
    },
    {
      work: 'disk of first views',
      against: 'all.zip',
      unit: '×',
      goal: atMost(1.5),
      measure: ({ disk, zip }) => ratio(disk, zip, megabytes),
    },
    {
      work: 'peak memory of first views',
      unit: 'MB',
      goal: neverOver(200e6),
      measure: ({ first, next }) => {
        return { value: first.peak, detail: `next views ${megabytes(next.peak)}` }
      },
    },
  ],
})

async function makeTwice(sandbox: SandboxProcess): Promise<Run> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-views-'))
  const data = join(dir, 'data')
  try {
    const ingestMs = await sync(sandbox.url, data)
    const archive = archiveOf(data)
    const zip = statSync(archive).size
    const before = diskUsage(data)
    const first = await make(data)
    const disk = diskUsage(data) - before
    const pythonMs = await loop(archive, join(dir, 'python'))
    await sandbox.command('change', CHANGED)
    await sync(sandbox.url, data)
    return { ingestMs, first, next: await make(data), pythonMs, disk, zip }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Syncs and ends: milliseconds of the run. */
async function sync(upstream: string, data: string): Promise<number> {
  const daemon = await startDaemon(upstream, data, NO_VIEWS)
  const run = await daemon.run('osv')
  await daemon.stop()
  return took(run)
}

function archiveOf(data: string): string {
  const derived = join(data, 'derived')
  return join(derived, readdirSync(derived).find((name) => name.endsWith('.zip')) ?? '')
}

async function make(data: string): Promise<Made> {
  const script = plainScript('views')
  const { ms, peak, out } = await timed(process.execPath, [script, data])
  const { cpuMs } = JSON.parse(out.trim().split('\n').at(-1) || '{}') as { cpuMs: number }
  return { ms, peak, cpuMs }
}

async function loop(archive: string, target: string): Promise<number | null> {
  try {
    return (await timed('python3', [`${ROOT}test/bench/views/loop.py`, archive, target])).ms
  } catch (error) {
    process.stderr.write(`skipped: ${String(error)}\n`)
    return null
  }
}
