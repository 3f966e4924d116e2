import { rpmOrder } from '../../../base/versions/rpm.ts'
import { isNamed, isWithdrawn } from '../../scanners/records/affected.ts'
import { askVersion } from '../../scanners/records/ranges.ts'
import type { Question } from '../../../base/identity/identity.ts'
import { createPackageSource } from '../../match/judging/package-source.ts'
import { querySourceOf } from '../../scanners/routes/query-source.ts'
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
  readonly views: Pick<Views, 'listRecorded' | 'listCandidates' | 'readViewRecord'>
  /** Of views, by its name. */
  readonly generation: string
}

/** Components that are looked at in one go. */
const BATCH = 5_000
/** Records of a package that are listed at once: mostly the first one is about it. */
const STRETCH = 64

/**
 * Finds again which components no record is about, and counts them in each tag, where the records or the packages of tags are others than the last time.
 * All are looked at: a record that is gone does not say which packages it named.
 */
export async function followUnrecorded({ store, views, generation }: UnrecordedInput): Promise<void> {
  if (store.readFollowed('unrecorded') === generation) return
  const isAbout = createIsAbout(views)
  await store.inOne(() => {
    for (let last: number | undefined = 0; last !== undefined;) {
      const batch: ReturnType<FindingsStore['listClear']> = store.listClear(last, BATCH)
      last = batch.at(-1)?.id
      const isRecorded = recordedIn(views, batch)
      for (const one of batch.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const questions = isRecorded(one) ? (readAsked(one)?.questions ?? []) : []
        const unrecorded = questions.some(isAbout) ? 0 : 1
        if (one.unrecorded !== unrecorded) store.putUnrecorded(unrecorded, one.id)
      }
    }
    store.countUnrecorded()
    store.putFollowed('unrecorded', generation)
    return Promise.resolve()
  })
}

/**
 * Creates what says whether any record is about what is asked, in whatever version: of its release, and not withdrawn. Of rpm the version
 * says which builds are meant.
 */
function createIsAbout(views: UnrecordedInput['views']): (question: Question) => boolean {
  const source = createPackageSource(querySourceOf(views))
  const known = new Map<string, boolean>()
  const isAnyAbout = ({ ecosystem, name, version, stream }: Question): boolean => {
    const asked = { ecosystem, name, version: askVersion(version), stream }
    for (let after: string | undefined = ''; after !== undefined;) {
      const listed: readonly { readonly id: string }[] = source.listCandidates(ecosystem.name, name, after, STRETCH)
      for (const { id } of listed) {
        const { parsed = {}, prefixes = [] } = source.readRecord(ecosystem.name, id) ?? {}
        if (!isWithdrawn(parsed) && isNamed(parsed, asked, prefixes[0])) return true
      }
      after = listed.at(-1)?.id
    }
    return false
  }
  return (question) => {
    const { ecosystem, name, version, stream } = question
    const key = JSON.stringify([ecosystem.name, name, ecosystem.order === rpmOrder && [version, stream]])
    const answer = known.get(key) ?? isAnyAbout(question)
    known.set(key, answer)
    return answer
  }
}
