import { createVexJudge, statedIds } from '../../match/vex/apply.ts'
import { ownPlaces } from '../../match/vex/coverage.ts'
import type { Statement } from '../../match/vex/statements.ts'
import type { FindingComponent, FindingsStore, TagFinding } from '../../store/findings/writes.ts'
import type { DuringReads } from './during.ts'
import { type RecordNames, createNameReader } from './names.ts'
import { createNumbers, readDocument } from './vex-documents.ts'

/** Documents whose statements are kept parsed, and products about which documents are known. */
const KEPT_DOCUMENTS = 32
const KEPT_PLACES = 20_000

/** A finding of a component, as VEX is asked about it. */
export interface VexQuestion {
  readonly record: string
  readonly names: RecordNames
  readonly component: Pick<FindingComponent, 'id' | 'packages'>
  /** Of the ids of the vulnerability, and of the products that the component is. */
  readonly vulnerabilities: readonly number[]
  readonly places: readonly number[]
}

/** What VEX says about the findings of tags. */
export type VexRules = ReturnType<typeof createVexRules>

interface VexInput {
  readonly store: FindingsStore
  readonly during: DuringReads
  /** Unix milliseconds. */
  readonly now: number
}

/** Creates what says which findings VEX rules out, by the documents that `followVex` has read. */
export function createVexRules({ store, during, now }: VexInput) {
  const numberOf = createNumbers()
  const read = createStatementReader(store, during)
  const listAbout = createPlaceReader(store)
  const isAny = store.listVexDocuments().length > 0
  const ofSubjects = (subjects: string): number[] => {
    const purls = subjectsIn(subjects).flat()
    return placesOf(purls.map((purl) => [purl, ''] as const), numberOf) // prettier-ignore
  }
  return {
    /** Whether there is any VEX; otherwise nothing needs to be asked. */
    isAny,
    /** Adds what a new component is, by which VEX about it is found. */
    addComponent(id: number, packages: string): void {
      store.addComponentPlaces(id, placesOf(packagesIn(packages), numberOf))
    },
    /** The same of a tag. */
    replaceTag: (id: number, subjects: string): void =>
      store.replaceTagPlaces(id, ofSubjects(subjects)),
    /** Creates the questions about findings of a component. */
    ask(
      component: Pick<FindingComponent, 'id' | 'packages'>,
      findings: readonly Pick<VexQuestion, 'record' | 'names'>[],
    ): VexQuestion[] {
      if (!isAny || findings.length === 0) return []
      const places = placesOf(packagesIn(component.packages), numberOf)
      return findings.map(({ record, names }) => {
        const vulnerabilities = statedIds({ id: record, ...names }).map(numberOf)
        return { record, names, component, vulnerabilities, places }
      })
    },
    /**
     * Returns those findings of a tag that VEX rules out: in each of its SBOMs, and for each package that they list of the
     * component. `subjects`: as the tag has them. Throws `locked` where a document was replaced meanwhile.
     */
    ruledOut(subjects: string, questions: readonly VexQuestion[]): readonly VexQuestion[] {
      const common = questions.length === 0 ? [] : ofSubjects(subjects).map(listAbout)
      const digests = new Set<string>()
      const named = questions.filter(({ vulnerabilities, places }) => {
        const about = [...common, ...places.map(listAbout)].flatMap((one) =>
          vulnerabilities.flatMap((id) => one?.get(id) ?? []),
        )
        for (const digest of about) digests.add(digest)
        return about.length > 0
      })
      if (named.length === 0) return []
      const asked = named.flatMap(askedOf)
      const open = new Set<VexQuestion>()
      for (const list of subjectsIn(subjects)) {
        const judge = createVexJudge(asked, { subjects: list, now, check: () => undefined })
        for (const digest of [...digests].sort())
          for (const statement of read(digest)) judge.add(statement, { digest })
        for (const one of asked) if (judge.reasonFor(one) === null) open.add(one.of)
      }
      return named.filter((one) => !open.has(one))
    },
  }
}

/** Creates the function that reads which documents say anything about a product, by the vulnerability; null: none does. */
function createPlaceReader(store: FindingsStore) {
  const known = new Map<number, ReadonlyMap<number, readonly string[]> | null>()
  return (place: number): ReadonlyMap<number, readonly string[]> | null => {
    const before = known.get(place)
    if (before !== undefined) return before
    const rows = Map.groupBy(store.listVexAbout(place), ({ vulnerability }) => vulnerability)
    const about = new Map([...rows].map(([id, ones]) => [id, ones.map(({ digest }) => digest)]))
    if (known.size >= KEPT_PLACES) known.clear()
    known.set(place, about.size === 0 ? null : about)
    return about.size === 0 ? null : about
  }
}

function askedOf(of: VexQuestion) {
  const { record: id, names, component } = of
  return packagesIn(component.packages).map(([purl, version]) => ({
    ...{ id, ...names, of },
    component: { purl, version },
  }))
}

function packagesIn(packages: string): [purl: string, version: string][] {
  return JSON.parse(packages) as [string, string][]
}

function subjectsIn(subjects: string): string[][] {
  return JSON.parse(subjects) as string[][]
}

function placesOf(
  packages: readonly (readonly [purl: string, version: string])[],
  numberOf: (text: string) => number,
): number[] {
  const places = packages.flatMap(([purl, version]) => ownPlaces({ purl, version }))
  return [...new Set(places)].map(numberOf)
}

function createStatementReader(store: FindingsStore, during: DuringReads) {
  const kept = new Map<string, readonly Statement[]>()
  return (digest: string): readonly Statement[] => {
    const before = kept.get(digest)
    if (before !== undefined) return before
    const document = during((reads) => reads.catalog.readDocument(digest))
    const { size = 0, changed = 0 } = document ?? {}
    const statements = readDocument(during, { digest, size, changed }, store.readFollowed('vex'))
    if (kept.size >= KEPT_DOCUMENTS) kept.clear()
    kept.set(digest, statements ?? [])
    return statements ?? []
  }
}

/** The findings of a tag that count, and how many VEX rules out. */
interface Ruled {
  readonly visible: readonly TagFinding[]
  readonly suppressed: number
}

/** Returns the findings of a tag that count now, by what is stored. */
export function visibleIn(store: FindingsStore, tag: number): readonly TagFinding[] {
  const hidden = new Set(store.listSuppressedIn(tag).map(keyOf))
  return store
    .listTagFindings(tag)
    .filter((one) => !hidden.has(keyOf({ ...one, component: one.id })))
}

/** Asks VEX about all findings of a tag, and stores which it rules out. Throws `locked`. */
export function ruleTag(
  store: FindingsStore,
  rules: VexRules,
  tag: number,
  subjects: string,
): Ruled {
  const namesOf = createNameReader(store)
  const findings = store.listTagFindings(tag)
  const byComponent = Map.groupBy(findings, ({ id }) => id)
  const questions = [...byComponent.values()].flatMap((ones) =>
    ones[0] === undefined
      ? []
      : rules.ask(
          ones[0],
          ones.map(({ record }) => ({ record, names: namesOf(record) })),
        ),
  )
  const ruled = new Set(rules.ruledOut(subjects, questions).map(rowKey))
  const before = new Set(store.listSuppressedIn(tag).map(keyOf))
  const visible: TagFinding[] = []
  for (const finding of findings) {
    const row = { component: finding.id, tag, record: finding.record }
    const isRuled = ruled.has(keyOf(row))
    if (!isRuled) visible.push(finding)
    if (isRuled && !before.has(keyOf(row))) store.suppress(row)
    if (!isRuled && before.has(keyOf(row))) store.unsuppress(row)
  }
  return { visible, suppressed: ruled.size }
}

function rowKey({ component: { id }, record }: VexQuestion): string {
  return keyOf({ component: id, record })
}

function keyOf({ component, record }: { component: number; record: string }): string {
  return `${component} ${record}`
}
