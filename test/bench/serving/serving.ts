import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ServerChild, startChild } from './child.ts'
import { type Filled, fillStore } from './fill.ts'
import { type Measured, measure } from './load.ts'
import { startNginx } from './nginx.ts'

export interface ServingOptions {
  /** Different records asked for. */
  records: number
  /** Length of one measurement. */
  seconds: number
  /** Measurements of each server, taken in turns so that a slow moment of the machine hits all; default 3. */
  rounds?: number
  connections?: number
  /** The mirror's server.cacheBytes; default 64 MB. */
  cacheBytes?: number
  /** Whether to measure nginx with the same files, where it is installed; default true. */
  nginx?: boolean
}

/** One line of the report. `ratio` is to the bare Fastify route of the same run. */
export interface Row {
  server: 'bare fastify' | 'nginx' | 'mirror'
  coding: 'gzip' | 'identity'
  records: number
  requestsPerSecond: number
  ratio: number
  /** The server's processor time per answer; null where it is not ours to ask. */
  cpuMicroseconds: number | null
  failures: number
}

/**
 * `GET {id}.json` over `records` different ids in random order, warm, in both codings: the mirror, a bare Fastify route
 * that sends one buffer of the average size, and nginx with the same files. Loopback only; stops by itself.
 */
export async function benchServing(options: ServingOptions): Promise<Row[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-serving-'))
  try {
    const files = options.nginx === false ? null : join(dir, 'files')
    const filled = fillStore(join(dir, 'data'), options.records, files)
    const rows: Row[] = []
    for (const coding of ['gzip', 'identity'] as const)
      rows.push(...(await benchCoding(dir, filled, coding, options)))
    return rows
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

type Servers = Partial<Record<Row['server'], ServerChild>>

async function benchCoding(
  dir: string,
  filled: Filled,
  coding: Row['coding'],
  options: ServingOptions,
): Promise<Row[]> {
  const servers = await startServers(dir, filled, coding, options)
  try {
    const { seconds, rounds = 3, connections = 32 } = options
    const load = { ids: filled.ids, gzip: coding === 'gzip', connections }
    const entries = Object.entries(servers) as [Row['server'], ServerChild][]
    for (const [, server] of entries)
      await measure(server, { ...load, seconds: Math.max(2, seconds / 2) })
    const taken = new Map(entries.map(([name]) => [name, [] as Measured[]]))
    for (let round = 0; round < rounds; round++)
      for (const [name, server] of entries)
        taken.get(name)?.push(await measure(server, { ...load, seconds }))
    return rowsOf(taken, coding, filled.ids.length)
  } finally {
    for (const server of Object.values(servers)) await server.stop()
  }
}

async function startServers(
  dir: string,
  filled: Filled,
  coding: Row['coding'],
  { cacheBytes = 64_000_000, nginx }: ServingOptions,
): Promise<Servers> {
  const size = Math.round(coding === 'gzip' ? filled.member : filled.content)
  const servers: Servers = {
    'bare fastify': await startChild('bare-child.ts', [String(size)]),
    mirror: await startChild('mirror-child.ts', [join(dir, 'data'), String(cacheBytes)]),
  }
  const other = nginx === false ? null : await startNginx(join(dir, 'nginx'), join(dir, 'files'))
  return other === null ? servers : { ...servers, nginx: other }
}

function rowsOf(
  taken: ReadonlyMap<Row['server'], readonly Measured[]>,
  coding: Row['coding'],
  records: number,
): Row[] {
  const yardstick = median(taken.get('bare fastify') ?? []).rate
  return [...taken].map(([server, measured]) => {
    const { rate, cpu } = median(measured)
    return {
      server,
      coding,
      records,
      requestsPerSecond: Math.round(rate),
      ratio: Number((rate / yardstick).toFixed(3)),
      cpuMicroseconds: cpu === null ? null : Number(cpu.toFixed(1)),
      failures: measured.reduce((sum, { failures }) => sum + failures, 0),
    }
  })
}

function median(measured: readonly Measured[]): Measured {
  const sorted = [...measured].sort((one, other) => one.rate - other.rate)
  return sorted[Math.floor(sorted.length / 2)] ?? { rate: Number.NaN, cpu: null, failures: 0 }
}
