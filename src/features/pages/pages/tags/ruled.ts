import { createVexJudge } from '../../../../documents/vex/apply.ts'
import type { ImageName } from '../../../../documents/vex/coverage.ts'
import { readDescribed } from '../../../../documents/vex/described.ts'
import { readVexStatements } from '../../../../documents/vex/read.ts'
import type { FindingsReads, TagFindings } from '../../../../store/findings/reads.ts'
import type { ListedFinding } from '../../../../store/findings/tag-list.ts'
import type { PageCall } from '../../page.ts'

/** VEX documents that are read for a page, and their bytes: more would keep other pages waiting. */
const MOST = { documents: 20, bytes: 8 * 2 ** 20 }

/**
 * Returns why VEX rules out some findings of a tag, in the words of the statement that counts among the documents that are read: those
 * of the tag itself, and others until they are too many.
 */
export function reasonsOf(
  { reads: { catalog, vex }, now }: Pick<PageCall, 'reads' | 'now'>,
  found: FindingsReads,
  tag: TagFindings,
  findings: readonly ListedFinding[],
): Map<ListedFinding, string> {
  const components = JSON.stringify([...new Set(findings.map(({ component }) => component))])
  const documents =
    findings.length === 0 ? [] : found.listVexOf({ tag: tag.id, owner: tag.owner, components, limit: MOST.documents })
  const described = JSON.parse(tag.subjects) as string[][]
  const names = JSON.parse(found.readTagImages(tag.id) ?? '[]') as ImageName[][]
  const asked = findings.map(askedOf)
  const judges = described.map((one, at) => {
    const image = { ...readDescribed(one), images: names[at] ?? [], tag: tag.owner }
    return createVexJudge(
      asked.filter(({ sbom }) => sbom === at),
      { image, now, check: () => undefined },
    )
  })
  let bytes = 0
  for (const { digest, tags: json, believed } of documents) {
    const { size = Infinity, changed = 0 } = catalog.readDocument(digest) ?? {}
    if (bytes + size > MOST.bytes) continue
    bytes += size
    const tags = JSON.parse(json) as string[]
    const document = { digest, size, changed, tags, believedTags: JSON.parse(believed) as string[] | null }
    for (const statement of readVexStatements(vex, document) ?? [])
      for (const judge of judges) judge.add(statement, document)
  }
  return new Map(
    asked.flatMap((one) => {
      const reason = judges[one.sbom]?.reasonFor(one) ?? null
      return reason === null ? [] : [[one.of, wordsOf(reason)] as const]
    }),
  )
}

function wordsOf({ status, justification, note }: { status: string; justification: string; note: string }): string {
  const why = justification === '' ? note : justification
  return [status, why]
    .filter((one) => one !== '')
    .map((one) => one.replaceAll('_', ' '))
    .join(': ')
}

/** A finding as VEX is asked about it: by the first package that SBOMs list. */
function askedOf(of: ListedFinding) {
  const [aliases = [], upstream = []] = JSON.parse(of.names) as string[][]
  const [[purl = '', sbom = null, name = '', version = ''] = []] = JSON.parse(of.packages) as [
    string?,
    (number | null)?,
    string?,
    string?,
  ][]
  const sourcePackage = name === '' ? null : { name, version }
  const component = { purl, version: of.version, sourcePackage }
  return { id: of.record, aliases, upstream, component, of, sbom: sbom ?? 0 }
}
