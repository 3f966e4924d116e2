import { MirrorError, messageOf } from '../../base/errors.ts'
import type { Logger } from '../../base/log.ts'
import { type RunningTask, startTask } from '../../base/threads/task.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'
import { readRegistryNote, sumOf } from '../../store/catalog/in-registry.ts'
import { type Schedule, startSchedule } from '../../sync/schedule.ts'
import type { RegistryReport, RegistryTask } from './task.ts'

type RegistryParts = Pick<Parts, 'config' | 'log' | 'now' | 'offline' | 'reads' | 'signals'>

/** Snapshots that follow each other closely are checked together: waits so long, milliseconds. */
const SETTLE_MS = 5_000

/**
 * Checks which images the registry of the settings has: at the start, after each change of the served catalog, and at the times of
 * `catalog.schedule`. Each mirror of a fleet does it for itself, since each may have a registry of its own. It starts a thread for each
 * check, which ends with it.
 */
export function startRegistryCheck(parts: RegistryParts, settleMs = SETTLE_MS): RunningPart {
  const { config, log, offline, reads, signals } = parts
  const { registry } = config.images
  if (registry === null) return {}
  const first = readRegistryNote(config.data.dir, registry)
  let sum = sumOf(first)
  let tried = first.snapshot
  let running: RunningTask<RegistryReport | null> | null = null
  let timer: NodeJS.Timeout | null = null
  let closed: boolean = false
  const tell = createTelling(log, registry)
  const served = (): string | null => reads.pinned.snapshots.readSnapshot('catalog')?.id ?? null
  const made = (report: RegistryReport | null): void => {
    if (report !== null) sum = report.sum
    tell(report?.why ?? null)
  }
  const failed = (error: unknown): void => {
    const code = error instanceof MirrorError ? error.code : 'internal'
    if (code === 'not_ready') tried = null // what is served moved on meanwhile
    if (closed || code === 'not_ready') return
    sum = { ...sum, problem: code }
    tell(messageOf(error))
  }
  const begin = (): void => {
    timer = null
    if (closed || running !== null) return
    tried = served()
    running = startTask({ file: workerFile('registry.worker', import.meta.url), data: taskOf(parts, registry) })
    const ended = (): void => {
      running = null
      if (!closed) look()
    }
    void running.result.then(made).catch(failed).then(ended)
  }
  const soon = (): void => {
    if (!closed && timer === null) timer = setTimeout(begin, settleMs).unref()
  }
  const look = (): void => {
    if (served() !== tried) soon()
  }
  const shown = { registry: () => ({ ...sum, checking: running !== null }) }
  if (offline) return { shown }
  signals.on('served', look)
  let schedule = scheduleOf(parts, first.checkedAt, soon)
  signals.on('schedules', () => {
    schedule.stop()
    schedule = scheduleOf(parts, first.checkedAt, soon)
  })
  look()
  schedule.catchUp()
  return {
    shown,
    async close() {
      closed = true
      schedule.stop()
      if (timer !== null) clearTimeout(timer)
      await running?.stop()
    },
  }
}

/** Without the credential of the service, which no registry gets. */
function taskOf({ config, reads }: RegistryParts, registry: string): RegistryTask {
  const { upstream, network, data } = config
  const settings = { upstream: { ...upstream, apiKey: null, token: null }, network }
  return { config: settings, dataDir: data.dir, registry, served: reads.servedPin?.stamp() ?? null }
}

function scheduleOf({ config, now, log }: RegistryParts, checkedAt: string | null, run: () => void): Schedule {
  const lastSuccess = checkedAt === null ? null : Date.parse(checkedAt)
  const job = { name: 'images.registry', expression: config.catalog.schedule, lastSuccess, run }
  return startSchedule([job], { ...config.sync, now, log, isSecond: true })
}

/** Returns what logs why images are not known, once for each reason in a row. */
function createTelling(log: Logger, registry: string): (why: string | null) => void {
  let said: string | null = null
  return (why) => {
    if (why !== null && why !== said)
      log.warn(
        {},
        `it is not known of all images whether ${registry} (images.registry) has them: ${why}; they are asked for again`,
      )
    if (why === null && said !== null) log.info({}, `${registry} (images.registry) answers for all images again`)
    said = why
  }
}
