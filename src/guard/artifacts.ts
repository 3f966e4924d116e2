import { setImmediate as nextIteration } from 'node:timers/promises'
import { DAY_MS } from '../base/time.ts'
import type { Doubt } from '../base/domain/doubts.ts'
import { statedIds } from '../documents/vex/apply.ts'
import type { CatalogReads } from '../documents/vex/images.ts'
import { readVexStatements } from '../documents/vex/read.ts'
import type { Statement } from '../documents/vex/statement.ts'
import type { FetchedArtifact } from '../store/catalog/answer-writes.ts'
import { readOpenFindings } from '../store/findings/database.ts'
import type { NamedRecord } from '../store/findings/open-findings.ts'
import type { VexDocument } from '../store/catalog/vex.ts'
import type { Writes } from '../store/writes.ts'
import type { DigestEvidence } from './lost-components.ts'
import { renamedTags } from './renamed-images.ts'
import {
  type ComparedDocument,
  type StatementReader,
  idsIn,
  isChanged,
  newlyRuledOut,
  ruledOutPairs,
} from './ruled-out.ts'
import type { createDoubtCount } from './verdict.ts'

/** Bounds the bytes of documents that one run compares: above, the rest is counted as not compared. */
export const MAX_COMPARED_BYTES = 2 ** 30

/** Names where artifacts are read, and what is known beside them. */
export interface ArtifactsInput {
  readonly store: Pick<Writes, 'catalog' | 'vex'>
  readonly dataDir: string
  readonly windowDays: number
  /** Unix milliseconds. */
  readonly now: number
  /** What the run reports. */
  readonly facts: Record<string, unknown>
  /** What the list of tags says of the image of a tag by its id, before and now. */
  readonly digestOf: (tag: string) => DigestEvidence
  /** The catalog as it would be published. */
  readonly catalogNow: CatalogReads
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

/**
 * Counts findings that VEX newly rules out, by what it says or by the names of images, or where no findings are known its
 * statements. `sboms`: the SBOMs that were fetched.
 */
export async function judgeVex(
  input: ArtifactsInput,
  { vex: fetched, sboms }: { vex: readonly FetchedArtifact[]; sboms: readonly FetchedArtifact[] },
  { count, totals }: ArtifactJudging,
): Promise<void> {
  const renamed = renamedTags({ ...input, maxBytes: MAX_COMPARED_BYTES }, sboms)
  const relinked = fetched.filter(({ before, now }) => before === null || !isSameList(before, now))
  const documents = comparedDocuments(input, relinked)
  const changed = documents.filter(isChanged)
  if (changed.length === 0 && renamed.size === 0) return
  const read = createStatementReader(input)
  const said = await idsIn(changed, read)
  const known = readOpenFindings(input.dataDir, (findings) => {
    const isSaid = (one: NamedRecord): boolean => statedIds({ id: one.record, ...one }).some((id) => said.has(id))
    const open = findings.listOpenFindings(isSaid, [...renamed.keys()])
    const counted = findings.countOfTags().filter(({ tag }) => !open.isCut || open.tags.has(tag))
    const total = counted.reduce((sum, one) => sum + one.findings, 0)
    totals.of.set('vexRuledOut', total)
    for (const { tag, findings: own } of counted) totals.ofTag.set(tag, own)
    return open.findings
  })
  if (known === null) return countStatements(input, relinked, changed, { count, totals })
  for (const { tag, name, digest, because } of await newlyRuledOut(documents, known, {
    now: input.now,
    read,
    renamed,
  })) {
    const path = relinked.find(({ now }) => now.includes(digest))?.path
    const own = relinked.find(({ owner }) => owner === `tags/${tag}`)?.path
    count.note({ kind: 'vexRuledOut', name, content: '', because, packages: [tag], path: path ?? own ?? tag })
  }
}

/** Returns the documents that are published, and those that would be; a document twice whose tags would be others. */
function comparedDocuments(input: ArtifactsInput, relinked: readonly FetchedArtifact[]): ComparedDocument[] {
  const { vex } = input.store
  const before = new Map(vex.listVexDocuments().map((one) => [keyOf(one), one]))
  const after = new Map(vex.listVexDocuments(relinked).map((one) => [keyOf(one), one]))
  const first = relinked.filter((one) => isFirstOfNew(input, one))
  return [...new Map([...before, ...after])].map(([key, document]) => {
    const owners = first.filter(({ now }) => now.includes(document.digest)).map(({ owner }) => idOf(owner))
    return { document, isBefore: before.has(key), isAfter: after.has(key), firstOf: new Set(owners) }
  })
}

function keyOf({ digest, tags, signature }: VexDocument): string {
  return JSON.stringify([digest, tags, signature])
}

/** Creates the function that reads the statements of documents, within the bound of all of them together. */
function createStatementReader({ store, facts }: ArtifactsInput): StatementReader {
  const compared = new Map<string, boolean>()
  let bytes = 0
  const decide = ({ digest, size }: VexDocument): boolean => {
    bytes += size
    const isWithin = bytes <= MAX_COMPARED_BYTES
    if (!isWithin) facts['vexNotCompared'] = Number(facts['vexNotCompared'] ?? 0) + 1
    compared.set(digest, isWithin)
    return isWithin
  }
  return async (document) => {
    const isWithin = compared.get(document.digest) ?? decide(document)
    if (!isWithin) return []
    await nextIteration()
    return readVexStatements(store.vex, document) ?? []
  }
}

function statementsIn({ store }: ArtifactsInput, digest: string): readonly Statement[] {
  const document = store.catalog.readDocument(digest)
  if (document === null) return []
  const { size, changed } = document
  return readVexStatements(store.vex, { digest, size, changed }) ?? []
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
  relinked: readonly FetchedArtifact[],
  changed: readonly ComparedDocument[],
  { count, totals }: ArtifactJudging,
): void {
  const replaced = relinked.flatMap(({ before }) => before ?? [])
  const old = new Set(replaced.flatMap((digest) => ruledOutPairs(statementsIn(input, digest))))
  const own = new Set(relinked.filter((one) => !isFirstOfNew(input, one)).flatMap((one) => one.now))
  const all = new Set(old)
  for (const { document, isAfter } of changed) {
    const { digest } = document
    const statements = isAfter && own.has(digest) ? statementsIn(input, digest) : []
    for (const pair of ruledOutPairs(statements)) {
      all.add(pair)
      const because = `ruled out by VEX document ${digest.slice(0, 12)}`
      if (!old.has(pair)) count.note({ kind: 'vexStated', name: pair, content: '', because, packages: [] })
    }
  }
  totals.of.set('vexStated', all.size)
}

/** Reports whether documents are the same in the same order. */
export function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((digest, at) => digest === other[at])
}
