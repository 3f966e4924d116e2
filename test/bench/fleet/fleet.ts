import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createKeyFiles } from '../../../src/bundle/format/keys.ts'
import { type DaemonProcess, startDaemon } from '../daemon.ts'
import { type SandboxProcess, startSandbox } from '../processes.ts'
import { type Line, megabytes, seconds } from '../table.ts'
import { type ScannerReport, runScanners } from './scanners.ts'

/** How much the fleet has to carry. */
interface Size {
  readonly records: number
  readonly scanners: number
}

/** A writer and its readers, over a shared folder on this machine. */
interface Fleet {
  readonly sandbox: SandboxProcess
  readonly store: string
  readonly writer: DaemonProcess
  readonly readers: readonly DaemonProcess[]
}

const CHANGED = 100
const ROUNDS = 3
const INDEX = '/external/osv/all.json'
/** Longest wait for a state of the fleet, milliseconds. */
const PATIENCE_MS = 180_000

/** Records of the fleet that the scanners ask: their number is what counts, and each of them takes the index. */
const SCANNED_RECORDS = 2000

/** Publishes changes from one writer to two readers, asks them as many scanners would, and reports times, bytes and requests. */
export async function benchFleet({ records, scanners }: Size): Promise<Line[]> {
  const published = await withFleet(records, async (fleet, fill) => {
    const filled = await fill()
    return [filled, ...(await publishing(fleet, records)), await idleRequests(fleet)]
  })
  return [...published, ...(await withFleet(SCANNED_RECORDS, (fleet) => scanning(fleet, scanners)))]
}

async function withFleet(
  records: number,
  work: (fleet: Fleet, fill: () => Promise<Line>) => Promise<Line[]>,
): Promise<Line[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-fleet-'))
  const sandbox = await startSandbox(records)
  const processes: DaemonProcess[] = []
  try {
    const fleet = await startFleet(dir, sandbox, processes)
    return await work(fleet, () => fillReader(dir, records, processes))
  } finally {
    for (const one of processes) await one.stop()
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function startFleet(
  dir: string,
  sandbox: SandboxProcess,
  processes: DaemonProcess[],
): Promise<Fleet> {
  const store = join(dir, 'store')
  mkdirSync(store)
  const { line } = createKeyFiles(join(dir, 'key'))
  const settings = {
    PATCHMIRROR_FLEET_URL: `file://${store}`,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(dir, 'key'),
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
  }
  Object.assign(process.env, settings) // `fillReader` starts a daemon with them too
  const start = async (name: string, role: string, upstream: string): Promise<DaemonProcess> => {
    const more = { ...settings, PATCHMIRROR_FLEET_ROLE: role, PATCHMIRROR_FLEET_NAME: name }
    const daemon = await startDaemon(upstream, join(dir, name), more)
    processes.push(daemon)
    return daemon
  }
  const writer = await start('writer', 'writer', sandbox.url)
  await until(async () => (await fetch(`${writer.url}/-/leader`)).ok, 'the writer leads')
  await writer.run('feeds')
  await writer.run('osv')
  await until(() => generations(store) > 0, 'the first generation is on the store')
  const readers = [await start('reader-1', 'reader', ''), await start('reader-2', 'reader', '')]
  for (const { url } of readers) await until(async () => isReady(url), 'a reader is ready')
  return { sandbox, store, writer, readers }
}

/** An empty reader, from its start to ready. */
async function fillReader(dir: string, records: number, processes: DaemonProcess[]): Promise<Line> {
  const started = performance.now()
  const settings = { PATCHMIRROR_FLEET_ROLE: 'reader', PATCHMIRROR_FLEET_NAME: 'reader-3' }
  const all = { ...fleetSettings(), ...settings }
  const daemon = await startDaemon('', join(dir, 'reader-3'), all)
  processes.push(daemon)
  await until(async () => isReady(daemon.url), 'an empty reader is ready')
  const ms = performance.now() - started
  await daemon.stop()
  processes.splice(processes.indexOf(daemon), 1)
  return figure(`an empty reader, from its start to ready with ${records} records`, seconds(ms))
}

function fleetSettings(): Record<string, string> {
  const names = ['FLEET_URL', 'BUNDLE_SIGNING_KEYS', 'BUNDLE_TRUSTED_KEYS']
  const pairs = names.map((name) => [`PATCHMIRROR_${name}`, process.env[`PATCHMIRROR_${name}`]])
  return Object.fromEntries(pairs) as Record<string, string>
}

interface Published {
  readonly storedMs: number
  readonly bytes: number
  readonly writes: number
  readonly visibleMs: number
  readonly skewMs: number
}

async function publishing(fleet: Fleet, records: number): Promise<Line[]> {
  const rounds: Published[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await publishOnce(fleet))
  const worst = (name: keyof Published): number => Math.max(...rounds.map((one) => one[name]))
  const work = `${CHANGED} of ${records} records changed, worst of ${ROUNDS}`
  const [stored, bytes, writes] = [worst('storedMs'), worst('bytes'), worst('writes')]
  const skew = worst('skewMs')
  const line = (what: string, figure: string, goal: string, met: boolean): Line => {
    return { work: `${work}: ${what}`, against: '', figure, goal, met }
  }
  return [
    line('on the store after the commit', seconds(stored), '≤ 5 s', stored <= 5000),
    line('bytes written to the store', megabytes2(bytes), '≤ 2 MB', bytes <= 2e6),
    line('objects written', String(writes), '≤ 5', writes <= 5),
    line('first to last reader that serves it', seconds(skew), '≤ 1 s', skew <= 1000),
    line('served by all readers after the commit', seconds(worst('visibleMs')), '≤ 25 s', worst('visibleMs') <= 25_000), // prettier-ignore
  ]
}

async function publishOnce({ sandbox, store, writer, readers }: Fleet): Promise<Published> {
  const before = objects(store)
  const last = generations(store)
  await sandbox.command('change', CHANGED)
  const { endedAt, snapshot } = await writer.run('osv')
  const committed = endedAt ?? Date.now()
  await until(() => generations(store) > last, 'the next generation is on the store', 10)
  const storedMs = Date.now() - committed
  const served = await Promise.all(readers.map(async ({ url }) => {
    await until(async () => (await snapshotOf(url)) === snapshot, 'a reader serves it', 20)
    return Date.now()
  })) // prettier-ignore
  const added = [...objects(store)].filter(([name, { at }]) => before.get(name)?.at !== at)
  const own = added.filter(([name]) => !/^(readers|lease)/.test(name))
  const bytes = own.reduce((sum, [, { size }]) => sum + size, 0)
  const [first, lastServed] = [Math.min(...served), Math.max(...served)]
  return { storedMs, bytes, writes: own.length, visibleMs: lastServed - committed, skewMs: lastServed - first } // prettier-ignore
}

/** Requests to the store that one idle reader makes, by its own counters. */
async function idleRequests({ readers }: Fleet): Promise<Line> {
  const [reader] = readers
  if (reader === undefined) throw new Error('there is no reader')
  const before = await requestsOf(reader.url)
  const span = 30
  await delay(span * 1000)
  const rate = ((await requestsOf(reader.url)) - before) / span
  const work = 'requests to the store by an idle reader, 20 of them'
  const figureText = `${(20 * rate).toFixed(1)}/s`
  return { work, against: '', figure: figureText, goal: '≤ 2/s', met: 20 * rate <= 2 }
}

async function requestsOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/-/metrics`)).text()
  const values = [...text.matchAll(/^patchmirror_fleet_requests_total\{.*\} (\d+)/gm)]
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}

/** Many scanners, with a publication every few seconds: on one reader, then on two. */
async function scanning(fleet: Fleet, scanners: number): Promise<Line[]> {
  const one = await scan(fleet, fleet.readers.slice(0, 1), scanners)
  const two = await scan(fleet, fleet.readers, scanners)
  const wrong = [one, two].flatMap(({ faults }) => Object.entries(faults))
  const faults = wrong.filter(([, count]) => count > 0)
  const named = faults.map(([name, count]) => `${count} ${name}`).join(', ')
  const work = `${scanners} scanners as states, 64 connections, a publication every 5 s`
  return [
    figure(`${work}: one reader`, described(one)),
    figure(`${work}: two readers`, described(two)),
    {
      work: `${work}: answers backwards, mixed, different, repeated or failed`,
      ...{ against: '', figure: named === '' ? '0' : named, goal: '0', met: faults.length === 0 },
    },
  ]
}

async function scan(
  { sandbox, writer }: Fleet,
  readers: readonly DaemonProcess[],
  scanners: number,
): Promise<ScannerReport> {
  const state = { ended: false }
  const changing = (async () => {
    for (; !state.ended; await delay(5000)) {
      await sandbox.command('change', CHANGED)
      await writer.run('osv')
    }
  })()
  const report = await runScanners({
    readers: readers.map(({ url }) => url),
    ...{ scanners, spreadMs: 60_000, connections: 64, fetches: 3 },
    spike: { share: 0.2, atMs: 20_000 },
    herd: { clients: 20, atMs: 40_000 },
  })
  state.ended = true
  await changing
  return report
}

function described({ requests, seconds: time, p99, bytes }: ScannerReport): string {
  return `${Math.round(requests / time)} requests/s, p99 ${p99.toFixed(0)} ms, ${megabytes(bytes)}`
}

function figure(work: string, text: string): Line {
  return { work, against: '', figure: text, goal: 'figure', met: null }
}

function megabytes2(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2)} MB`
}

async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/-/ready`)).ok
}

async function snapshotOf(url: string): Promise<string> {
  const answer = await fetch(url + INDEX, { method: 'HEAD' })
  return answer.headers.get('x-mirror-snapshot') ?? ''
}

function generations(store: string): number {
  return [...objects(store).keys()].filter((name) => name.startsWith('gen/')).length
}

/** An object in a shared folder: bytes, and when it was written. */
interface Stored {
  readonly size: number
  readonly at: number
}

/** Returns the objects in a shared folder by name; files in the making have other names. */
function objects(store: string): Map<string, Stored> {
  const names = readdirSync(store, { recursive: true, encoding: 'utf8' })
  const found = names.flatMap((name): [string, Stored][] => {
    const stat = statSync(join(store, name), { throwIfNoEntry: false })
    return stat?.isFile() === true ? [[name, { size: stat.size, at: stat.mtimeMs }]] : []
  })
  return new Map(found.filter(([name]) => !/(^|\/)\./.test(name)))
}

async function until(
  met: () => boolean | Promise<boolean>,
  what: string,
  everyMs = 100,
): Promise<void> {
  for (const ends = performance.now() + PATIENCE_MS; performance.now() < ends; await delay(everyMs))
    if (await met()) return
  throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}`)
}
