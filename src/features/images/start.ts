import { MirrorError, messageOf } from '../../base/errors.ts'
import { isRegistryAsked } from '../../base/domain/status.ts'
import type { Logger } from '../../base/log.ts'
import type { RegistryStatus } from '../../base/reports/transfer.ts'
import { type RunningTask, startTask } from '../../base/threads/task.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'
import { readRegistryNote, sumOf } from '../../store/catalog/in-registry.ts'
import { type Schedule, startSchedule } from '../../sync/schedule.ts'
import type { RegistryReport, RegistryTask } from './task.ts'

type RegistryParts = Pick<Parts, 'config' | 'log' | 'now' | 'offline' | 'reads' | 'signals'>

/** Snapshots that follow each other closely are checked together: waits so long, milliseconds. */
const SETTLE_MS = 5_000

/** A start asks for all images where that was longer ago, milliseconds. */
const WHOLE_MS = 3_600_000

/**
 * Checks which images the registry of the settings has: all at the times of `catalog.schedule`; at the start and after each change of the
 * served catalog those that were not there within a day. Each mirror of a fleet does it for itself, since each may have a registry of its
 * own.
 */
export function startRegistryCheck(parts: RegistryParts, settleMs = SETTLE_MS): RunningPart {
  const { registry } = parts.config.images
  if (registry === null) return {}
  const checks = createChecks(parts, registry, settleMs)
  if (parts.offline) return { shown: { registry: () => withoutAsking(checks.sum()) } }
  const shown = { registry: checks.sum }
  parts.signals.on('served', checks.look)
  let schedule = scheduleOf(parts, checks.askAll)
  parts.signals.on('schedules', () => {
    schedule.stop()
    schedule = scheduleOf(parts, checks.askAll)
  })
  checks.look()
  return {
    shown,
    async close() {
      schedule.stop()
      await checks.close()
    },
  }
}

/** What was answered to an earlier daemon has its date. */
function withoutAsking(sum: RegistryStatus): RegistryStatus {
  return isRegistryAsked(sum) ? sum : { ...sum, problem: 'offline' }
}

/** Returns what makes one check at a time, each in a thread that ends with it. */
function createChecks(parts: RegistryParts, registry: string, settleMs: number) {
  const { config, log, now, reads } = parts
  const first = readRegistryNote(config.data.dir, registry)
  let sum = sumOf(first)
  let tried: string | null = null
  let isAllDue = !isWithin(first.checkedAt, now(), WHOLE_MS)
  let running: RunningTask<RegistryReport | null> | null = null
  let timer: NodeJS.Timeout | null = null
  let closed: boolean = false
  const tell = createTelling(log, registry)
  const served = (): string | null => reads.pinned.snapshots.readSnapshot('catalog')?.id ?? null
  const made = (report: RegistryReport | null): void => {
    if (report === null) return
    const isAnswered = report.sum.checkedAt !== sum.checkedAt
    sum = report.sum
    if (report.why !== null || isAnswered) tell(report.why)
  }
  const failed = (error: unknown): void => {
    if (closed) return
    sum = { ...sum, problem: error instanceof MirrorError ? error.code : 'internal' }
    tell(messageOf(error))
  }
  const begin = (): void => {
    timer = null
    if (closed || running !== null) return
    tried = served()
    const all = isAllDue
    running = startTask({ file: workerFile('registry.worker', import.meta.url), data: taskOf(parts, registry, all) })
    const ended = (error?: unknown): void => {
      running = null
      const isMoved = error instanceof MirrorError && error.code === 'not_ready' // what is served moved on meanwhile
      if (isMoved) tried = null
      else if (error !== undefined) failed(error)
      if (all && !isMoved) isAllDue = false
      look()
    }
    void running.result.then(made).then(ended, ended)
  }
  const soon = (): void => {
    if (!closed && timer === null) timer = setTimeout(begin, settleMs).unref()
  }
  const look = (): void => {
    if (!closed && (served() !== tried || (isAllDue && tried !== null))) soon()
  }
  const askAll = (): void => {
    isAllDue = true
    soon()
  }
  const close = async (): Promise<void> => {
    closed = true
    if (timer !== null) clearTimeout(timer)
    await running?.stop()
  }
  return { sum: () => ({ ...sum, checking: running !== null }), look, askAll, close }
}

/** Without the credential of the service, which no registry gets. */
function taskOf({ config, reads }: RegistryParts, registry: string, all: boolean): RegistryTask {
  const { upstream, network, data } = config
  const settings = { upstream: { ...upstream, apiKey: null, token: null }, network }
  return { config: settings, dataDir: data.dir, registry, served: reads.servedPin?.stamp() ?? null, all }
}

/** Whether a time is not longer ago than that, and not in the future. */
function isWithin(at: string | null, now: number, ms: number): boolean {
  const age = at === null ? -1 : now - Date.parse(at)
  return age >= 0 && age <= ms
}

function scheduleOf({ config, now, log }: RegistryParts, run: () => void): Schedule {
  const job = { name: 'images.registry', expression: config.catalog.schedule, lastSuccess: null, run }
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
