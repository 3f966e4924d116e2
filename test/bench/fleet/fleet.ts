import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { type DaemonProcess, startDaemon } from '../world/daemon.ts'
import { type SandboxProcess, startSandbox } from '../world/processes.ts'
import { count, megabytes, milliseconds } from '../report/figures.ts'
import { type Line, type Value, always, atMost, defineGroup, neverOver } from '../report/group.ts'
import { type ScannerReport, runScanners } from './scanners.ts'

/** A writer and its readers, over a shared folder on this machine. */
interface Fleet {
  readonly sandbox: SandboxProcess
  readonly store: string
  readonly writer: DaemonProcess
  readonly readers: readonly DaemonProcess[]
}

const CHANGED = 100
const RECORDS = 100_000
const SCANNERS = 100_000
const INDEX = '/external/osv/all.json'
/** Longest wait for a state of the fleet, milliseconds. */
const PATIENCE_MS = 180_000

/** Records of the fleet that the scanners ask: their number is what counts, and each of them takes the index. */
const SCANNED_RECORDS = 2000

interface Run {
  readonly fillMs: number
  readonly published: Published
  /** Requests per second to the store that one idle reader makes. */
  readonly idle: number
  readonly scans: readonly [ScannerReport, ScannerReport]
}

/** Publishes changes from one writer to two readers, asks them as many scanners would, and reports times, bytes and requests. */
export const fleet = defineGroup<{ close(): Promise<void> }, Run>({
  name: 'fleet',
  about: ({ size }) =>
    `A change is ${CHANGED} of ${count(size(RECORDS))} records. ${count(size(SCANNERS))} scanners use 64 connections, and a generation follows every 5 s.`,
  prepare: () => Promise.resolve({ close: () => Promise.resolve() }),
  async run(_, { size, seconds: length }) {
    const filled = await withFleet(size(RECORDS), async (all, dir, processes) => {
      const fillMs = await fillReader(dir, all, processes)
      await publishOnce(all) // a reader that just started has not taken over a generation yet
      return {
        fillMs,
        published: await publishOnce(all),
        idle: await idleRequests(all, length(30)),
      }
    })
    const scans = await withFleet(size(SCANNED_RECORDS), (all) => scanning(all, size(SCANNERS)))
    return { ...filled, scans }
  },
  lines: () => [...publishingLines(), ...scanningLines()],
})

function publishingLines(): Line<Run>[] {
  return [
    {
      work: 'empty reader, from start to ready',
      unit: 's',
      measure: ({ fillMs }) => fillMs,
    },
    {
      work: 'change: on the store',
      unit: 's',
      goal: atMost(5000),
      measure: ({ published }) => published.storedMs,
    },
    {
      work: 'change: bytes written',
      unit: 'count',
      goal: neverOver(20_000),
      measure: ({ published }) => published.bytes,
    },
    {
      work: 'change: objects written',
      unit: 'count',
      goal: neverOver(5),
      measure: ({ published }) => published.writes,
    },
    {
      work: 'change: first to last reader',
      unit: 's',
      goal: atMost(1000),
      measure: ({ published }) => published.skewMs,
    },
    {
      work: 'change: served by all',
      unit: 's',
      goal: atMost(3000),
      measure: ({ published }) => published.visibleMs,
    },
    {
      work: 'requests of 20 idle readers to the store',
      unit: '/s',
      goal: atMost(2),
      measure: ({ idle }) => 20 * idle,
    },
  ]
}

function scanningLines(): Line<Run>[] {
  return [
    {
      work: 'scanners: requests to one reader',
      unit: '/s',
      measure: ({ scans: [one] }) => described(one),
    },
    {
      work: 'scanners: requests to two readers',
      unit: '/s',
      measure: ({ scans: [, two] }) => described(two),
    },
    {
      work: 'answers backwards, mixed, different, repeated or failed',
      unit: 'count',
      goal: always(0),
      measure: ({ scans }) => faultsOf(scans),
    },
  ]
}

function described({ requests, seconds: time, p99, bytes }: ScannerReport): Value {
  return { value: requests / time, detail: `p99 ${milliseconds(p99)}, ${megabytes(bytes)}` }
}

function faultsOf(scans: readonly ScannerReport[]): Value {
  const faults = scans.flatMap((one) => Object.entries(one.faults)).filter(([, count]) => count > 0)
  const detail = faults.map(([name, count]) => `${count} ${name}`).join(', ')
  return { value: faults.reduce((sum, [, count]) => sum + count, 0), detail }
}

async function withFleet<T>(
  records: number,
  work: (fleet: Fleet, dir: string, processes: DaemonProcess[]) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-fleet-'))
  const sandbox = await startSandbox(records)
  const processes: DaemonProcess[] = []
  try {
    return await work(await startFleet(dir, sandbox, processes), dir, processes)
  } finally {
    for (const one of processes) await one.stop()
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function startFleet(dir: string, sandbox: SandboxProcess, processes: DaemonProcess[]): Promise<Fleet> {
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
  const { snapshot } = await writer.run('osv')
  const serves = ({ url }: DaemonProcess) =>
    until(async () => (await snapshotOf(url)) === snapshot, 'the records are served')
  await serves(writer)
  const readers = [await start('reader-1', 'reader', ''), await start('reader-2', 'reader', '')]
  await Promise.all(readers.map(serves))
  return { sandbox, store, writer, readers }
}

/** An empty reader, from its start to ready: milliseconds. */
async function fillReader(dir: string, { writer }: Fleet, processes: DaemonProcess[]): Promise<number> {
  const snapshot = await snapshotOf(writer.url)
  const started = performance.now()
  const settings = { PATCHMIRROR_FLEET_ROLE: 'reader', PATCHMIRROR_FLEET_NAME: 'reader-3' }
  const all = { ...fleetSettings(), ...settings }
  const daemon = await startDaemon('', join(dir, 'reader-3'), all)
  processes.push(daemon)
  const isFilled = async (): Promise<boolean> =>
    (await isReady(daemon.url)) && (await snapshotOf(daemon.url)) === snapshot
  await until(isFilled, 'an empty reader is ready')
  const ms = performance.now() - started
  await daemon.stop()
  processes.splice(processes.indexOf(daemon), 1)
  return ms
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

async function publishOnce({ sandbox, store, writer, readers }: Fleet): Promise<Published> {
  const before = objects(store)
  const last = generations(store)
  await sandbox.command('change', CHANGED)
  const { endedAt, snapshot } = await writer.run('osv')
  const committed = endedAt ?? Date.now()
  await until(() => generations(store) > last, 'the next generation is on the store', 10)
  const storedMs = Date.now() - committed
  const served = await Promise.all(
    readers.map(async ({ url }) => {
      await until(async () => (await snapshotOf(url)) === snapshot, 'a reader serves it', 20)
      return Date.now()
    }),
  )
  const added = [...objects(store)].filter(([name, { at }]) => before.get(name)?.at !== at)
  const own = added.filter(([name]) => !/^(readers|lease)/.test(name))
  const bytes = own.reduce((sum, [, { size }]) => sum + size, 0)
  const first = Math.min(...served)
  const lastServed = Math.max(...served)
  return { storedMs, bytes, writes: own.length, visibleMs: lastServed - committed, skewMs: lastServed - first }
}

/** Requests after a publication until a reader has reported that it serves it: then it is idle. */
const REPORTED = 2

/**
 * Requests per second to the store that one idle reader makes, by its own counters: from one request to the first after so many
 * seconds. The time from one poll to the next is so long that any other span would have one more or one less.
 */
async function idleRequests({ readers }: Fleet, span: number): Promise<number> {
  const [reader] = readers
  if (reader === undefined) throw new Error('there is no reader')
  for (let left = REPORTED; left > 0; left--) await nextRequest(reader.url)
  const first = await nextRequest(reader.url)
  await delay(span * 1000)
  const last = await nextRequest(reader.url)
  return ((last.count - first.count) / (last.at - first.at)) * 1000
}

/** Waits for the next request of a reader; resolves with how many it made until then, and the time, milliseconds. */
async function nextRequest(url: string): Promise<{ count: number; at: number }> {
  const before = await requestsOf(url)
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until;) {
    await delay(50)
    const count = await requestsOf(url)
    if (count > before) return { count, at: performance.now() }
  }
  throw new Error(`an idle reader asked the store nothing for ${PATIENCE_MS / 1000} s`)
}

async function requestsOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/-/metrics`)).text()
  const values = [...text.matchAll(/^patchmirror_fleet_requests_total\{.*\} (\d+)/gm)]
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}

/** Many scanners, with a publication every few seconds: on one reader, then on two. */
async function scanning(all: Fleet, scanners: number): Promise<readonly [ScannerReport, ScannerReport]> {
  const one = await scan(all, all.readers.slice(0, 1), scanners)
  return [one, await scan(all, all.readers, scanners)]
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
    scanners,
    spreadMs: 60_000,
    connections: 64,
    fetches: 3,
    spike: { share: 0.2, atMs: 20_000 },
    herd: { clients: 20, atMs: 40_000 },
  })
  state.ended = true
  await changing
  return report
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

async function until(met: () => boolean | Promise<boolean>, what: string, everyMs = 100): Promise<void> {
  for (const ends = performance.now() + PATIENCE_MS; performance.now() < ends; await delay(everyMs))
    if (await met()) return
  throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}`)
}
