import { fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { catalogSettings } from '../catalog/sync.ts'
import { count, megabytes, seconds } from '../report/figures.ts'
import { type Line, type Options, atMost, defineGroup, neverOver, ratio } from '../report/group.ts'
import { startDaemon, took } from '../world/daemon.ts'
import { ROOT, ended, messageFrom, startSandbox, timed } from '../world/processes.ts'
import { diskUsage } from '../world/usage.ts'
import type { Kind, Point } from './point.ts'
import { chartOf, tableOf } from './results.ts'

const RECORDS = [10_000, 100_000, 400_000, 1_000_000] as const
const TICKETS = [10_000, 100_000, 1_000_000] as const
/** Disk that one record takes while it is measured: two archives, the data folder, and what is written before the old is gone. */
const DISK_EACH = 12_000

type Run = readonly Point[]
type World = { readonly root: string; close(): Promise<void> }

/** First syncs of more and more records, sorted and shuffled in their archive, and of more and more tickets. */
export const scale = defineGroup<World, Run>({
  name: 'scale',
  about: () => 'First syncs without views.',
  async prepare({ size }) {
    const root = mkdtempSync(join(tmpdir(), 'patchmirror-scale-'))
    const close = (): Promise<void> => Promise.resolve(rmSync(root, { recursive: true }))
    try {
      checkDisk(root, size(Math.max(...RECORDS)))
      for (const full of RECORDS) await generate(root, size(full))
      return { root, close }
    } catch (error) {
      await close()
      throw error
    }
  },
  async run({ root }, { size }) {
    const points: Point[] = []
    for (const full of RECORDS)
      for (const kind of ['sorted', 'shuffled'] as const) points.push(await syncRecords(root, kind, size(full)))
    for (const full of TICKETS) points.push(await syncTickets(root, size(full)))
    return points
  },
  lines,
  more: (runs) => ({
    text: `${tableOf(runs)}\n\n![Time, memory and disk of first syncs by their size](scale.svg)`,
    files: { 'scale.svg': chartOf(runs) },
  }),
})

function checkDisk(dir: string, records: number): void {
  const { bavail, bsize } = statfsSync(dir)
  const free = bavail * bsize
  const needed = records * DISK_EACH
  if (free >= needed) return
  throw new Error(
    `${dir} has ${megabytes(free)} free, and ${records} records need ${megabytes(needed)}: set TMPDIR to a larger disk, or reduce --records`,
  )
}

async function generate(root: string, count: number): Promise<void> {
  process.stderr.write(`scale: generating ${count} records\n`)
  const dir = join(root, String(count))
  mkdirSync(dir)
  const script = `${ROOT}test/bench/scale/generate-child.ts`
  await timed(process.execPath, [script, dir, String(count)])
}

async function syncRecords(root: string, kind: 'sorted' | 'shuffled', count: number): Promise<Point> {
  const args = [join(root, String(count)), kind]
  const server = fork(`${ROOT}test/bench/scale/serve-child.ts`, args, { cwd: ROOT })
  try {
    const { url } = await messageFrom<{ url: string }>(server, (message) => 'url' in message)
    return await measure(root, { kind, count }, 'osv', url, {})
  } finally {
    server.kill()
    await ended(server)
  }
}

/** The stand-in has its tickets in memory, about 2 KB each. */
async function syncTickets(root: string, count: number): Promise<Point> {
  const others = ['--tags', '1', '--packages', '1']
  const sandbox = await startSandbox(1, ['--tickets', String(count), ...others])
  try {
    const settings = { ...catalogSettings(sandbox), PATCHMIRROR_UPSTREAM_MAX_BYTES: 'list=8 GB' }
    return await measure(root, { kind: 'tickets', count }, 'catalog', sandbox.url, settings)
  } finally {
    await sandbox.stop()
  }
}

/** Syncs into an empty folder, which is removed again: at most one is there at a time. */
async function measure(
  root: string,
  what: Pick<Point, 'kind' | 'count'>,
  source: 'osv' | 'catalog',
  upstream: string,
  settings: Record<string, string>,
): Promise<Point> {
  process.stderr.write(`scale: ${what.count} ${what.kind}\n`)
  const dir = join(root, 'data')
  const daemon = await startDaemon(upstream, dir, { ...settings, ...NO_VIEWS })
  try {
    const ms = took(await daemon.run(source))
    const { peak } = await daemon.stop()
    return { ...what, ms, peak, disk: diskUsage(dir) }
  } finally {
    await daemon.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Views have lines of their own, and would run on while the disk is measured. */
const NO_VIEWS = {
  PATCHMIRROR_VIEWS_SERVE: ',',
}

/** Limits of peak memory by full size, bytes. */
const PEAKS = { 100_000: 200e6, 400_000: 260e6, 1_000_000: 300e6 } as const

function lines({ size }: Options): Line<Run>[] {
  const [, base, ...larger] = RECORDS
  const found = (run: Run, kind: Kind, full: number): Point => {
    const point = run.find((one) => one.kind === kind && one.count === size(full))
    if (point === undefined) throw new Error(`no ${kind} of ${size(full)}`)
    return point
  }
  return [
    ...larger.map((full): Line<Run> => {
      const times = full / base
      return {
        work: `${count(size(full))} records`,
        against: count(size(base)),
        unit: '×',
        goal: atMost(1.25 * times, `${times}× ± 25 %`),
        measure: (run) => ratio(found(run, 'sorted', full).ms, found(run, 'sorted', base).ms, seconds),
      }
    }),
    ...([base, ...larger] as const).map((full): Line<Run> => ({
      work: `peak memory of ${count(size(full))}`,
      unit: 'MB',
      goal: neverOver(PEAKS[full]),
      measure: (run) => found(run, 'sorted', full).peak,
    })),
    ...([base, ...larger] as const).map((full): Line<Run> => ({
      work: `${count(size(full))} in random order`,
      against: 'in order',
      unit: '×',
      goal: atMost(1.15),
      measure: (run) => ratio(found(run, 'shuffled', full).ms, found(run, 'sorted', full).ms, seconds),
    })),
  ]
}
