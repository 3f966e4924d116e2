import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKeyFiles } from '../../src/bundle/format/keys.ts'
import { fillCatalog } from './bundle-world.ts'
import { startDaemon } from './daemon.ts'
import { ROOT, startSandbox, timed } from './processes.ts'
import { type Line, median, megabytes, ratioLine, seconds } from './table.ts'

const CHANGED = 250

interface Taken {
  ms: number
  peak: number
}

/**
 * Export and import of records and documents, each against `cp`, `sync` and `sha256sum` of the bundle's own bytes, in turn;
 * then a delta of 250 records. Everything by the built program, in processes of their own.
 */
export async function benchBundles(
  size: { records: number; bytes: number },
  rounds: number,
): Promise<Line[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-bundles-'))
  const above = join(dir, 'above')
  const sandbox = await startSandbox(size.records)
  try {
    const daemon = await startDaemon(sandbox.url, above)
    await daemon.run('feeds')
    await daemon.run('osv')
    await daemon.stop()
    fillCatalog(above, size.bytes)
    const { line } = createKeyFiles(join(dir, 'key'))
    process.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = join(dir, 'key')
    process.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = line
    const lines = await whole(dir, size, rounds)
    const changing = await startDaemon(sandbox.url, above)
    await sandbox.command('change', CHANGED)
    await changing.run('osv')
    await changing.stop()
    return [...lines, ...(await delta(dir, size))]
  } finally {
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function whole(
  dir: string,
  size: { records: number; bytes: number },
  rounds: number,
): Promise<Line[]> {
  const bundle = join(dir, 'full.zip')
  const copies: number[] = []
  const exports: Taken[] = []
  const imports: Taken[] = []
  for (let round = 0; round < rounds; round++) {
    rmSync(bundle, { force: true })
    exports.push(await command(join(dir, 'above'), 'export', bundle))
    copies.push(copy(bundle, join(dir, 'copy.zip')))
    const below = join(dir, `below-${round}`)
    imports.push(await command(below, 'import', bundle))
    if (round < rounds - 1) rmSync(below, { recursive: true, force: true })
  }
  const what = `${size.records} records and ${megabytes(size.bytes)} of documents`
  const against = 'cp, sync and sha256sum of the same bytes'
  const cp = median(copies)
  return [
    [`export of ${what}`, exports] as const,
    [`import of ${what}, into an empty folder`, imports] as const,
  ].flatMap(([work, taken]) => {
    const ms = median(taken.map((one) => one.ms))
    const peak = Math.max(...taken.map((one) => one.peak))
    const detail = `${seconds(ms)} to ${seconds(cp)}, bundle ${megabytes(statSync(bundle).size)}`
    return [ratioLine(work, against, ms / cp, 2, detail), memoryLine(work, peak)]
  })
}

async function delta(dir: string, { records }: { records: number }): Promise<Line[]> {
  const bundle = join(dir, 'delta.zip')
  const out = await command(join(dir, 'above'), 'export', bundle, '1')
  const figure = ({ ms, peak }: Taken): string => `${seconds(ms)}, peak ${megabytes(peak)}`
  const work = `export of a delta: ${CHANGED} of ${records} records`
  const size = `bundle ${(statSync(bundle).size / 1e6).toFixed(2)} MB`
  const line = { against: '', goal: 'figure', met: null }
  const lines = [{ ...line, work, figure: `${figure(out)}, ${size}` }]
  const below = mkBelow(dir)
  if (below === null) return lines
  const taken = await command(below, 'import', bundle)
  return [...lines, { ...line, work: 'import of that delta', figure: figure(taken) }]
}

/** The folder that the last round imported into. */
function mkBelow(dir: string): string | null {
  const rounds = [0, 1, 2, 3, 4].map((round) => join(dir, `below-${round}`))
  return rounds.findLast((path) => existsSync(path)) ?? null
}

async function command(dataDir: string, ...args: string[]): Promise<Taken> {
  process.env['PATCHMIRROR_DATA_DIR'] = dataDir
  return timed(process.execPath, [`${ROOT}test/bench/bundle-child.ts`, ...args])
}

/** What anybody does with a file for a medium: milliseconds. */
function copy(from: string, to: string): number {
  const started = performance.now()
  execFileSync('cp', [from, to])
  execFileSync('sync', [to])
  execFileSync('sha256sum', [to])
  const ms = performance.now() - started
  rmSync(to)
  return ms
}

function memoryLine(work: string, peak: number): Line {
  const met = peak <= 250e6
  return {
    work: `${work}: peak memory`,
    against: '',
    figure: megabytes(peak),
    goal: '≤ 250 MB',
    met,
  }
}
