import { type SourceName, servedSources } from '../../base/domain/sources.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'
import type { ReportedProblem } from '../../base/reports/problems.ts'
import type { TagFindingsStatus, ViewsStatus } from '../../base/reports/scanners.ts'
import type { Status } from '../../base/reports/status.ts'
import type { BoxesStatus, EdgeTargetStatus, RegistryStatus } from '../../base/reports/transfer.ts'
import type { WebhooksReport } from '../../base/reports/webhooks.ts'
import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { openRegistry, openStatus } from './open-status.ts'
import { reportedProblem } from './problem.ts'
import { inboxFolder } from './part-problems.ts'
import { problemsOf } from './problems.ts'
import { type StatusOptions, buildStatus, unreadStatus } from './status.ts'

/** What reports on the mirror are made from. */
export interface ReportOptions extends Omit<StatusOptions, 'reads' | 'active'>, ShownParts {
  readonly reads: PinnedReads
  readonly dataDir: string
  readonly config: Config
  /** Moves what is served to the newest snapshot: a report is never ahead of the answers. */
  readonly look?: () => void
  /** Notes an error of a read; true when it says that stored data cannot be read. */
  readonly onUnreadable?: (error: unknown) => boolean
}

/** What other modules report of themselves; what is not given is not shown. */
export interface ShownParts extends Pick<
  StatusOptions,
  'progressOf' | 'instance' | 'storage' | 'secretFaults' | 'relayTargets'
> {
  readonly webhooks?: () => Promise<WebhooksReport>
  /** State of what is made for scanners. */
  readonly views?: () => readonly ViewsStatus[]
  /** How far tags are judged. */
  readonly findings?: () => TagFindingsStatus
  /** State of outbox and inbox. */
  readonly boxes?: () => BoxesStatus
  /** Its part in a fleet. */
  readonly fleet?: () => FleetStatus
  /** State of the shared caches to purge. */
  readonly edge?: () => readonly EdgeTargetStatus[]
  /** Which images a registry has. */
  readonly registry?: () => RegistryStatus
}

/** Reports on the mirror, built once a second at most. */
export type Reports = ReturnType<typeof createStatusReports>

/** Creates the reports that the mirror's own pages show. */
export function createStatusReports(options: ReportOptions) {
  const { config, reads } = options
  const isStored = (source: SourceName): boolean => reads.live.snapshots.readSnapshot(source) !== null
  const storedSources = (): SourceName[] => servedSources(config, isStored)
  const served = (): SourceName[] => readOr(options, storedSources, () => servedSources(config, () => false))
  const servedId = (source: SourceName): string | null => reads.pinned.snapshots.readSnapshot(source)?.id ?? null
  const status = { ...options, reads: reads.live, servedId }
  const build = (): Status => {
    options.look?.()
    return readOr(
      options,
      () => buildStatus({ ...status, active: storedSources() }),
      () => unreadStatus({ ...status, active: [] }),
    )
  }
  const all = onceASecond(build, options.now, () => options.fleet?.().served)
  let opened: { readonly from: Status; readonly status: Status } | null = null
  const open = (): Status => {
    const from = all()
    if (opened?.from !== from) opened = { from, status: openStatus(from) }
    return opened.status
  }
  return {
    /** The sources that the mirror answers for. */
    served,
    /** Without what only clients with a key may read. */
    open,
    /** Everything, for clients with a key. */
    all,
    /** Returns a report with the current state of webhooks, views, outbox and inbox. */
    withNow: (status: Status): Promise<Status> => withNow(status, options),
    /** Returns everything that is wrong by such a report, without the folder of the inbox. */
    problems: (status: Status): readonly ReportedProblem[] =>
      problemsOf(status, config, options.now()).map((one) => {
        const advice = one.advice.map((command) => command.replaceAll(inboxFolder(config), '[inbox]'))
        return reportedProblem({ ...one, advice })
      }),
  }
}

/** Returns what is read, or the other where stored data cannot be read: a report says so, and does not fail. */
function readOr<T>({ onUnreadable }: ReportOptions, read: () => T, other: () => T): T {
  try {
    return read()
  } catch (error) {
    if (onUnreadable?.(error) !== true) throw error
    return other()
  }
}

/** Does the same for a report on webhooks, which is left out then: it compares events with the stored catalog. */
async function readWebhooks(options: ReportOptions): Promise<WebhooksReport | undefined> {
  try {
    return await options.webhooks?.()
  } catch (error) {
    if (options.onUnreadable?.(error) !== true) throw error
    return undefined
  }
}

async function withNow(status: Status, options: ReportOptions): Promise<Status> {
  const { views, findings, boxes, fleet, edge, registry } = options
  const webhooks = await readWebhooks(options)
  return {
    ...status,
    ...(webhooks && { webhooks }),
    ...(views && { views: views() }),
    ...(findings && { findings: findings() }),
    ...(boxes && { boxes: boxes() }),
    ...(fleet && { fleet: fleet() }),
    ...(edge && { edge: edge() }),
    ...(registry && { registry: openRegistry(registry()) }),
  }
}

/**
 * Returns a report that is made once a second at most, however often it is asked for, and again when another generation is
 * served: the report of the one before may have no data.
 */
function onceASecond<T>(make: () => T, now: () => number, servedGeneration: () => number | undefined): () => T {
  let cached: { readonly value: T; readonly at: number; readonly of: number | undefined } | null = null
  return () => {
    const at = now()
    const of = servedGeneration()
    if (cached === null || cached.of !== of || Math.abs(at - cached.at) >= 1000) cached = { value: make(), at, of }
    return cached.value
  }
}
