import {
  type RefreshFigures,
  type Status,
  type WebhooksReport,
  buildStatus,
} from '../api/status.ts'
import { activeSources } from '../sources.ts'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../errors.ts'
import { openInboxReader, openReader } from '../store/database.ts'
import { type RelayTarget, createOutboxReads } from '../store/outbox.ts'
import { createReads } from '../store/pinned.ts'
import { VERSION } from '../version.ts'
import { daemonUrl } from './health.ts'
import { type GlobalOptions, print, settings } from './setup.ts'
import { duration, moment, table } from './table.ts'

/** `patchmirror status`: the daemon's own report when one runs, else the same from the data folder. */
export async function statusCommand(options: GlobalOptions & { json?: boolean }): Promise<number> {
  const { config } = settings(options, false)
  const answered = await askDaemon(config)
  const own = readOwnStatus(config)
  const stranger = answered !== null && own !== null && answered.instance !== own.instance
  const asked = stranger ? null : answered
  const status = asked ?? own
  if (status === null)
    throw new MirrorError(
      'not_ready',
      `nothing is mirrored yet in ${config.data.dir}: run "patchmirror sync"`,
    )
  if (options.json === true) {
    print(JSON.stringify(status, null, 2))
    return 0
  }
  print(tableOf(status))
  if (status.webhooks?.state === 'on')
    print(`\n${webhooksLine(status.webhooks)}${refreshLines(status.webhooks.refresh)}`)
  const who = stranger ? 'the mirror of another data folder answers' : 'no daemon answers'
  print(
    asked === null
      ? `\n${who} on ${daemonUrl(config.server)}; this is what the data folder says`
      : '',
  )
  for (const { id, state, since, pending } of status.relay.filter(({ state }) => state !== 'ok')) {
    const when = since === null ? '' : ` since ${moment(Date.parse(since))}`
    print(`relay target ${id} is ${state}${when}, ${pending} waiting\n  patchmirror relay status`)
  }
  for (const { runId, reason } of openQuarantines(config)) {
    print(
      `run ${runId} is quarantined: ${reason}\n  patchmirror runs ${runId} | approve ${runId} | reject ${runId}`,
    )
  }
  return 0
}

/** Null when nothing answers, or something that is not this program. */
async function askDaemon({ server }: Config): Promise<Status | null> {
  try {
    const answer = await fetch(`${daemonUrl(server)}/-/status`, {
      signal: AbortSignal.timeout(2_000),
    })
    const value: unknown = answer.ok ? await answer.json() : null
    const ours =
      typeof value === 'object' && value !== null && 'version' in value && 'sources' in value
    const none: Pick<Status, 'relay'> = { relay: [] } // what an earlier version tells
    return ours ? { ...none, ...(value as Status) } : null
  } catch {
    return null
  }
}

/** What the data folder says; null when there is none. */
function readOwnStatus(config: Config): Status | null {
  const { data } = config
  const db = openReader(data.dir)
  if (db === null) return null
  try {
    const reads = createReads(db)
    return buildStatus({
      reads,
      active: activeSources(config),
      version: VERSION,
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
      relayTargets: () => readTargets(data.dir),
    })
  } finally {
    db.close()
  }
}

function readTargets(dataDir: string): RelayTarget[] {
  const db = openInboxReader(dataDir)
  if (db === null) return []
  try {
    return createOutboxReads(db).listTargets()
  } finally {
    db.close()
  }
}

function openQuarantines({ data }: Config): { runId: number; reason: string }[] {
  const db = openReader(data.dir)
  if (db === null) return []
  try {
    return createReads(db).listOpenQuarantines()
  } finally {
    db.close()
  }
}

/** `webhooks: 1 secret, 2 pending, 0 dead, 40 done, 3 ignored, last received 2026-11-21 …, last refused -` */
function webhooksLine({ secrets, counts, lastReceivedAt, lastRefusedAt }: WebhooksReport): string {
  const at = (time: string | null): string => (time === null ? '-' : moment(Date.parse(time)))
  const rows =
    counts === null
      ? 'the inbox is not available'
      : (['pending', 'dead', 'done', 'ignored'] as const)
          .map((state) => `${counts[state]} ${state}`)
          .join(', ')
  const times = `last received ${at(lastReceivedAt)}, last refused ${at(lastRefusedAt)}`
  return `webhooks: ${secrets} ${secrets === 1 ? 'secret' : 'secrets'}, ${rows}, ${times}`
}

/** What events came to, and a warning where they seem to come no more. */
function refreshLines({ refreshes, failedRefreshes, latency, misses }: RefreshFigures): string {
  const visible = latency?.visible ?? null
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  const lines = [
    `refreshes: ${refreshes}, ${failedRefreshes} failed` +
      (visible === null
        ? ''
        : `; received to visible: median ${seconds(visible.median)}, p99 ${seconds(visible.p99)}`),
    ...(misses === null
      ? []
      : [
          `in a week: ${misses.arrivals} new tags, ${misses.unannounced} not announced; ` +
            `${misses.unconfirmed} announced and never listed`,
        ]),
    ...(misses?.warning ? [`WARNING: ${misses.warning}`] : []),
  ]
  return lines.map((line) => `\n  ${line}`).join('')
}

function tableOf({ sources }: Status): string {
  const rows = sources.map((source) => [
    source.name,
    source.state,
    String(source.records),
    source.snapshot?.slice(0, 12) ?? '-',
    source.asOf === null ? '-' : moment(Date.parse(source.asOf)),
    source.ageSeconds === null ? '-' : duration(source.ageSeconds),
    source.nextRunAt === null ? '-' : moment(Date.parse(source.nextRunAt)),
    source.lastRun?.message ?? '',
  ])
  const head = ['source', 'state', 'records', 'snapshot', 'as of', 'age', 'next run', 'last run']
  return table(head, rows)
}
