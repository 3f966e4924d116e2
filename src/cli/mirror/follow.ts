import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import { servingDaemon } from '../../store/database/lock.ts'
import type { RunReport } from '../../sync/runner.ts'
import { askDaemon } from '../daemon-client.ts'
import { warn } from '../context.ts'

/** A daemon looks for commits each second; one that does not follow for so long has another trouble, milliseconds. */
const PATIENCE_MS = 15_000
const PAUSE_MS = 100

/** Waits until the daemon of this data folder, if one runs, serves what these runs published; warns when it does not. */
export async function untilServed(config: Config, reports: readonly RunReport[]): Promise<void> {
  if (config.fleet.url !== null) return // it is served when the fleet has published it
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const daemon = servingDaemon(config.data.dir)
    if (daemon === null) return
    const server = { ...config.server, port: daemon.port }
    const served = await readServed({ ...config, server }, daemon.instance)
    const behind = reports.filter(
      ({ source, snapshot }) => served === null || (served.get(source) ?? null) !== snapshot,
    )
    if (behind.length === 0) return
    if (performance.now() > end) return printResult(behind, served !== null)
    await sleep(PAUSE_MS)
  }
}

function printResult(behind: readonly RunReport[], answers: boolean): void {
  const names = behind.map(({ source }) => source).join(', ')
  const why = answers ? 'see its log' : 'it does not answer'
  warn(`a daemon runs on this data folder, and does not serve the new snapshot of ${names} yet: ${why}`)
}

/** The snapshot that is served of each source; null when the daemon does not answer. */
async function readServed(config: Config, instance: string): Promise<ReadonlyMap<string, string | null> | null> {
  try {
    const { text } = await askDaemon(config, '/-/status', 2_000)
    const report = JSON.parse(text) as {
      instance?: string
      sources?: { name: string; served: string | null }[]
    }
    if (report.instance !== instance || report.sources === undefined) return null
    return new Map(report.sources.map(({ name, served }) => [name, served]))
  } catch {
    return null // reported at the end
  }
}
