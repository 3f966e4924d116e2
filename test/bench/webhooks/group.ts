import { count, milliseconds, pair } from '../report/figures.ts'
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
  about: (options) => `A catalog of ${count(tagsOf(options))} tags. The floor is \`fdatasync\` of the same events.`,
  async prepare({ size }) {
    const sandbox = await startSandbox(size(RECORDS))
    return { sandbox, close: () => sandbox.stop() }
  },
  async run({ sandbox }, options) {
    const acknowledged = await acknowledge(sandbox, options.seconds(5))
    return { acknowledged, visibleMs: await announce(options) }
  },
  lines: () => [
    {
      work: `acknowledgement at ${PER_SECOND} a second during an ingest, p99`,
      unit: 'ms',
      goal: atMost(GOAL_MS, `≤ ${GOAL_MS} ms or ${SYNCS}× the floor`),
      measure: ({ acknowledged }) => describe(acknowledged),
    },
    {
      work: `announced tag until visible, median of ${EVENTS} after quiet`,
      unit: 's',
      goal: atMost(1000),
      measure: ({ visibleMs }) => visibleMs,
    },
  ],
})

function describe({ busy, idle, floor, events }: Acknowledged): Value {
  const parts = [
    `idle ${milliseconds(idle.p99)}`,
    `floor ${milliseconds(floor)}`,
    `medians ${pair(busy.p50, idle.p50, milliseconds)}`,
    `${events} events`,
  ]
  return { value: busy.p99, detail: parts.join(', '), limit: Math.max(GOAL_MS, SYNCS * floor) }
}
