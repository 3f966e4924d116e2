import type { Feed, Live, LivePlan } from './types.ts'

const ORDINARY: LivePlan = { add: 2, change: 3, changeSilently: 1, touchFeeds: true }

/** Runs the plan every `intervalMs`; the timer does not keep the process alive. */
export function startLive(feed: Feed, intervalMs: number, plan: LivePlan = ORDINARY, running: Set<Live>): Live {
  const beat = (): void => {
    feed.add(plan.add ?? 0)
    feed.change(plan.change ?? 0)
    feed.changeSilently(plan.changeSilently ?? 0)
    feed.withdraw(plan.withdraw ?? 0)
    feed.moveBackwards(plan.moveBackwards ?? 0)
    feed.remove(plan.remove ?? 0)
    if (plan.touchFeeds === true) feed.touchFeeds()
  }
  const timer = setInterval(beat, intervalMs).unref()
  const live = {
    stop: () => {
      clearInterval(timer)
      running.delete(live)
    },
  }
  running.add(live)
  return live
}
