import {
  type DonePlaces,
  cvesOf,
  isForRelease,
  listDonePlaces,
  patchListState,
  patchPlaces,
} from '../../match/judging/patches.ts'
import { findEcosystem } from '../../../base/versions/ecosystems.ts'
import type { FindingsStore } from '../../../store/findings/writes.ts'
import { type CatalogAge, type DuringReads, catalogOf, expectCatalog } from './during.ts'
import { type StoredAsked, readAsked } from '../../../store/findings/asked.ts'
import { readNames } from './names.ts'
import { createTally, hiddenOf } from './tally.ts'

/** Says whether the service has patched a package for one of these CVEs. */
export type IsPatched = (component: StoredAsked, cves: readonly string[]) => boolean

/**
 * Creates the function that asks the mirrored list of patches, about each CVE once. What another catalog than that which is
 * followed says is compared again by the next judgement.
 */
export function createPatched({ store, during, catalog }: Omit<PatchesInput, 'now' | 'age'>): IsPatched {
  const listDone = (cves: readonly string[]) =>
    during((reads) => {
      if (catalogOf(reads) !== catalog) for (const name of ['vex', 'patches'] as const) store.putFollowed(name, '')
      return listDonePlaces(cves, reads)
    })
  const done = new Map<string, ReadonlySet<string>>()
  const asked = new Set<string>()
  return (component, cves) => {
    const missing = cves.filter((cve) => !asked.has(cve))
    for (const cve of missing) asked.add(cve)
    if (missing.length > 0) for (const [place, releases] of listDone(missing)) done.set(place, releases)
    return isAmong(done, component, cves)
  }
}

function isAmong(done: DonePlaces, component: StoredAsked, cves: readonly string[]): boolean {
  if (done.size === 0) return false
  const base = findEcosystem(component.ecosystem)?.base ?? ''
  const asked = readAsked(component)?.questions ?? []
  const names = new Set([component.name, ...asked.map(({ name }) => name)])
  const isPatched = (place: string): boolean =>
    [...(done.get(place) ?? [])].some((release) => isForRelease(release, place, component.ecosystem))
  return [...names].some((name) => patchPlaces(cves, base, name).some(isPatched))
}

interface PatchesInput {
  readonly store: FindingsStore
  readonly age: Pick<CatalogAge, 'isBack'>
  readonly during: DuringReads
  /** The snapshot of the catalog that the tags are brought to. */
  readonly catalog: string
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * Brings what the service has patched to another list of patches, in one transaction; returns the number of tags whose findings
 * differ. It reads the entries about the CVEs of findings, and writes the findings that differ.
 */
export async function followPatches(input: PatchesInput): Promise<number> {
  const { store, during, catalog, age, now } = input
  const state = during((reads) => {
    expectCatalog(reads, catalog)
    return patchListState(reads)
  })
  if (state === store.readFollowed('patches')) return 0
  return store.inOne(() => {
    const tally = createTally(store)
    for (const [id, records] of differing(input)) {
      const component = store.readComponent(id)
      if (component === null || records.size === 0) continue
      const before = store.listFindings(id).filter(({ record }) => records.has(record))
      const after = before.map((one) => ({ ...one, patched: 1 - one.patched }))
      for (const one of after) store.putFinding(id, one)
      const hidden = hiddenOf(store, id)
      tally.add({ component, before, after, whyGone: () => 'left' }, hidden, hidden)
    }
    store.putFollowed('patches', state)
    const cause = age.isBack ? 'rollback' : 'patches'
    return Promise.resolve(tally.close({ at: now, cause, snapshot: catalog }))
  })
}

/** Returns the records of those findings of components that are patched and were not, or were and are not any more. */
function differing({ store, during, catalog }: PatchesInput): Map<number, Set<string>> {
  const byComponent = new Map<number, Set<string>>()
  const flip = (component: number, record: string): void => {
    const records = byComponent.get(component) ?? new Set()
    byComponent.set(component, records)
    if (!records.delete(record)) records.add(record)
  }
  for (const { component, record } of store.eachPatched()) flip(component, record)
  const cvesBy = new Map<string, string[]>()
  for (const { id, names } of store.eachNames()) cvesBy.set(id, cvesOf({ id, ...readNames(names) }))
  const cves = [...new Set([...cvesBy.values()].flat())]
  const done = during((reads) => {
    expectCatalog(reads, catalog)
    return listDonePlaces(cves, reads)
  })
  const named = new Set([...done.keys()].map((place) => (JSON.parse(place) as string[])[0] ?? ''))
  for (const [record, own] of cvesBy) {
    if (!own.some((cve) => named.has(cve))) continue
    for (const component of store.listComponentsWith(record))
      if (isAmong(done, component, own)) flip(component.id, record)
  }
  return byComponent
}
