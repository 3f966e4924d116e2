import { count, milliseconds } from '../report/figures.ts'
import { type Value, atMost, defineGroup } from '../report/group.ts'
import { type SandboxProcess, startSandbox } from '../world/processes.ts'
import { EVENTS, announce, tagsOf } from './visible.ts'
import { type Acknowledged, PER_SECOND, acknowledge } from './webhooks.ts'

const RECORDS = 100_000
/** An acknowledgement waits for the disk: it may take this long, or so many times what the same events wait for a bare fdatasync. */
const GOAL_MS = 10
const SYNCS = 1.5

interface Run {
  readonly acknowledged: Acknowledged
  /** From receipt to visible. */
  readonly visibleMs: number
}

/** Deliveries of events: how fast they are acknowledged, and when what they announce can be read. */
export const webhooks = defineGroup<{ sandbox: SandboxProcess; close(): Promise<void> }, Run>({
  name: 'webhooks',
  about: 'events: their acknowledgement, and when what they announce is visible',
  async prepare({ size }) {
    const sandbox = await startSandbox(size(RECORDS))
    return { sandbox, close: () => sandbox.stop() }
  },
  async run({ sandbox }, options) {
    const acknowledged = await acknowledge(sandbox, options.seconds(5))
    return { acknowledged, visibleMs: await announce(options) }
  },
  lines: (options) => [
    {
      work: `webhooks acknowledged at ${PER_SECOND} a second while a cold ingest runs, p99`,
      unit: 'ms',
      goal: atMost(GOAL_MS, `≤ ${GOAL_MS} ms or ${SYNCS}× the same events with a bare fdatasync`),
      measure: ({ acknowledged }) => describe(acknowledged),
    },
    {
      work: `an announced tag, from received to visible, in a catalog of ${count(tagsOf(options))} tags, median of ${EVENTS}, each the first after quiet`,
      unit: 's',
      goal: atMost(1000),
      measure: ({ visibleMs }) => visibleMs,
    },
  ],
})

function describe({ busy, idle, floor, events }: Acknowledged): Value {
  const parts = [
    `idle ${milliseconds(idle.p99)}`,
    `the same events with a bare fdatasync ${milliseconds(floor)}`,
    `medians ${milliseconds(busy.p50)} and ${milliseconds(idle.p50)}`,
    `${events} events`,
  ]
  return { value: busy.p99, detail: parts.join(', '), limit: Math.max(GOAL_MS, SYNCS * floor) }
}
