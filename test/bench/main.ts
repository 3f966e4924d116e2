/**
 * `npm run bench`: measures the daemon as it is built against loops and servers in the same run, prints one table
 * and writes it to docs/benchmarks.md. Loopback only; ends by itself after some minutes. `--quick` leaves out the
 * 400,000 records and takes fewer rounds, `--no-serving` the load on the server, `--no-write` the file. `--only records`,
 * `serving`, `catalog`, `patches`, `webhooks`, `bundles`, `views`, `pages` or `fleet` takes one part and leaves the file alone.
 */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { arch, cpus, platform, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { benchPatches } from './catalog/patches.ts'
import { benchCatalogSync } from './catalog/sync.ts'
import { benchBundles } from './bundles.ts'
import { benchChanges } from './changes.ts'
import { startDaemon, took } from './daemon.ts'
import { benchFleet } from './fleet/fleet.ts'
import { benchIngest, benchLarge } from './ingest.ts'
import { benchPages } from './pages.ts'
import { ROOT, startSandbox } from './processes.ts'
import { benchReads } from './reads.ts'
import { type Row, benchServing } from './serving/serving.ts'
import { type Line, markdown, megabytes, seconds } from './table.ts'
import { benchViews } from './views.ts'
import { benchVisible } from './visible.ts'
import { benchWebhooks } from './webhooks.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    'no-serving': { type: 'boolean', default: false },
    'no-write': { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})

const REAL = `${ROOT}../shared/data/osv-real.zip`

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

function servingLines(
  rows: readonly Row[],
  goals: Partial<Record<Row['server'], number>>,
  note: string,
): Line[] {
  return rows
    .filter(({ server }) => server === 'mirror')
    .flatMap((mirror) =>
      rows
        .filter(({ server, coding }) => server !== 'mirror' && coding === mirror.coding)
        .map((other) => {
          const ratio = mirror.requestsPerSecond / other.requestsPerSecond
          const goal = goals[other.server]
          const rates = `${Math.round(mirror.requestsPerSecond)} to ${Math.round(other.requestsPerSecond)} requests/s`
          return {
            work: `GET {id}.json, ${mirror.records} ids, 32 connections, ${mirror.coding}${note}`,
            against:
              other.server === 'nginx'
                ? 'nginx serving the same files'
                : 'bare Fastify sending one buffer',
            figure: `${ratio.toFixed(2)}× (${rates})`,
            goal: goal === undefined ? 'figure' : `≥ ${goal}×`,
            met: goal === undefined ? null : ratio >= goal,
          }
        }),
    )
}

async function realData(): Promise<Line[]> {
  if (!existsSync(REAL)) return []
  const sandbox = await startSandbox(1, ['--osv-zip', REAL])
  const daemon = await startDaemon(sandbox.url)
  try {
    const run = await daemon.run('osv')
    const ms = took(run)
    const figure = `${seconds(ms)} for ${String(run.facts['records'])} records, ${megabytes(Number(run.facts['archiveBytes']))}`
    return [{ work: 'ingest of a real archive', against: '', figure, goal: 'figure', met: null }]
  } finally {
    await daemon.stop()
    await sandbox.stop()
  }
}

async function serving(): Promise<Line[]> {
  say('serving 20,000 ids …')
  const lines = servingLines(
    await benchServing({ records: 20_000, seconds: 4 }),
    { 'bare fastify': 0.8, nginx: 1 },
    ', warm',
  )
  say('serving 100,000 ids from a cache too small …')
  const small = await benchServing({ records: 100_000, seconds: 4, cacheBytes: 8_000_000 })
  lines.push(...servingLines(small, { 'bare fastify': 0.55 }, ', cache too small'))
  return lines
}

async function records(): Promise<Line[]> {
  say('making up 100,000 records …')
  const sandbox = await startSandbox(100_000)
  say('ingest …')
  const { lines, cold } = await benchIngest(3, sandbox)
  say('reads during an ingest …')
  const reads = await benchReads(sandbox)
  say('changes …')
  const changes = await benchChanges(sandbox, cold)
  await sandbox.stop()
  lines.push(...changes, reads, ...(await realData()))
  if (values.quick) return lines
  say('400,000 records …')
  return [...lines, ...(await benchLarge(cold))]
}

async function catalog(): Promise<Line[]> {
  say('a catalog of 5,000 tags and 2,000 packages …')
  return benchCatalogSync({ tags: 5000, packages: 2000 }, values.quick ? 1 : 3)
}

async function patches(): Promise<Line[]> {
  say('200,000 tickets …')
  return benchPatches()
}

async function webhooks(): Promise<Line[]> {
  say('webhooks during an ingest …')
  const acknowledged = await benchWebhooks()
  say('ten announced tags, one after the other …')
  return [acknowledged, await benchVisible()]
}

async function bundles(): Promise<Line[]> {
  const scale = values.quick ? 0.1 : 1
  say(`bundles of ${100_000 * scale} records and ${2 * scale} GB of documents …`)
  const size = { records: 100_000 * scale, bytes: 2e9 * scale }
  return benchBundles(size, values.quick ? 1 : 3)
}

async function views(): Promise<Line[]> {
  const records = values.quick ? 10_000 : 100_000
  say(`views of ${records} records …`)
  return benchViews(records)
}

async function pages(): Promise<Line[]> {
  const scale = values.quick ? 0.1 : 1
  say(`pages over ${100_000 * scale} records and ${200_000 * scale} tickets …`)
  return benchPages(100_000 * scale, 200_000 * scale)
}

async function fleet(): Promise<Line[]> {
  const scale = values.quick ? 0.02 : 1
  say(`a fleet with ${100_000 * scale} records …`)
  return benchFleet({ records: 100_000 * scale, scanners: 100_000 * scale })
}

const PARTS: Record<string, () => Promise<Line[]>> = {
  records,
  serving,
  catalog,
  patches,
  webhooks,
  bundles,
  views,
  pages,
  fleet,
}

async function main(): Promise<void> {
  const { only } = values
  if (only !== undefined && !Object.hasOwn(PARTS, only))
    throw new Error(`--only takes one of ${Object.keys(PARTS).join(', ')}, not ${only}`)
  const lines: Line[] = []
  for (const [name, part] of Object.entries(PARTS)) {
    const left = name === 'serving' && values['no-serving']
    if (only === undefined ? !left : only === name) lines.push(...(await part()))
  }
  const text = markdown(lines)
  process.stdout.write(`${text}\n`)
  // A part is no table of everything.
  const whole = only === undefined && !values['no-write']
  if (whole) await writeFile(PAGE, page(text, await notes()))
}

const PAGE = `${ROOT}docs/benchmarks.md`
const NOTES = '## What is missed, and why'

/** What people wrote below the table stays. */
async function notes(): Promise<string> {
  const before = existsSync(PAGE) ? await readFile(PAGE, 'utf8') : ''
  const at = before.indexOf(NOTES)
  return at < 0 ? '' : `\n${before.slice(at)}`
}

function page(table: string, below: string): string {
  const [cpu] = cpus()
  const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${arch()}`
  return `# Benchmarks

Written by \`npm run bench\` on ${new Date().toISOString().slice(0, 10)}: ${machine}, Node ${process.version}.
Each line compares in one run; a machine's speed drifts, so read the ratios. Client, stand-in service and
mirror share the machine.

${table}
${below}`
}

await main()
