import { clip, counted } from '../../../../base/text.ts'
import type { EventTarget } from '../../../../base/domain/image-reference.ts'
import { maySync } from '../../../../base/domain/sources.ts'
import type { WebhooksReport } from '../../../../base/reports/webhooks.ts'
import type { InboxRow, InboxState } from '../../../../store/webhooks/inbox.ts'
import type { Block } from '../../blocks.ts'
import type { Tone } from '../../../lookup/answers/answer.ts'
import { type Cell, count, plain, span, state, time } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, choiceOf, numberOf } from '../../page.ts'
import { selectOf } from '../runs/list.ts'

/** Deliveries on a page. */
const PAGE = 50
const STATES = ['pending', 'done', 'ignored', 'dead'] as const satisfies readonly InboxState[]
const TONES: Readonly<Record<InboxState, Tone>> = {
  pending: 'plain',
  done: 'good',
  ignored: 'plain',
  dead: 'bad',
}

/** Loads the page of received webhooks: endpoints, counts, and the last deliveries with what became of them. */
export function loadDeliveries(call: PageCall): PageView {
  const { status, query, ui } = call
  const chosen = choiceOf(query, 'state', STATES)
  const before = numberOf(query, 'before')
  const found =
    call.inbox((inbox) => inbox.listRows(chosen === '' ? null : chosen, PAGE + 1, before ?? undefined)) ?? []
  const shown = found.slice(0, PAGE)
  const form: Block = {
    kind: 'form',
    label: 'Filter of deliveries',
    action: ui('webhooks'),
    fields: [selectOf('state', 'State', STATES, chosen)],
    button: 'Filter',
  }
  const table: Block = {
    kind: 'table',
    title: 'Deliveries, newest first',
    note: 'Verified deliveries only. Refused ones are not stored: the log names each with its reason, and patchmirror_webhook_requests_total counts them by reason.',
    columns: ['Delivery', 'Received', 'State', 'Type', 'Names', 'Visible after', 'Tries', 'Why'],
    rows: shown.map((row) => rowOf(call, row)),
    empty: chosen === '' ? 'No delivery is stored.' : 'No delivery is in this state.',
    first: before === null ? null : ui('webhooks', { state: chosen }),
    next: found.length > PAGE ? ui('webhooks', { state: chosen, before: shown.at(-1)?.id }) : null,
  }
  const facts: Block = { kind: 'facts', rows: factsOf(call, status?.webhooks) }
  return { title: 'Webhooks', blocks: [facts, form, table] }
}

/** What is said where what is stored cannot be read, of which the report is made. */
export const NOT_KNOWN = 'not known: what is stored cannot be read'

/** Says why no deliveries are accepted. */
export function whyOff(config: PageCall['config']): string {
  return maySync(config)
    ? `off: no secret is valid (webhooks.secrets, ${config.webhooks.secretFile})`
    : 'off: this mirror syncs nothing, so it needs no events'
}

function factsOf({ now, config }: PageCall, webhooks: WebhooksReport | undefined): [string, Cell | Cell[]][] {
  if (webhooks === undefined) return [['state', plain(NOT_KNOWN)]]
  const {
    state: is,
    endpoints,
    counts,
    refresh,
    secrets,
    lastRefusedAt: refused,
    lastRefusedReason: why = null,
  } = webhooks
  const { misses } = refresh
  return [
    ['state', is === 'on' ? state('on', 'good') : plain(whyOff(config))],
    ['endpoints', endpoints.map(({ name, path }) => plain(`${name}: ${path}`))],
    ['valid secrets', count(secrets)],
    [
      'stored',
      plain(
        counts === null
          ? 'not known: the inbox did not answer'
          : `${counts.pending} pending, ${counts.done} done, ${counts.ignored} ignored, ${counts.dead} given up`,
      ),
    ],
    ['oldest pending', time(webhooks.oldestPendingAt, now)],
    ['last received', time(webhooks.lastReceivedAt, now)],
    [
      'last refused',
      refused === null ? plain('none since the start') : [time(refused, now), ...(why === null ? [] : [plain(why)])],
    ],
    ['refreshes since the start', plain(`${refresh.refreshes}, ${refresh.failedRefreshes} failed`)],
    ...(misses === null
      ? []
      : ([
          [
            'within a week',
            plain(
              `${counted(misses.arrivals, 'new tag')}, ${misses.unannounced} of them without an event; ${counted(misses.unconfirmed, 'event')} whose tag was not found`,
            ),
          ],
        ] satisfies [string, Cell][])),
    ...(typeof misses?.warning !== 'string'
      ? []
      : ([['warning', state(misses.warning, 'bad')]] satisfies [string, Cell][])),
  ]
}

function rowOf({ now }: PageCall, row: InboxRow): (Cell | Cell[])[] {
  const { id, receivedAt, visibleAt, state: is, type, target, attempts, reason, dueAt } = row
  const waits = is === 'pending' && attempts > 0
  return [
    count(id),
    time(receivedAt, now),
    state(is === 'dead' ? 'given up' : is, TONES[is]),
    plain(type),
    plain(nameOf(target)),
    visibleAt === null ? plain(null) : { text: span((visibleAt - receivedAt) / 1000), look: 'time' },
    count(attempts),
    waits ? [plain(reason, 1000), { ...time(dueAt, now), note: 'next try' }] : plain(reason, 1000),
  ]
}

/** What an event names: `library/python:3.12`, or a digest. */
function nameOf(target: EventTarget | null): string | null {
  if (target === null) return null
  const { repository, tag, digest, subject, others = [] } = target
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  const image = repository ?? subject ?? ''
  return `${clip(image)}${tag === null ? '' : `:${clip(tag)}`}${tag === null && digest !== null ? `@${clip(digest)}` : ''}${more}`
}
