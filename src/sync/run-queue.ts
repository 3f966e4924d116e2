import type { EventTarget } from '../base/domain/image-reference.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { Run, RunKind } from '../store/runs/runs.ts'
import type { RunRequest } from './context.ts'

/** Outcome of a request: the report of its run, or the reason why there is none. */
export type RequestOutcome = { report: Run } | { failure: string }

/** Queue of run requests: per source, one run in progress and one waiting; beside it, a reconcile of the catalog may wait. */
export type RunQueue = ReturnType<typeof createRunQueue>

interface Slot {
  request: RunRequest
  callbacks: ((outcome: RequestOutcome) => void)[]
}

/**
 * Creates the queue. A run that was in progress when the thread ended is not repeated: it may be the cause.
 */
export function createRunQueue(start: (request: RunRequest) => void, canStart: () => boolean) {
  const running = new Map<SourceName, Slot>()
  const waiting = new Map<string, Slot>()
  const startWaiting = (): void => {
    const inOrder = [...waiting].sort(
      ([, one], [, other]) => Number(isApart(one.request)) - Number(isApart(other.request)),
    )
    for (const [place, slot] of inOrder) {
      const { source } = slot.request
      if (!canStart() || running.has(source)) continue
      waiting.delete(place)
      running.set(source, slot)
      start(slot.request)
    }
  }
  return {
    /** Starts the waiting runs that can start. */
    startWaiting,
    /** Queues a run that starts after this call. `onOutcome` is called exactly once. */
    ask(request: RunRequest, onOutcome?: (outcome: RequestOutcome) => void): void {
      const place = isApart(request) ? `${request.source} ${request.kind}` : request.source
      const before = waiting.get(place)
      const slot = { request: merged(before?.request, request), callbacks: before?.callbacks ?? [] }
      if (onOutcome !== undefined) slot.callbacks.push(onOutcome)
      waiting.set(place, slot)
      startWaiting()
    },
    /** Records the end of a source's run and starts the waiting one. */
    ended(source: SourceName, outcome: RequestOutcome): void {
      const slot = running.get(source)
      running.delete(source)
      startWaiting()
      for (const callback of slot?.callbacks ?? []) callback(outcome)
    },
    /** Reports `reason` to all waiting callers after the thread has ended, and returns what ran; runs that have not started stay queued. */
    fail(reason: string): RunRequest[] {
      const lost = [...running.values()].map(({ request }) => request)
      const pending = [...running.values(), ...waiting.values()].flatMap(({ callbacks }) => callbacks.splice(0))
      running.clear()
      for (const callback of pending) callback({ failure: reason })
      return lost
    },
  }
}

/** Whether a run fetches what no other kind does, and nothing else: a reconcile of the catalog waits for itself, after the others. */
function isApart({ source, kind }: RunRequest): boolean {
  return source === 'catalog' && kind === 'reconcile'
}

/** Rank of a kind of run: a repair fetches what no other one does; another reconcile covers the most of the others. */
function thoroughness({ kind }: RunRequest): number {
  const kinds: readonly RunKind[] = ['refresh', 'sync', 'reconcile', 'repair']
  return kinds.indexOf(kind)
}

/** Merges two requests into one: the more thorough kind and the targets of both. */
function merged(before: RunRequest | undefined, asked: RunRequest): RunRequest {
  if (before === undefined) return asked
  const isMore = thoroughness(asked) > thoroughness(before)
  const targets = distinct([...(before.targets ?? []), ...(asked.targets ?? [])])
  return { ...(isMore ? asked : before), ...(targets.length > 0 && { targets }) }
}

function distinct(targets: readonly EventTarget[]): EventTarget[] {
  return [...new Map(targets.map((target) => [JSON.stringify(target), target])).values()]
}
