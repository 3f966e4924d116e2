import { counted } from '../../../base/text.ts'
import { toIsoOrNull } from '../../../base/time.ts'
import type { WebhooksReport } from '../../../base/reports/webhooks.ts'
import type { Config } from '../../../config/schema.ts'
import { endpointsOf } from '../../../config/kinds/webhooks.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { Db } from '../../../store/database/open.ts'
import { createInboxReports } from '../../../store/webhooks/inbox-reports.ts'
import { createInboxReads } from '../../../store/webhooks/inbox.ts'
import type { Reads } from '../../../store/reads.ts'
import { inboxPath } from '../../../store/database/open.ts'
import { withoutFolder } from '../../../webhooks/inbox/fault.ts'
import { isValidAt } from '../../../webhooks/receive/secret-file.ts'
import { WINDOW_MS } from '../../../webhooks/refresh/missed-events.ts'
import { EVENTS, figuresFrom, heardFrom } from '../../../webhooks/refresh/report.ts'
import { readStoredSecrets } from '../../webhooks/secrets.ts'
import { withInbox } from '../../webhooks/inbox-rows.ts'
import { timeOf } from '../../output.ts'

/**
 * Returns the state of webhooks from the data folder, without a daemon; null when none was ever delivered. The state of a
 * damaged inbox is unknown.
 */
export function readWebhooks(config: Config, reads: Reads): WebhooksReport | null {
  const now = Date.now()
  const secrets = countSecrets(config, now)
  const isOn = secrets > 0
  const arrivals = reads.catalog.listNewTags(now - WINDOW_MS)
  const none = { refreshes: 0, failedRefreshes: 0, failuresInRow: 0, refreshingSince: null }
  const head = {
    state: isOn ? ('on' as const) : ('off' as const),
    endpoints: endpointsOf(config.webhooks),
    secrets,
    lastRefusedAt: null,
  }
  const read = (db: Db): WebhooksReport => {
    const reports = createInboxReports(db)
    const times = reports.eventTimes(EVENTS)
    const heard = reports.announcedSince(heardFrom(now))
    const { oldestPendingAt, ...counts } = createInboxReads(db).counts()
    const figures = figuresFrom({ times, heard, arrivals, isOn, startedAt: now, now })
    const at = {
      oldestPendingAt: toIsoOrNull(oldestPendingAt),
      lastReceivedAt: toIsoOrNull(heard.lastAt),
    }
    return { ...head, counts, ...at, refresh: { ...none, ...figures } }
  }
  try {
    return withInbox(config, null, read)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const unknown = { counts: null, oldestPendingAt: null, lastReceivedAt: null }
    const message = withoutFolder(error.message, inboxPath(config.data.dir))
    const failing = { message, since: null }
    return { ...head, ...unknown, failing, refresh: { ...none, latency: null, misses: null } }
  }
}

/** A file that cannot be read ends the start of the daemon, but not the report on everything else. */
function countSecrets(config: Config, now: number): number {
  try {
    return readStoredSecrets(config).filter((one) => isValidAt(one, now)).length
  } catch {
    return config.webhooks.secrets.length
  }
}

/** Returns a line on webhooks, and what they came to; null where none are received, and none is stored. */
export function describeWebhooks(report: WebhooksReport): string | null {
  const { state, counts, failing = null } = report
  const isUsed = counts === null ? failing !== null : Object.values(counts).some((rows) => rows > 0)
  return state === 'on' || isUsed ? webhooksLine(report) + refreshLines(report) : null
}

/** `webhooks: 1 secret, 2 pending, 0 dead, 40 done, 3 ignored, last received 2026-11-21 …, last refused: none since the start` */
function webhooksLine(report: WebhooksReport): string {
  const { state, secrets, counts, lastReceivedAt } = report
  const at = (time: string | null): string => (time === null ? '-' : timeOf(Date.parse(time)))
  const rows =
    counts === null
      ? 'the inbox is not available'
      : (['pending', 'dead', 'done', 'ignored'] as const).map((state) => `${counts[state]} ${state}`).join(', ')
  const times = `last received ${at(lastReceivedAt)}, last refused${refusedWords(report)}`
  const taken = state === 'on' ? counted(secrets, 'secret') : NO_SECRET
  return `webhooks: ${taken}, ${rows}, ${times}`
}

const NO_SECRET = 'no secret is valid here, so deliveries are refused'

/** Whether a daemon made the report: it alone knows of refusals and refreshes, and of those since its start. */
function isOfDaemon({ lastRefusedReason }: WebhooksReport): boolean {
  return lastRefusedReason !== undefined
}

function refusedWords(report: WebhooksReport): string {
  const { lastRefusedAt, lastRefusedReason: reason } = report
  if (lastRefusedAt === null) return isOfDaemon(report) ? ': none since the start' : ': not known'
  return ` ${timeOf(Date.parse(lastRefusedAt))}${reason ? ` (${reason})` : ''}`
}

/** What events came to; that they seem to come no more is a problem, listed as such. */
function refreshLines(report: WebhooksReport): string {
  const { refreshes, failedRefreshes, latency, misses } = report.refresh
  const visible = latency?.visible ?? null
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  const first = [
    ...(isOfDaemon(report) ? [`refreshes: ${refreshes}, ${failedRefreshes} failed`] : []),
    ...(visible === null
      ? []
      : [`received to visible: median ${seconds(visible.median)}, p99 ${seconds(visible.p99)}`]),
  ].join('; ')
  const lines = [
    ...(first === '' ? [] : [first]),
    ...(misses === null
      ? []
      : [
          `in a week: ${counted(misses.arrivals, 'new tag')} compared with events (15 minutes after each), ` +
            `${misses.unannounced} not announced; ${misses.unconfirmed} announced and not found`,
        ]),
  ]
  return lines.map((line) => `\n  ${line}`).join('')
}
