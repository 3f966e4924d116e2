import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon, took } from './daemon.ts'
import { ROOT, type SandboxProcess, startSandbox, timed } from './processes.ts'
import { type Line, median, megabytes, ratioLine, seconds } from './table.ts'

export interface Ingest {
  ms: number
  peak: number
}

/** A first sync by the built daemon: download, check, store, archive, proof, commit. Medians over `rounds`. */
export async function ingest(sandbox: SandboxProcess, rounds: number): Promise<Ingest> {
  const times: number[] = []
  const peaks: number[] = []
  for (let round = 0; round < rounds; round++) {
    const daemon = await startDaemon(sandbox.url)
    times.push(took(await daemon.run('osv')))
    peaks.push((await daemon.stop()).peak)
  }
  return { ms: median(times), peak: median(peaks) }
}

/** The loops, each in a process of its own, in turn with the daemon, so that a slow moment of the machine hits all. */
export async function benchIngest(
  rounds: number,
  sandbox: SandboxProcess,
): Promise<{ lines: Line[]; cold: Ingest }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-loops-'))
  const archive = join(dir, 'all.zip')
  const answer = await fetch(`${sandbox.url}/external/osv/all.zip`)
  await writeFile(archive, Buffer.from(await answer.arrayBuffer()))
  const loops: Record<string, string[]> = {
    bare: [process.execPath, `${ROOT}test/bench/loops/bare.ts`],
    python: ['python3', `${ROOT}test/bench/loops/python.py`],
    admzip: [process.execPath, `${ROOT}test/bench/loops/admzip.ts`],
  }
  const taken = new Map(Object.keys(loops).map((name) => [name, [] as Ingest[]]))
  const ours: Ingest[] = []
  for (let round = 0; round < rounds; round++) {
    ours.push(await ingest(sandbox, 1))
    for (const [name, [command = '', ...args]] of Object.entries(loops)) {
      if (name !== 'bare' && round > 0) continue // slow, and far away: once is enough
      const measured = await attempt(command, [...args, archive, join(dir, `${name}-${round}.db`)])
      if (measured !== null) taken.get(name)?.push(measured)
    }
  }
  rmSync(dir, { recursive: true, force: true })
  const cold = {
    ms: median(ours.map(({ ms }) => ms)),
    peak: Math.max(...ours.map(({ peak }) => peak)),
  }
  return { lines: linesOf(cold, taken), cold }
}

async function attempt(command: string, args: string[]): Promise<Ingest | null> {
  try {
    return await timed(command, args)
  } catch (error) {
    process.stderr.write(`skipped: ${String(error)}\n`)
    return null
  }
}

const NAMES: Record<string, string> = {
  python: 'Python zipfile + sqlite3',
  admzip: 'adm-zip + better-sqlite3',
}

function linesOf(cold: Ingest, taken: ReadonlyMap<string, Ingest[]>): Line[] {
  const work = 'whole ingest of a 100,000-record archive, over HTTP, with proof'
  const bare = median((taken.get('bare') ?? []).map(({ ms }) => ms))
  const lines = [
    ratioLine(
      work,
      'bare loop: read, inflate, parse, insert',
      cold.ms / bare,
      1.5,
      `${seconds(cold.ms)} to ${seconds(bare)}`,
    ),
    {
      work: 'its peak memory, the whole daemon',
      against: '',
      figure: megabytes(cold.peak),
      goal: '≤ 250 MB',
      met: cold.peak <= 250e6,
    },
  ]
  for (const [name, title] of Object.entries(NAMES)) {
    const [other] = taken.get(name) ?? []
    if (other === undefined) continue
    const figure = `${(other.ms / cold.ms).toFixed(1)}× faster (${seconds(cold.ms)} to ${seconds(other.ms)}, ${megabytes(other.peak)})`
    lines.push({ work, against: title, figure, goal: 'ahead', met: other.ms > cold.ms })
  }
  return lines
}

/** Four times the records: time and memory must not run away. */
export async function benchLarge(cold: Ingest): Promise<Line[]> {
  const sandbox = await startSandbox(400_000)
  try {
    const large = await ingest(sandbox, 1)
    const ratio = large.ms / cold.ms
    const detail = `${seconds(large.ms)} to ${seconds(cold.ms)}`
    return [
      {
        work: 'ingest of 400,000 records',
        against: 'of 100,000',
        figure: `${ratio.toFixed(2)}× (${detail})`,
        goal: '4× ± 25 %',
        met: ratio <= 5,
      },
      {
        work: 'its peak memory',
        against: '',
        figure: megabytes(large.peak),
        goal: '≤ 300 MB',
        met: large.peak <= 300e6,
      },
    ]
  } finally {
    await sandbox.stop()
  }
}
