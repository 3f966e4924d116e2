import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import type { Run } from '../../../src/store/runs/runs.ts'
import { startDaemon, took } from '../world/daemon.ts'
import { type LoggedRequest, ROOT, type SandboxProcess, ended, messageFrom, startSandbox } from '../world/processes.ts'
import { count, megabytes, seconds } from '../report/figures.ts'
import { always, atMost, defineGroup, neverOver, ratio } from '../report/group.ts'
import type { Replay, Replayed } from './replay-child.ts'

/** Requests at the same time, of the mirror and of the bare client. */
const CONCURRENCY = 8
const LARGE = 10

/** Settings that mirror a stand-in's whole catalog. */
export function catalogSettings({ catalogUrl }: Pick<SandboxProcess, 'catalogUrl'>): Record<string, string> {
  return {
    PATCHMIRROR_UPSTREAM_CATALOG_URL: catalogUrl,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
    PATCHMIRROR_UPSTREAM_CONCURRENCY: String(2 * CONCURRENCY),
  }
}

const SIZE = { tags: 5000, packages: 2000 }

interface Syncs {
  readonly first: Run
  readonly again: Run
  readonly bare: Replayed
  readonly peak: number
  readonly cpuMs: number
  /** List pages of a thousand items. */
  readonly pages: number
}

/** A first and an unchanged sync of a whole catalog, against a bare client that sends the same requests. */
export const catalog = defineGroup<{ sandbox: SandboxProcess; close(): Promise<void> }, Syncs>({
  name: 'catalog',
  about: ({ size }) =>
    `${count(size(SIZE.tags))} tags, ${count(size(SIZE.packages))} packages and their artifacts, with ${LARGE} SBOMs of 20 MB.`,
  async prepare({ size }) {
    const tags = size(SIZE.tags)
    const packages = size(SIZE.packages)
    const flags = { tags, packages, 'large-sboms': LARGE, 'keep-requests': 1_000_000 }
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
    const sandbox = await startSandbox(1, args)
    return { sandbox, close: () => sandbox.stop() }
  },
  run: ({ sandbox }) => syncTwice(sandbox),
  lines: () => [
    {
      work: 'first sync',
      against: `bare client, ${CONCURRENCY} requests at a time`,
      unit: '×',
      goal: atMost(1.25),
      measure: ({ first, bare, cpuMs }) => {
        const { value, detail = '' } = ratio(took(first), bare.ms, seconds)
        const all = `${String(first.facts['requests'])} requests, ${megabytes(bare.bytes)}`
        return { value, detail: `${detail}, ${all}, processor ${seconds(cpuMs)}` }
      },
    },
    {
      work: 'its peak memory',
      unit: 'MB',
      goal: neverOver(220e6),
      measure: ({ peak }) => peak,
    },
    {
      work: 'unchanged sync: requests beyond list pages and two documents',
      unit: 'count',
      goal: always(0),
      measure: ({ again, pages }) => {
        const requests = Number(again.facts['requests'])
        return { value: requests - pages - 2, detail: `${requests} requests, ${seconds(took(again))}` }
      },
    },
  ],
})

async function syncTwice(sandbox: SandboxProcess): Promise<Syncs> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-catalog-'))
  try {
    await sandbox.forgetRequests()
    const daemon = await startDaemon(sandbox.url, dir, catalogSettings(sandbox))
    const first = await daemon.run('catalog')
    const { peak, cpuMs } = await daemon.stop()
    const bare = await replay(sandbox, await sandbox.requests())
    const later = await startDaemon(sandbox.url, dir, catalogSettings(sandbox))
    const again = await later.run('catalog')
    await later.stop()
    return { first, again, bare, peak, cpuMs, pages: await pagesOf(sandbox) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The requests that the stand-in logged, sent again by a client that only reads the answers. */
async function replay(sandbox: SandboxProcess, logged: readonly LoggedRequest[]): Promise<Replayed> {
  const roots = { api: sandbox.url, catalog: sandbox.catalogUrl, artifacts: sandbox.artifactUrl }
  const requests = logged.map(({ host, path, query, headers }) => {
    if (host === 'identity') throw new Error('the catalog has nothing to ask the identity surface')
    const { host: _, connection: __, ...rest } = headers
    const text = new URLSearchParams(query).toString()
    return { url: `${roots[host]}${path}${text === '' ? '' : `?${text}`}`, headers: rest }
  })
  const child = fork(`${ROOT}test/bench/catalog/replay-child.ts`, [], { cwd: ROOT })
  await messageFrom(child, (message) => message === 'ready')
  const told = messageFrom<Replayed>(child, (message: object) => 'failures' in message)
  child.send({ requests, concurrency: CONCURRENCY } satisfies Replay)
  const result = await told
  child.disconnect()
  await ended(child)
  if (result.failures > 0) throw new Error(`${result.failures} of the same requests failed`)
  return result
}

/** List pages of a thousand. */
async function pagesOf(sandbox: SandboxProcess): Promise<number> {
  const counts = await sandbox.counts()
  const lists = ['images', 'tags', 'packages', 'tickets', 'subscriptions']
  const pages = lists.map((name) => Math.max(1, Math.ceil((counts[name] ?? 0) / 1000)))
  return pages.reduce((sum, count) => sum + count, 0)
}
