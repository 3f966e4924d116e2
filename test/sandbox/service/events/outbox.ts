import type { Entry } from '../data/collection.ts'
import type { Deliverer, OutgoingEvent, Webhook } from './deliveries.ts'
import type { DeliveryFault } from './delivery-faults.ts'
import type { Tag } from '../data/images.ts'
import type { ServiceOptions } from '../options.ts'
import { EVENT_TYPE } from '../routes/webhooks.ts'
import type { State } from '../data/state.ts'

/** One attempt to deliver an event, or that there was none. */
export interface DeliveryRecord {
  /** The event's id, which is its `webhook-id`. */
  eventId: string
  subscriptionId: string
  tagId: string
  /** From 1; 0 for an event that was lost. */
  attempt: number
  status: 'delivered' | 'failed' | 'lost'
  httpStatus: number | null
  reason: string | null
  /** Unix seconds, as signed; 0 for an event that was lost. */
  timestamp: number
  /** Pause before the next attempt, milliseconds; null: there will be none. */
  nextInMs: number | null
}

/** What the service delivers by itself. */
interface Outbox {
  /** Every attempt that has ended, in that order. */
  readonly records: readonly DeliveryRecord[]
  /** Delivers a new tag to every subscribed endpoint, with retries, `fault` applied. */
  send(tag: Entry<Tag>, fault: DeliveryFault | null): void
  /** Resolves when nothing is on its way and nothing waits for its next attempt. */
  settled(): Promise<void>
  /** Breaks everything off. */
  stop(): Promise<void>
}

/** Pauses before the second attempt and the following ones: those of the Standard Webhooks specification, 75 hours. */
const RETRY_DELAYS_MS = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map((seconds) => seconds * 1000)

/** An event on its way to one endpoint. */
interface Letter {
  webhookId: string
  tagId: string
  event: OutgoingEvent
  fault: DeliveryFault | null
}

/** Delivers in the background; timers do not keep the process alive. */
export function createOutbox(
  { retryDelaysMs = RETRY_DELAYS_MS, eventType = EVENT_TYPE }: ServiceOptions,
  { webhooks }: Pick<State, 'webhooks'>,
  deliverer: Deliverer,
): Outbox {
  const records: DeliveryRecord[] = []
  const postponed = new Map<string, Letter>()
  const work = createWork()
  const attempt = async (letter: Letter, number: number): Promise<void> => {
    const webhook = webhooks.get(letter.webhookId)?.listed
    if (webhook === undefined) return // deleted meanwhile
    const times = letter.fault?.kind === 'doubled' ? (letter.fault.times ?? 2) : 1
    const flaw = flawOf(letter.fault, number)
    const sent = await Promise.all(Array.from({ length: times }, () => deliverer.attempt(webhook, letter.event, flaw)))
    const pause = retryDelaysMs[number - 1]
    const failed = sent.every(({ result }) => result.status === 'failed')
    const isGone = sent.some(({ result }) => result.http_status === 410)
    const asked = Math.max(...sent.map(({ retryAfterMs }) => retryAfterMs))
    const isOver = !failed || isGone || pause === undefined || work.stopped()
    const nextInMs = isOver ? null : Math.max(pause, asked)
    for (const { result, timestamp } of sent)
      records.push({ ...recordOf(letter, number), ...resultOf(result), timestamp, nextInMs })
    if (nextInMs !== null) work.later(nextInMs, () => attempt(letter, number + 1))
  }
  const begin = (letter: Letter): void => {
    const { fault, webhookId } = letter
    if (fault?.kind === 'lost') {
      records.push({ ...recordOf(letter, 0), ...LOST })
      return
    }
    if (fault?.kind === 'reordered' && !postponed.has(webhookId)) {
      postponed.set(webhookId, letter)
      return
    }
    const before = postponed.get(webhookId)
    postponed.delete(webhookId)
    work.later(fault?.kind === 'delayed' ? fault.ms : 0, async () => {
      await attempt(letter, 1)
      if (before !== undefined) await attempt(before, 1)
    })
  }
  return {
    records,
    send(tag, fault) {
      const isDue = ({ listed }: Entry<Webhook>): boolean => listed.event_types.includes(eventType)
      for (const { id: webhookId } of webhooks.all().filter(isDue)) {
        const event = deliverer.eventOf([tag.listed], eventType)
        begin({ webhookId, tagId: tag.id, event, fault })
      }
    },
    settled: () => work.settled(),
    async stop() {
      deliverer.stop()
      await work.stop()
    },
  }
}

const LOST = {
  status: 'lost',
  httpStatus: null,
  reason: null,
  timestamp: 0,
  nextInMs: null,
} as const

function recordOf(
  { event, webhookId, tagId }: Letter,
  attempt: number,
): Pick<DeliveryRecord, 'eventId' | 'subscriptionId' | 'tagId' | 'attempt'> {
  return { eventId: event.id, subscriptionId: webhookId, tagId, attempt }
}

type Result = Awaited<ReturnType<Deliverer['attempt']>>['result']

function resultOf({ status, http_status, error_reason }: Result) {
  return { status, httpStatus: http_status, reason: error_reason }
}

function flawOf(fault: DeliveryFault | null, attempt: number) {
  if (fault?.kind === 'wrongSignature') return { forged: attempt <= (fault.attempts ?? 1) }
  if (fault?.kind !== 'oldTimestamp' || attempt > (fault.attempts ?? 1)) return {}
  return { oldBy: fault.seconds ?? 600 }
}

/** Things that happen later, and when all of them have. */
function createWork() {
  const timers = new Set<NodeJS.Timeout>()
  const running = new Set<Promise<void>>()
  let waiting: (() => void)[] = []
  let stopped = false
  const whenDone = (): void => {
    if (timers.size + running.size > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  const settled = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      whenDone()
    })
  return {
    stopped: () => stopped,
    settled,
    later(ms: number, work: () => Promise<void>): void {
      const timer = setTimeout(() => {
        timers.delete(timer)
        const delivery = work().finally(() => {
          running.delete(delivery)
          whenDone()
        })
        running.add(delivery)
      }, ms).unref()
      timers.add(timer)
    },
    stop(): Promise<void> {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
      return settled()
    },
  }
}
