import { setImmediate as nextIteration } from 'node:timers/promises'
import { readMirroredSboms } from '../documents/sboms/mirrored.ts'
import type { InputSbom } from '../documents/sboms/sbom.ts'
import type { FetchedArtifact } from '../store/catalog/answer-writes.ts'
import { readOpenFindings } from '../store/findings/database.ts'
import type { FindingOfTag } from '../store/findings/open-findings.ts'
import { type ArtifactJudging, type ArtifactsInput, MAX_COMPARED_BYTES, isSameList } from './artifacts.ts'
import { type LostComponent, lostComponents } from './lost-components.ts'

/** What the SBOMs of a tag lost that others replace. */
interface LostSboms {
  /** Id of the tag. */
  readonly tag: string
  readonly path: string
  readonly lost: readonly (LostComponent & { readonly isShrunk: boolean })[]
  /** Package URLs that are not there as they were. */
  readonly left: ReadonlySet<string>
  /** Whether the image is the same, or there is no SBOM of another one. */
  readonly isSameDigest: boolean
  /** Number of packages that the earlier ones have. */
  readonly before: number
}

/**
 * Counts what SBOMs lost that replace others: components, and the findings of these. The same image has the same components;
 * another one may have other versions, but findings of most tags do not go with them in one week.
 */
export async function judgeSboms(
  input: ArtifactsInput,
  fetched: readonly FetchedArtifact[],
  judging: ArtifactJudging,
): Promise<void> {
  const budget = { bytes: 0 }
  let compared = 0
  setTotals(input, judging)
  for (const one of fetched) {
    if (one.before === null || isSameList(one.before, one.now)) continue
    await nextIteration()
    const lost = compareSboms(input, one, one.before, budget)
    compared += lost.before
    judging.totals.ofTag.set(groupOf(lost), lost.before)
    countComponents(lost, judging)
    countFindings(input, lost, judging)
  }
  const { of } = judging.totals
  of.set('sbomShrunk', of.get('sbomShrunk') ?? compared).set('sbomReplaced', of.get('sbomReplaced') ?? compared)
}

/** Compares the SBOMs of one tag, each with the one in its place. */
function compareSboms(
  input: ArtifactsInput,
  { path, owner, now }: FetchedArtifact,
  before: readonly string[],
  budget: { bytes: number },
): LostSboms {
  const tag = owner.slice(owner.indexOf('/') + 1)
  const listed = input.digestOf(tag)
  const left = new Set<string>()
  const lost: (LostComponent & { isShrunk: boolean })[] = []
  let all = 0
  let isSameDigest = listed === 'same' || (now.length === 0 && listed === null)
  for (const [at, digest] of before.entries()) {
    budget.bytes += input.store.catalog.readDocument(digest)?.size ?? 0
    const old = budget.bytes > MAX_COMPARED_BYTES ? null : sbomIn(input, digest)
    if (old === null) continue
    const next = now[at]
    const found = lostComponents(old, next === undefined ? null : sbomIn(input, next), listed)
    all += found.before
    isSameDigest ||= found.isSameDigest
    for (const one of found.lost) lost.push({ ...one, isShrunk: found.isShrunk })
    for (const purl of found.left) left.add(purl)
  }
  return { tag, path, lost, left, isSameDigest, before: all }
}

/** The name by which components of one tag are counted. */
function groupOf({ tag }: LostSboms): string {
  return `sbom ${tag}`
}

function countComponents(sboms: LostSboms, { count }: ArtifactJudging): void {
  const { tag, path } = sboms
  const packages = [groupOf(sboms)]
  for (const { name, because, isShrunk } of sboms.lost) {
    const kind = isShrunk ? 'sbomShrunk' : 'sbomReplaced'
    count.note({ kind, name: `${tag} ${name}`, content: '', because, packages, path })
  }
}

/** The share of its findings, and the least number of them, with which a tag counts as one that lost most. */
const CLEARED = { share: 0.5, findings: 5 }

/** Counts the open findings of packages that are not there as they were. */
function countFindings(input: ArtifactsInput, sboms: LostSboms, { count }: ArtifactJudging): void {
  const { tag, path, left, isSameDigest } = sboms
  if (left.size === 0) return
  const all = readOpenFindings(input.dataDir, (findings) => findings.listFindingsOf(tag)) ?? []
  const lost = all.filter(({ purls }) => purls.every((purl) => left.has(purl)))
  const kind = isSameDigest ? 'findingsLost' : 'findingsReplaced'
  const because = isSameDigest ? 'its package is not in the SBOM as it was' : 'its package is not in the new image'
  const packages = isSameDigest ? [tag] : []
  for (const one of lost) count.note({ kind, name: nameOf(one), content: '', because, packages, path })
  if (isSameDigest || !isCleared(lost.length, all.length)) return
  const words = `${lost.length} of ${all.length} findings are of packages that its new image does not have as they were`
  count.note({ kind: 'tagsCleared', name: tag, content: '', because: words, packages: [], path })
}

/** Reports whether a tag lost so many of its findings that it counts. */
export function isCleared(lost: number, all: number): boolean {
  return lost >= CLEARED.findings && lost > all * CLEARED.share
}

function nameOf({ tagName, record, package: name, version }: FindingOfTag): string {
  return `${tagName} ${record} ${name} ${version}`
}

/** Sets the totals of what is known of all tags. */
function setTotals({ dataDir }: ArtifactsInput, { totals: { of, ofTag } }: ArtifactJudging): void {
  const tags = readOpenFindings(dataDir, (findings) => findings.countOfTags())
  if (tags === null) return
  const components = tags.reduce((sum, one) => sum + one.components, 0)
  const findings = tags.reduce((sum, one) => sum + one.findings, 0)
  of.set('sbomShrunk', components).set('sbomReplaced', components)
  of.set('findingsLost', findings).set('findingsReplaced', findings)
  of.set('tagsCleared', tags.filter((one) => one.findings >= CLEARED.findings).length)
  for (const one of tags) ofTag.set(one.tag, one.findings)
}

/** Returns an SBOM, several in one document as one; null where it cannot be read. */
function sbomIn({ store }: ArtifactsInput, digest: string): InputSbom | null {
  try {
    const all = readMirroredSboms({ catalog: store.catalog }, digest, 'a tag')
    const subjects = all.flatMap((one) => one.subjects)
    const components = all.flatMap((one) => one.components)
    return all[0] === undefined ? null : { ...all[0], subjects, components }
  } catch {
    return null
  }
}
