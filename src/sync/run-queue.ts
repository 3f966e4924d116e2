import type { EventTarget } from '../domain/image-reference.ts'
import type { SourceName } from '../domain/sources.ts'
import type { RunKind } from '../store/runs/runs.ts'
import type { RunReport, RunRequest } from './runner.ts'

/** How a request came out: the report of its run, or why there is none. */
export type RequestOutcome = { report: RunReport } | { failure: string }

/** Requests to the sync thread: one run of each source at a time, one more waiting. */
export interface Requests {
  /** Asks for a run that begins from now on. `told`, if given, is called once, whatever happens. */
  ask(request: RunRequest, told?: (outcome: RequestOutcome) => void): void
  /** The run of a source has ended. */
  ended(source: SourceName, outcome: RequestOutcome): void
  /** Starts what waits, if it can. */
  startWaiting(): void
  /** The thread is gone. Whoever waits to be told is told; what has not begun is kept. */
  lost(reason: string): void
}

interface Slot {
  request: RunRequest
  told: ((outcome: RequestOutcome) => void)[]
}

/** Which sources run and which wait. A run that a dying thread took with it is not repeated: it may be what killed it. */
export function createRequests(
  start: (request: RunRequest) => void,
  canStart: () => boolean,
): Requests {
  const running = new Map<SourceName, Slot>()
  const waiting = new Map<SourceName, Slot>()
  const startWaiting = (): void => {
    for (const [source, slot] of [...waiting]) {
      if (!canStart() || running.has(source)) continue
      waiting.delete(source)
      running.set(source, slot)
      start(slot.request)
    }
  }
  return {
    startWaiting,
    ask(request, told) {
      const before = waiting.get(request.source)
      const slot = { request: merged(before?.request, request), told: before?.told ?? [] }
      if (told !== undefined) slot.told.push(told)
      waiting.set(request.source, slot)
      startWaiting()
    },
    ended(source, outcome) {
      const slot = running.get(source)
      running.delete(source)
      startWaiting()
      for (const tell of slot?.told ?? []) tell(outcome)
    },
    lost(reason) {
      const all = [...running.values(), ...waiting.values()].flatMap(({ told }) => told.splice(0))
      running.clear()
      for (const tell of all) tell({ failure: reason })
    },
  }
}

/** How much a run looks at: a reconcile of osv at everything, one of the catalog at what no sync asks for again. */
function thoroughness({ source, kind }: RunRequest): number {
  const kinds: readonly RunKind[] =
    source === 'osv' ? ['refresh', 'sync', 'reconcile'] : ['reconcile', 'refresh', 'sync']
  return kinds.indexOf(kind)
}

/** One request that serves both: the more thorough kind, and what either looks for. */
function merged(before: RunRequest | undefined, asked: RunRequest): RunRequest {
  if (before === undefined) return asked
  const isMore = thoroughness(asked) > thoroughness(before)
  const targets = distinct([...(before.targets ?? []), ...(asked.targets ?? [])])
  return { ...(isMore ? asked : before), ...(targets.length > 0 && { targets }) }
}

function distinct(targets: readonly EventTarget[]): EventTarget[] {
  return [...new Map(targets.map((target) => [JSON.stringify(target), target])).values()]
}
