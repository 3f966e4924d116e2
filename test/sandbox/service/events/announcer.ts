import type { Deliverer } from './deliveries.ts'
import { type DeliveryFault, type DeliveryFaults, createDeliveryFaults } from './delivery-faults.ts'
import type { Entry } from '../data/collection.ts'
import type { Tag } from '../data/images.ts'
import type { ServiceOptions } from '../options.ts'
import { type DeliveryRecord, createOutbox } from './outbox.ts'
import type { State } from '../data/state.ts'

/** What the service delivers by itself, for a test to look at and to disturb. */
export interface Deliveries {
  /** Every attempt that has ended, in that order. */
  readonly records: readonly DeliveryRecord[]
  readonly faults: Pick<DeliveryFaults, 'set' | 'clear'>
  /** Lets the tags be found whose events were sent too early. */
  readonly reveal: () => void
  /** Resolves when nothing is on its way and nothing waits for its next attempt. */
  readonly settled: () => Promise<void>
}

/** Announces what is created. */
interface Announcing {
  deliveries: Deliveries
  /** Announces a new tag to all subscribers, if it is a remediated one; returns its id. */
  announce(tagId: string): string
  stop(): Promise<void>
}

/** Announces new tags by an outbox of its own. */
export function createAnnouncing(options: ServiceOptions, state: State, deliverer: Deliverer): Announcing {
  const faults = createDeliveryFaults()
  const outbox = createOutbox(options, state, deliverer)
  const hidden = new Map<string, Entry<Tag>>()
  const timers = new Set<NodeJS.Timeout>()
  const reveal = (id: string): void => {
    const tag = hidden.get(id)
    hidden.delete(id)
    if (tag !== undefined) state.tags.put(tag)
  }
  const hide = (tag: Entry<Tag>, { ms }: Extract<DeliveryFault, { kind: 'early' }>): void => {
    hidden.set(tag.id, tag)
    state.tags.remove(tag.id)
    if (ms !== undefined) timers.add(setTimeout(() => reveal(tag.id), ms).unref())
  }
  return {
    deliveries: {
      records: outbox.records,
      faults,
      reveal: () => [...hidden.keys()].forEach(reveal),
      settled: () => outbox.settled(),
    },
    announce(tagId) {
      const tag = state.tags.get(tagId)
      if (tag?.listed.remediated !== true) return tagId
      const fault = faults.take()
      if (fault?.kind === 'early') hide(tag, fault)
      outbox.send(tag, fault)
      return tagId
    },
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      await outbox.stop()
    },
  }
}
