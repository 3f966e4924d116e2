import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SANDBOX_KEYS } from '../../../src/sandbox/service/credentials.ts'
import type { RunReport } from '../../../src/sync/runner.ts'
import { startDaemon, took } from '../daemon.ts'
import {
  type LoggedRequest,
  ROOT,
  type SandboxProcess,
  ended,
  messageFrom,
  startSandbox,
} from '../processes.ts'
import { type Line, median, megabytes, ratioLine, seconds } from '../table.ts'
import type { Replay, Replayed } from './replay-child.ts'

/** Requests at the same time, of the mirror and of the bare client. */
const CONCURRENCY = 8
const LARGE = 10

/** Settings that mirror a stand-in's whole catalog. */
export function catalogSettings({ catalogUrl }: SandboxProcess): Record<string, string> {
  return {
    PATCHMIRROR_UPSTREAM_CATALOG_URL: catalogUrl,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_CATALOG_ALLOW_PRIVATE_ARTIFACTS: 'true',
    PATCHMIRROR_CATALOG_CONCURRENCY: String(CONCURRENCY),
  }
}

/** How much there is to mirror. */
export interface CatalogSize {
  tags: number
  packages: number
}

/** A first and an unchanged sync of a whole catalog, against a bare client that sends the same requests. */
export async function benchCatalogSync(size: CatalogSize, rounds: number): Promise<Line[]> {
  const flags = { ...size, 'large-sboms': LARGE, 'keep-requests': 1_000_000 }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
  const sandbox = await startSandbox(1, args)
  try {
    const taken: Round[] = []
    for (let at = 0; at < rounds; at++) taken.push(await round(sandbox))
    return linesOf(size, taken, await pagesOf(sandbox))
  } finally {
    await sandbox.stop()
  }
}

interface Round {
  first: RunReport
  again: RunReport
  bare: Replayed
  peak: number
  cpuMs: number
}

async function round(sandbox: SandboxProcess): Promise<Round> {
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
    return { first, again, bare, peak, cpuMs }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The requests that the stand-in logged, sent anew by a client that only reads the answers. */
async function replay(
  sandbox: SandboxProcess,
  logged: readonly LoggedRequest[],
): Promise<Replayed> {
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

function linesOf(size: CatalogSize, taken: readonly Round[], pages: number): Line[] {
  const [one] = taken
  if (one === undefined) return []
  const ms = median(taken.map(({ first }) => took(first)))
  const bare = median(taken.map(({ bare: { ms: taken } }) => taken))
  const ratio = median(taken.map((round) => took(round.first) / round.bare.ms))
  const cpu = median(taken.map(({ cpuMs }) => cpuMs))
  const peak = Math.max(...taken.map((round) => round.peak))
  const again = median(taken.map((round) => took(round.again)))
  const asked = Number(one.again.facts['requests'])
  const work = `whole sync of a catalog: ${size.tags} tags, ${size.packages} packages, their artifacts`
  const all = `${String(one.first.facts['requests'])} requests, ${megabytes(one.bare.bytes)}`
  const detail = `${seconds(ms)} to ${seconds(bare)}, ${all}, ${seconds(cpu)} of processor`
  const wanted = pages + 2 // and two documents that stand alone: the account, the organization
  return [
    ratioLine(
      work,
      `a bare client, the same requests, ${CONCURRENCY} at a time`,
      ratio,
      1.3,
      detail,
    ),
    {
      work: `its peak memory, the whole daemon, ${LARGE} SBOMs of 20 MB in the set`,
      against: '',
      figure: megabytes(peak),
      goal: '≤ 250 MB',
      met: peak <= 250e6,
    },
    {
      work: 'unchanged sync of the same catalog',
      against: '',
      figure: `${asked} requests, ${seconds(again)}`,
      goal: `${wanted} requests: list pages and two documents`,
      met: asked === wanted,
    },
  ]
}
