import type { Db } from '../database/sqlite.ts'
import { queries } from '../database/query.ts'

/** A finding of a tag that VEX does not rule out. */
export interface OpenFinding {
  /** The id of the tag in the service's list, and what people call it. */
  readonly tag: string
  readonly tagName: string
  /** For each SBOM of the tag the package URLs of what it describes, and its BOM-Link. */
  readonly subjects: readonly (readonly string[])[]
  /** For each SBOM the further names of that; open only: for what rules nothing out alone. */
  readonly images: readonly (readonly DescribedName[])[]
  readonly record: string
  readonly aliases: readonly string[]
  readonly upstream: readonly string[]
  readonly package: string
  readonly version: string
  /** The package URLs that SBOMs list of it; `sbom`: the number of the only one that does; null: each. */
  readonly packages: readonly ListedPackage[]
}

/** A package as an SBOM lists it. */
interface ListedPackage {
  readonly purl: string
  readonly sbom: number | null
  /** The source package that the SBOM names beside the package URL; null: none. */
  readonly source: { readonly name: string; readonly version: string } | null
}

/** A finding of one tag that VEX does not rule out, with the package URLs that the tag's SBOMs list of its package. */
export type FindingOfTag = Pick<OpenFinding, 'tagName' | 'record' | 'package' | 'version'> & {
  readonly purls: readonly string[]
}

/** A record by the ids that name it. */
export type NamedRecord = Pick<OpenFinding, 'record' | 'aliases' | 'upstream'>

/** A name of what an SBOM describes. */
interface DescribedName {
  readonly purl: string
  readonly isOpenOnly: boolean
}

/** Findings that are read at most, of whole tags: the share that is ruled out of theirs decides. */
const MOST = 50_000
/** Pairs of record and tag that are looked at to find the tags. */
const MOST_PAIRS = 500_000

type Row = Pick<OpenFinding, 'tag' | 'tagName' | 'package' | 'version' | 'record'> &
  Readonly<Record<'subjects' | 'images' | 'packages', string>>

/** Open findings, and the tags that were looked at. */
interface OpenFindings {
  readonly findings: OpenFinding[]
  readonly tags: ReadonlySet<string>
  /** Whether there are more tags, which were not looked at. */
  readonly isCut: boolean
}

/** Creates reads of the findings that are open; usable on any connection to the findings. */
export function createOpenFindings(db: Db) {
  const { all } = queries(db)
  const names = db.prepare<[], { id: string; names: string }>('SELECT id, names FROM record')
  const tagsOf = db
    .prepare<[string], number>(
      'SELECT DISTINCT l.tag FROM finding f JOIN tag_component l ON l.component = f.component WHERE f.record = ?',
    )
    .pluck()
  const ofTag = db.prepare<[number], Row>(
    `SELECT t.owner AS tag, t.name AS tagName, t.subjects, t.images, f.record, c.name AS package, c.version, c.packages
     FROM tag t JOIN tag_component l ON l.tag = t.id JOIN component c ON c.id = l.component
       JOIN finding f ON f.component = c.id
     WHERE t.id = ? AND NOT EXISTS
       (SELECT 1 FROM suppressed s WHERE s.component = c.id AND s.tag = t.id AND s.record = f.record)`,
  )
  const idOf = db.prepare<[string], number>('SELECT id FROM tag WHERE owner = ?').pluck()
  return {
    /**
     * Returns the open findings of the records for which a function returns true, of the tags that have any, and all of some tags.
     * `whole`: the ids of these.
     */
    listOpenFindings(isWanted: (one: NamedRecord) => boolean, whole: readonly string[] = []): OpenFindings {
      const all = new Map(names.all().map((row) => [row.id, namedRecord(row)]))
      const wanted = new Set([...all].flatMap(([id, named]) => (isWanted(named) ? [id] : [])))
      const findings: OpenFinding[] = []
      const tags = new Set<string>()
      const wholeTags = new Set(whole.flatMap((owner) => idOf.get(owner) ?? []))
      for (const tag of new Set([...wholeTags, ...tagsWith(wanted)])) {
        for (const row of ofTag.iterate(tag)) {
          tags.add(row.tag)
          const named = wanted.has(row.record) || wholeTags.has(tag) ? all.get(row.record) : undefined
          if (named !== undefined) findings.push({ ...toFinding(row), ...named })
        }
        if (findings.length > MOST) break
      }
      return { findings, tags, isCut: findings.length > MOST }
    },
    /** Returns the open findings of the tag with an id; none where it was not judged. */
    listFindingsOf(owner: string): FindingOfTag[] {
      const tag = idOf.get(owner)
      return tag === undefined ? [] : ofTag.all(tag).map(toFindingOfTag)
    },
    /** Numbers of findings, those that VEX rules out included, and of components, of each tag by its id. */
    countOfTags: all<[], { tag: string; findings: number; components: number }>(
      `SELECT owner AS tag, findings + suppressed AS findings,
         (SELECT count(*) FROM tag_component WHERE tag = id) AS components FROM tag`,
    ),
  }

  function tagsWith(records: Iterable<string>): Set<number> {
    const tags = new Set<number>()
    let pairs = 0
    for (const record of records) {
      for (const tag of tagsOf.all(record)) {
        tags.add(tag)
        pairs++
      }
      if (pairs > MOST_PAIRS) break
    }
    return tags
  }
}

function namedRecord({ id, names }: { id: string; names: string }): NamedRecord {
  const [aliases = [], upstream = []] = JSON.parse(names) as string[][]
  return { record: id, aliases, upstream }
}

function toFindingOfTag({ packages, ...row }: Row): FindingOfTag {
  const listed = JSON.parse(packages) as [purl: string][]
  return { ...row, purls: listed.map(([purl]) => purl) }
}

function toFinding({ subjects, images, packages, ...row }: Row) {
  const listed = JSON.parse(packages) as [string, (number | null)?, string?, string?][]
  return {
    ...row,
    subjects: JSON.parse(subjects) as string[][],
    images: JSON.parse(images) as DescribedName[][],
    packages: listed.map(([purl, sbom = null, name = '', version = '']): ListedPackage => {
      return { purl, sbom, source: name === '' ? null : { name, version } }
    }),
  }
}
