import type { FindingsStore } from '../../../store/findings/writes.ts'
import { type StoredAsked, readAsked } from '../../../store/findings/asked.ts'
import type { Views } from '../../scanners/store/reads.ts'

/** Returns what knows which of many components any record names, in whatever version: most have none. */
export function recordedIn<Component extends StoredAsked>(
  views: Pick<Views, 'listRecorded'>,
  components: readonly Component[],
): (component: Component) => boolean {
  const questionsOf = (one: Component) => readAsked(one)?.questions ?? []
  const byEcosystem = Map.groupBy(components.flatMap(questionsOf), (one) => one.ecosystem.name)
  const recorded = new Map(
    [...byEcosystem].map(([ecosystem, asked]) => {
      const names = [...new Set(asked.map(({ name }) => name))]
      return [ecosystem, views.listRecorded(ecosystem, names)] as const
    }),
  )
  return (component) =>
    questionsOf(component).some(({ ecosystem, name }) => recorded.get(ecosystem.name)?.has(name) === true)
}

interface UnrecordedInput {
  readonly store: FindingsStore
  readonly views: Pick<Views, 'listRecorded'>
  /** Of views, by its name. */
  readonly generation: string
}

/** Components that are looked at in one go. */
const BATCH = 5_000

/**
 * Finds again which components no record is about, and counts them in each tag, where the records or the packages of tags are others than the last time.
 * All are looked at: a record that is gone does not say which packages it named.
 */
export async function followUnrecorded({ store, views, generation }: UnrecordedInput): Promise<void> {
  if (store.readFollowed('unrecorded') === generation) return
  await store.inOne(() => {
    for (let last: number | undefined = 0; last !== undefined;) {
      const batch: ReturnType<FindingsStore['listClear']> = store.listClear(last, BATCH)
      const isRecorded = recordedIn(views, batch)
      for (const one of batch) {
        const unrecorded = isRecorded(one) ? 0 : 1
        if (one.unrecorded !== unrecorded) store.putUnrecorded(unrecorded, one.id)
      }
      last = batch.at(-1)?.id
    }
    store.countUnrecorded()
    store.putFollowed('unrecorded', generation)
    return Promise.resolve()
  })
}
