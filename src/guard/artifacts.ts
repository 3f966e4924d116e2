import { setImmediate as nextIteration } from 'node:timers/promises'
import { DAY_MS } from '../core/time.ts'
import type { Doubt } from '../domain/doubts.ts'
import { readVexStatements } from '../vex/read.ts'
import type { Statement } from '../vex/statement.ts'
import { readMirroredSbom } from '../sboms/mirrored.ts'
import type { InputSbom } from '../sboms/sbom.ts'
import type { FetchedArtifact } from '../store/catalog/answer-writes.ts'
import { readOpenFindings } from '../store/findings/database.ts'
import type { Writes } from '../store/writer.ts'
import { lostComponents } from './lost-components.ts'
import { type NewVexDocument, newlyRuledOut, ruledOutPairs } from './ruled-out.ts'
import type { createDoubtCount } from './verdict.ts'

/** Bytes of documents that one run compares: above, the rest is counted as not compared. */
const MAX_BYTES = 2 ** 30

/** Where artifacts are read, and what is known beside them. */
interface ArtifactsInput {
  readonly store: Pick<Writes, 'catalog' | 'vex'>
  readonly dataDir: string
  readonly windowDays: number
  /** Unix milliseconds. */
  readonly now: number
  /** What the run reports. */
  readonly facts: Record<string, unknown>
}

/** Totals of what is stored, by the kinds that count them; those of tags by their ids. */
interface ArtifactTotals {
  readonly of: Map<Doubt, number>
  readonly ofTag: Map<string, number>
}

/** What doubts are added to. */
export interface ArtifactJudging {
  readonly count: ReturnType<typeof createDoubtCount>
  readonly totals: ArtifactTotals
}

/** Counts findings that VEX newly rules out, or where no findings are known its statements. */
export async function judgeVex(
  input: ArtifactsInput,
  fetched: readonly FetchedArtifact[],
  { count, totals }: ArtifactJudging,
): Promise<void> {
  const documents = await newDocuments(input, fetched)
  if (documents.length === 0) return
  const known = readOpenFindings(input.dataDir, (findings) => {
    const { ruledOut, tags, isCut } = newlyRuledOut(documents, findings, input.now)
    const counted = findings.countOfTags().filter(({ tag }) => !isCut || tags.has(tag))
    const total = counted.reduce((sum, one) => sum + one.findings, 0)
    totals.of.set('vexRuledOut', total)
    for (const { tag, findings: own } of counted) totals.ofTag.set(tag, own)
    return ruledOut
  })
  if (known === null) countStatements(input, fetched, documents, { count, totals })
  for (const { tag, name, digest, because } of known ?? []) {
    const path = fetched.find(({ now }) => now.includes(digest))?.path ?? tag
    count.note({ kind: 'vexRuledOut', name, content: '', because, packages: [tag], path })
  }
}

/** Reads the documents that nothing published links to. */
async function newDocuments(input: ArtifactsInput, fetched: readonly FetchedArtifact[]): Promise<NewVexDocument[]> {
  const { store, facts } = input
  const links = fetched.flatMap((one) => one.now.map((digest) => ({ digest, of: one })))
  const byDigest = Map.groupBy(links, ({ digest }) => digest)
  const linked = new Set(store.vex.listVexDocuments().map(({ digest }) => digest))
  const documents: NewVexDocument[] = []
  let bytes = 0
  for (const [digest, ones] of byDigest) {
    if (linked.has(digest)) continue
    bytes += store.catalog.readDocument(digest)?.size ?? 0
    if (bytes > MAX_BYTES) {
      facts['vexNotCompared'] = Number(facts['vexNotCompared'] ?? 0) + 1
      continue
    }
    await nextIteration()
    const first = ones.filter(({ of }) => isFirstOfNew(input, of))
    const firstOf = new Set(first.map(({ of }) => idOf(of.owner)))
    const owners = ones.map(({ of }) => of.owner)
    const tags = owners.every((owner) => owner.startsWith('tags/')) ? owners.map(idOf) : []
    documents.push({ digest, tags, statements: statementsIn(input, digest, tags), firstOf })
  }
  return documents
}

function statementsIn({ store }: ArtifactsInput, digest: string, tags: readonly string[] = []): readonly Statement[] {
  const document = store.catalog.readDocument(digest)
  if (document === null) return []
  const { size, changed } = document
  return readVexStatements(store.vex, { digest, size, changed, tags }) ?? []
}

/** Whether it is the first VEX of a tag that came within the window: its findings were never known without it. */
function isFirstOfNew({ windowDays, now }: ArtifactsInput, one: FetchedArtifact): boolean {
  if (one.before !== null) return false
  if (one.sbomChanged === null) return true
  return one.sbomChanged * 1000 > now - Math.max(windowDays, 1) * DAY_MS
}

function idOf(owner: string): string {
  return owner.slice(owner.indexOf('/') + 1)
}

/** Counts what is newly ruled out by pairs of vulnerability and product, against what replaced and new documents rule out. */
function countStatements(
  input: ArtifactsInput,
  fetched: readonly FetchedArtifact[],
  documents: readonly NewVexDocument[],
  { count, totals }: ArtifactJudging,
): void {
  const replaced = fetched.flatMap(({ before }) => before ?? [])
  const old = new Set(replaced.flatMap((digest) => ruledOutPairs(statementsIn(input, digest))))
  const own = new Set(fetched.filter((one) => !isFirstOfNew(input, one)).flatMap((one) => one.now))
  const all = new Set(old)
  for (const { digest, statements } of documents)
    for (const pair of own.has(digest) ? ruledOutPairs(statements) : []) {
      all.add(pair)
      const because = `ruled out by VEX document ${digest.slice(0, 12)}`
      if (!old.has(pair)) count.note({ kind: 'vexStated', name: pair, content: '', because, packages: [] })
    }
  totals.of.set('vexStated', all.size)
}

/** Counts components that SBOMs lost which replace others. */
export async function judgeSboms(
  input: ArtifactsInput,
  fetched: readonly FetchedArtifact[],
  { count, totals }: ArtifactJudging,
): Promise<void> {
  let bytes = 0
  let compared = 0
  const perTag = new Map<string, number>()
  for (const { path, owner, before, now } of fetched) {
    if (before === null || isSame(before, now)) continue
    await nextIteration()
    for (const [at, digest] of before.entries()) {
      bytes += input.store.catalog.readDocument(digest)?.size ?? 0
      const old = bytes > MAX_BYTES ? null : sbomIn(input, digest)
      if (old === null) continue
      const next = now[at]
      const lost = lostComponents(old, next === undefined ? null : sbomIn(input, next))
      compared += lost.before
      const tag = idOf(owner)
      const group = `sbom ${tag}`
      perTag.set(group, (perTag.get(group) ?? 0) + lost.before)
      const kind = lost.isShrunk ? 'sbomShrunk' : 'sbomReplaced'
      for (const lostName of lost.names) {
        const name = `${tag} ${lostName}`
        count.note({ kind, name, content: '', because: GONE, packages: [group], path })
      }
    }
  }
  const known = knownComponents(input) ?? compared
  totals.of.set('sbomShrunk', known).set('sbomReplaced', known)
  for (const [group, components] of perTag) totals.ofTag.set(group, components)
}

const GONE = 'not in the SBOM any more'

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((digest, at) => digest === other[at])
}

/** Returns an SBOM; null where it cannot be read. */
function sbomIn({ store }: ArtifactsInput, digest: string): InputSbom | null {
  try {
    return readMirroredSbom({ catalog: store.catalog }, digest, 'a tag')
  } catch {
    return null
  }
}

function knownComponents({ dataDir }: ArtifactsInput): number | null {
  return readOpenFindings(dataDir, (findings) =>
    findings.countOfTags().reduce((sum, { components }) => sum + components, 0),
  )
}
