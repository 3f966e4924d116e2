import { sha256Hex } from '../../../base/digest.ts'
import { createVexJudge, statedIds } from '../../../documents/vex/apply.ts'
import { type DescribedImage, type ImageName, type NamedComponent, ownPlaces } from '../../../documents/vex/coverage.ts'
import { readDescribed } from '../../../documents/vex/described.ts'
import { platformGap } from '../../../documents/sboms/platforms.ts'
import { imageNames, readListedImage } from '../../../documents/vex/images.ts'
import { type Statement, rulesOut } from '../../../documents/vex/statement.ts'
import { EVERY_PLACE, type StoredDocument } from '../../../store/findings/vex.ts'
import type { FindingComponent, FindingsStore, TagFinding } from '../../../store/findings/writes.ts'
import { type DuringReads, expectCatalog } from './during.ts'
import { type RecordNames, createNameReader } from './names.ts'
import { ANY_VULNERABILITY, createNumbers, readDocument, unreadState } from './vex-documents.ts'

/** Bytes of documents whose statements are kept parsed, and products about which documents are known. */
const KEPT_BYTES = 16 * 2 ** 20
const KEPT_PLACES = 20_000

/** A package in a version, as VEX is asked about it. */
type VexComponent = Pick<FindingComponent, 'id' | 'version' | 'packages'>

/** A finding of a component, as VEX is asked about it. */
export interface VexQuestion {
  readonly record: string
  readonly names: RecordNames
  readonly component: VexComponent
  /** Of the ids of the vulnerability, and of the products that the component is. */
  readonly vulnerabilities: readonly number[]
  readonly places: readonly number[]
}

/** What VEX says about the findings of tags. */
export type VexRules = ReturnType<typeof createVexRules>

interface VexInput {
  readonly store: FindingsStore
  readonly during: DuringReads
  /** The snapshot of the catalog that `followVex` has read. */
  readonly catalog: string
  /** Unix milliseconds. */
  readonly now: number
}

/** Creates what says which findings VEX rules out, by the documents that `followVex` has read. */
export function createVexRules(input: VexInput) {
  const { store } = input
  const numberOf = createNumbers()
  const isAny = store.listVexDocuments().length > 0
  return {
    /** Adds what a new component is, by which VEX about it is found. */
    addComponent(component: VexComponent): void {
      store.addComponentPlaces(component.id, ownPlacesOf(component, numberOf))
    },
    ...createTagImages(input, numberOf),
    /** Creates the questions about findings of a component; none where there is no VEX. */
    ask(component: VexComponent, findings: readonly Pick<VexQuestion, 'record' | 'names'>[]): VexQuestion[] {
      if (!isAny || findings.length === 0) return []
      const places = ownPlacesOf(component, numberOf)
      return findings.map(({ record, names }) => {
        const vulnerabilities = statedIds({ id: record, ...names }).map(numberOf)
        return { record, names, component, vulnerabilities, places }
      })
    },
    ruledOut: createRuledOut(input, numberOf),
  }
}

type NumberOf = (text: string) => number

/** Creates what keeps the names of the tags' images. */
function createTagImages({ store, during, catalog }: VexInput, numberOf: NumberOf) {
  return {
    /** Adds what a tag is, whose image the catalog may know by further names. */
    replaceTag(id: number): void {
      const tag = store.readAskedTag(id)
      if (tag === null) return
      const named = during((reads, vex) => namesIn(reads.catalog, tag, new Set(vex.listUnsureTags())))
      store.putTagImages(id, named)
      store.replaceTagPlaces(id, placesOfImages(imagesOf({ ...tag, ...named }), numberOf))
    },
    /** Brings the names of the tags' images to those of the catalog, and marks the tags that have others than before. */
    async followImages(): Promise<void> {
      const unsure = during((reads, vex) => {
        expectCatalog(reads, catalog)
        return vex.listUnsureTags()
      })
      const state = unsure.length === 0 ? catalog : `${catalog} without ${sha256Hex(unsure.join('\n'))}`
      if (store.readFollowed('images') === state) return
      for (const { id, ...tag } of store.listAskedTags()) {
        const named = during((reads) => {
          expectCatalog(reads, catalog)
          return namesIn(reads.catalog, tag, new Set(unsure))
        })
        if (named.images === tag.images && named.platformGap === tag.platformGap) continue
        await store.inOne(() => {
          store.putTagImages(id, named)
          store.replaceTagPlaces(id, placesOfImages(imagesOf({ ...tag, ...named }), numberOf))
          store.markTag(id)
          return Promise.resolve()
        })
      }
      store.putFollowed('images', state)
    },
  }
}

function placesOfImages(images: readonly DescribedImage[], numberOf: NumberOf): number[] {
  const purls = images.flatMap(({ subjects, images: more }) => [...subjects, ...more.map(({ purl }) => purl)])
  return placesOf(
    purls.map((purl) => ({ purl, version: '' })),
    numberOf,
  )
}

/**
 * Creates the function that returns those findings of a tag that VEX rules out: in each of its SBOMs, and for each package that
 * they list of the component. `id`: of the tag. Throws `locked` where a document was replaced meanwhile.
 */
function createRuledOut(input: VexInput, numberOf: NumberOf) {
  const { store, now } = input
  const read = createStatementReader(input)
  const listAbout = createPlaceReader(store)
  const withoutVex = new Set(store.listTagsWithoutVex())
  return (id: number, questions: readonly VexQuestion[]): readonly VexQuestion[] => {
    const tag = questions.length === 0 ? null : store.readAskedTag(id)
    if (tag === null) return []
    const images = imagesOf(tag)
    const common = [EVERY_PLACE, ...placesOfImages(images, numberOf)].map(listAbout)
    const documents = new Map<string, StoredDocument>()
    const named = questions.filter(({ vulnerabilities, places }) => {
      const about = [...common, ...places.map(listAbout)].flatMap((one) =>
        [...vulnerabilities, ANY_VULNERABILITY].flatMap((number) => one?.get(number) ?? []),
      )
      for (const one of about) documents.set(one.digest, one)
      return about.length > 0
    })
    if (named.length === 0) return []
    const listed = [...documents].sort(([one], [other]) => (one < other ? -1 : 1))
    const open = new Set<VexQuestion>()
    for (const [at, image] of images.entries()) {
      const asked = named.flatMap((one) => askedOf(one, at))
      const judged = { ...image, tag: tag.owner }
      const judge = createVexJudge(asked, { image: judged, now, withoutVex, check: () => undefined })
      for (const [digest, document] of listed) {
        const tags = JSON.parse(document.tags) as string[]
        const believedTags = JSON.parse(document.believed) as string[] | null
        const statements = read(document)
        if (statements === null) judge.addUnread({ tags })
        for (const statement of statements ?? []) judge.add(statement, { digest, tags, believedTags })
      }
      for (const one of asked) if (judge.reasonFor(one) === null) open.add(one.of)
    }
    return named.filter((one) => !open.has(one))
  }
}

type AskedTag = NonNullable<ReturnType<FindingsStore['readAskedTag']>>

function imagesOf({ subjects, images }: AskedTag): DescribedImage[] {
  const names = JSON.parse(images) as ImageName[][]
  const described = JSON.parse(subjects) as string[][]
  return described.map((one, at) => ({ ...readDescribed(one), images: names[at] ?? [] }))
}

/** Returns the further names of what the SBOMs of a tag describe, as JSON, and of which platforms these say nothing. `unsure`: tags of which the list proves nothing. */
function namesIn(
  catalog: Parameters<typeof imageNames>[0],
  { owner: tag, subjects }: Pick<AskedTag, 'owner' | 'subjects'>,
  unsure: ReadonlySet<string>,
): Pick<AskedTag, 'images' | 'platformGap'> {
  const described = (JSON.parse(subjects) as string[][]).map((one) => readDescribed(one).subjects)
  const isUnsure = unsure.has(tag)
  const names = described.map((one) => imageNames(catalog, one, { tag, isUnsure }))
  return {
    images: JSON.stringify(names),
    platformGap: platformGap(readListedImage(catalog, tag)?.images ?? [], described),
  }
}

/** Creates the function that reads which documents say anything about a product, by the vulnerability; null: none does. */
function createPlaceReader(store: FindingsStore) {
  const known = new Map<number, ReadonlyMap<number, readonly StoredDocument[]> | null>()
  return (place: number): ReadonlyMap<number, readonly StoredDocument[]> | null => {
    const before = known.get(place)
    if (before !== undefined) return before
    const rows = Map.groupBy(store.listVexAbout(place), ({ vulnerability }) => vulnerability)
    const about = new Map<number, readonly StoredDocument[]>(rows)
    if (known.size >= KEPT_PLACES) known.clear()
    known.set(place, about.size === 0 ? null : about)
    return about.size === 0 ? null : about
  }
}

/** The packages of a component that an SBOM of a tag lists, by the number of the SBOM. */
function askedOf(of: VexQuestion, at: number) {
  const { record: id, names, component } = of
  const listed = packagesIn(component).filter(({ sbom }) => sbom === null || sbom === at)
  return listed.map((named) => ({ id, ...names, of, component: named }))
}

/** A package of a component as SBOMs list it. `sbom`: the number of the only one that does; null: each. */
type ListedPackage = NamedComponent & { readonly sbom: number | null }

function packagesIn({ packages, version }: VexComponent): ListedPackage[] {
  const listed = JSON.parse(packages) as [string, (number | null)?, string?, string?][]
  return listed.map(([purl, sbom = null, name = '', sourceVersion = '']) => {
    const sourcePackage = name === '' ? null : { name, version: sourceVersion }
    return { purl, version, sourcePackage, sbom }
  })
}

function ownPlacesOf(component: VexComponent, numberOf: (text: string) => number): number[] {
  return placesOf(packagesIn(component), numberOf)
}

function placesOf(named: readonly NamedComponent[], numberOf: (text: string) => number): number[] {
  return [...new Set(named.flatMap(ownPlaces))].map(numberOf)
}

/**
 * Creates the function that reads the statements of a document that is known; null for one that cannot be read. That is
 * forgotten, so that the tags which it may be about are judged again, and the next judgement tries to read it.
 */
function createStatementReader({ store, during, catalog }: VexInput) {
  const kept = new Map<string, readonly Statement[] | null>()
  let bytes = 0
  return ({ digest, tags: json, believed }: StoredDocument): readonly Statement[] | null => {
    const before = kept.get(digest)
    if (before !== undefined) return before
    const document = during((reads) => reads.catalog.readDocument(digest))
    const { size = 0, changed = 0 } = document ?? {}
    const tags = JSON.parse(json) as string[]
    const read = readDocument(during, { digest, size, changed, tags }, catalog)
    if (read === null) forget(store, digest, catalog)
    const statements = read?.filter(({ status }) => believed !== 'null' || !rulesOut(status)) ?? null
    bytes += size
    if (bytes > KEPT_BYTES) {
      kept.clear()
      bytes = size
    }
    kept.set(digest, statements)
    return statements
  }
}

function forget(store: FindingsStore, digest: string, catalog: string): void {
  const known = store.listVexDocuments().find((one) => one.digest === digest)
  if (known !== undefined) store.dropVexDocument(known.id)
  store.putFollowed('vex', unreadState(catalog))
}

/** The findings of a tag that count, and how many VEX rules out. */
interface Ruled {
  readonly visible: readonly TagFinding[]
  readonly suppressed: number
}

/** Returns the findings of a tag that count now, by what is stored. */
export function visibleIn(store: FindingsStore, tag: number): readonly TagFinding[] {
  const hidden = new Set(store.listSuppressedIn(tag).map(keyOf))
  return store.listTagFindings(tag).filter((one) => !hidden.has(keyOf({ ...one, component: one.id })))
}

/** Asks VEX about all findings of a tag, and stores which it rules out. Throws `locked`. */
export function ruleTag(store: FindingsStore, rules: VexRules, tag: number): Ruled {
  const namesOf = createNameReader(store)
  const findings = store.listTagFindings(tag)
  const byComponent = Map.groupBy(findings, ({ id }) => id)
  const questions = [...byComponent.values()].flatMap((ones) => {
    const named = ones.map(({ record }) => ({ record, names: namesOf(record) }))
    return ones[0] === undefined ? [] : rules.ask(ones[0], named)
  })
  const ruled = new Set(rules.ruledOut(tag, questions).map(rowKey))
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
