import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { count, megabytes, pair, seconds } from '../report/figures.ts'
import { type Line, type Options, type Value, atMost, defineGroup, neverOver } from '../report/group.ts'
import { startDaemon } from '../world/daemon.ts'
import { ROOT, type SandboxProcess, startSandbox, timed } from '../world/processes.ts'
import { fillCatalog } from './fill.ts'

const RECORDS = 100_000
/** Bytes of documents beside the records. */
const DOCUMENTS = 2e9
const CHANGED = 250
/** Records of a thin delta. */
const THIN = 100

/** Source mirrors with the same records, one with documents as well. */
interface World {
  readonly dir: string
  readonly sandbox: SandboxProcess
  close(): Promise<void>
}

/** What a command took: milliseconds, and its peak memory in bytes. */
interface Taken {
  readonly ms: number
  readonly peak: number
  /** What it printed. */
  readonly out: string
}

/** Both ways of one bundle, and what `cp`, `sync` and `sha256sum` of the same bytes took between them. */
interface Carried {
  readonly exported: Taken
  readonly copyMs: number
  readonly imported: Taken
  readonly bytes: number
  /** The number of the exported state, as `--since` takes it. */
  readonly sequence: string
}

interface Run {
  readonly whole: Carried
  readonly records: Carried
  readonly delta: Carried
  readonly thin: Carried
}

/** Export and import of records and documents; of records alone; of a delta. The built program, in processes of its own. */
export const bundles = defineGroup<World, Run>({
  name: 'bundles',
  about: ({ size }) =>
    `${count(size(RECORDS))} records. Copying is \`cp\`, \`sync\` and \`sha256sum\`; imports are into an empty folder.`,
  prepare,
  run,
  lines: (options) => [...wholeLines(options), ...otherLines()],
})

async function prepare({ size }: Options): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-bundles-'))
  const sandbox = await startSandbox(size(RECORDS))
  const close = async (): Promise<void> => {
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    for (const name of ['whole', 'records']) await sync(sandbox.url, join(dir, name))
    fillCatalog(join(dir, 'whole'), size(DOCUMENTS))
    const { line } = createKeyFiles(join(dir, 'key'))
    process.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = join(dir, 'key')
    process.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = line
    return { dir, sandbox, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function sync(upstream: string, dir: string): Promise<void> {
  const daemon = await startDaemon(upstream, dir)
  await daemon.run('feeds')
  await daemon.run('osv')
  await daemon.stop()
}

/** The delta is exported after some records changed, and imported where their first bundle was. */
async function run({ dir, sandbox }: World, { size }: Options): Promise<Run> {
  const targets = { whole: join(dir, 'target-whole'), records: join(dir, 'target-records') }
  try {
    const whole = await carry(dir, 'whole', targets.whole)
    rmSync(targets.whole, { recursive: true })
    const records = await carry(dir, 'records', targets.records)
    await sandbox.command('change', Math.min(CHANGED, size(RECORDS)))
    await sync(sandbox.url, join(dir, 'records'))
    const delta = await carry(dir, 'records', targets.records, records.sequence)
    await sandbox.command('change', Math.min(THIN, size(RECORDS)))
    await sync(sandbox.url, join(dir, 'records'))
    const thin = await carry(dir, 'records', targets.records, delta.sequence, 'thin')
    return { whole, records, delta, thin }
  } finally {
    for (const path of Object.values(targets)) rmSync(path, { recursive: true, force: true })
  }
}

async function carry(dir: string, source: string, target: string, ...more: readonly string[]): Promise<Carried> {
  const bundle = join(dir, 'bundle.zip')
  const exported = await command(join(dir, source), 'export', bundle, ...more)
  const sequence = /^ {2}"sequence": (\d+)/m.exec(exported.out)?.[1] ?? ''
  const copyMs = copy(bundle, join(dir, 'copy.zip'))
  const imported = await command(target, 'import', bundle)
  const bytes = statSync(bundle).size
  rmSync(bundle)
  return { exported, copyMs, imported, bytes, sequence }
}

async function command(dataDir: string, ...args: string[]): Promise<Taken> {
  process.env['PATCHMIRROR_DATA_DIR'] = dataDir
  return timed(process.execPath, [`${ROOT}test/bench/bundles/child.ts`, ...args])
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

const AGAINST = 'copying'

function compared({ ms }: Taken, { copyMs, bytes }: Carried): Value {
  const detail = `${pair(ms, copyMs, seconds)}, bundle ${megabytes(bytes)}`
  return { value: ms / copyMs, detail }
}

function wholeLines({ size }: Options): Line<Run>[] {
  const what = `with ${megabytes(size(DOCUMENTS))} of documents`
  const memory = { unit: 'MB', goal: neverOver(250e6) } as const
  return [
    {
      work: `export ${what}`,
      against: AGAINST,
      unit: '×',
      goal: atMost(2),
      measure: ({ whole }) => compared(whole.exported, whole),
    },
    {
      ...memory,
      work: 'its peak memory',
      measure: ({ whole }) => whole.exported.peak,
    },
    {
      work: `import ${what}`,
      against: AGAINST,
      unit: '×',
      goal: atMost(1.5),
      measure: ({ whole }) => compared(whole.imported, whole),
    },
    {
      ...memory,
      work: 'its peak memory',
      measure: ({ whole }) => whole.imported.peak,
    },
  ]
}

function otherLines(): Line<Run>[] {
  const detail = ({ peak }: Taken, bytes: number): string => `peak ${megabytes(peak)}, bundle ${megabytes(bytes)}`
  return [
    {
      work: 'export of records alone',
      against: AGAINST,
      unit: '×',
      measure: ({ records }) => compared(records.exported, records),
    },
    {
      work: 'import of records alone',
      against: AGAINST,
      unit: '×',
      measure: ({ records }) => compared(records.imported, records),
    },
    {
      work: `export of a delta of ${CHANGED} records`,
      unit: 's',
      measure: ({ delta: { exported, bytes } }) => {
        return { value: exported.ms, detail: detail(exported, bytes) }
      },
    },
    {
      work: 'import of that delta',
      unit: 's',
      measure: ({ delta: { imported, bytes } }) => {
        return { value: imported.ms, detail: detail(imported, bytes) }
      },
    },
    {
      work: `bytes of a thin delta of ${THIN} records`,
      unit: 'count',
      goal: neverOver(20_000),
      measure: ({ thin }) => thin.bytes,
    },
    {
      work: 'export of that thin delta',
      unit: 's',
      goal: neverOver(1000),
      measure: ({ thin: { exported, bytes } }) => {
        return { value: exported.ms, detail: detail(exported, bytes) }
      },
    },
    {
      work: 'import of that thin delta',
      unit: 's',
      goal: neverOver(1000),
      measure: ({ thin: { imported, bytes } }) => {
        return { value: imported.ms, detail: detail(imported, bytes) }
      },
    },
  ]
}
