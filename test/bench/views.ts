import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from './daemon.ts'
import { ROOT, startSandbox, timed } from './processes.ts'
import { type Line, megabytes, seconds } from './table.ts'

const CHANGED = 100
/** The daemon only syncs here: views are made in a process that does nothing else. */
const NO_VIEWS = {
  PATCHMIRROR_VIEWS_BUCKET: 'false',
  PATCHMIRROR_VIEWS_QUERY: 'false',
  PATCHMIRROR_VIEWS_VEX: 'false',
}

/**
 * What making the views of a bucket costs, in processor time: the first of all records against a loop in Python that
 * writes the same archives, and the next after some records changed against the first.
 */
export async function benchViews(records: number): Promise<Line[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-views-'))
  const data = join(dir, 'data')
  const sandbox = await startSandbox(records)
  try {
    await sync(sandbox.url, data)
    const derived = join(data, 'derived')
    const archive = readdirSync(derived).find((name) => name.endsWith('.zip')) ?? ''
    const python = [`${ROOT}test/bench/loops/views.py`, join(derived, archive), join(dir, 'python')]
    const loop = await timed('python3', python)
    const first = await timed(process.execPath, [`${ROOT}test/bench/views-child.ts`, data])
    await sandbox.command('change', CHANGED)
    await sync(sandbox.url, data)
    const next = await timed(process.execPath, [`${ROOT}test/bench/views-child.ts`, data])
    const work = `views of ${records} records, processor time`
    const ratio = (one: number, other: number): string => `${(one / other).toFixed(2)}×`
    const cost = ({ ms, peak }: { ms: number; peak: number }): string =>
      `${seconds(ms)}, peak ${megabytes(peak)}`
    const line = { goal: 'figure', met: null }
    return [
      {
        ...{
          ...line,
          work: `first ${work}`,
          against: 'Python, json and zipfile, the same archives',
        },
        figure: `${ratio(first.ms, loop.ms)} (${cost(first)}; Python ${seconds(loop.ms)})`,
      },
      {
        ...{ ...line, work: `${work}, ${CHANGED} changed`, against: 'the first' },
        figure: `${ratio(next.ms, first.ms)} (${cost(next)})`,
      },
    ]
  } finally {
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function sync(upstream: string, data: string): Promise<void> {
  const daemon = await startDaemon(upstream, data, NO_VIEWS)
  await daemon.run('osv')
  await daemon.stop()
}
