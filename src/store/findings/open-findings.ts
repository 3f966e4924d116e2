import type { Db } from '../database/sqlite.ts'

/** A finding of a tag that VEX does not rule out. */
export interface OpenFinding {
  /** The id of the tag in the service's list, and what people call it. */
  readonly tag: string
  readonly tagName: string
  /** For each SBOM of the tag the package URLs of what it describes. */
  readonly subjects: readonly (readonly string[])[]
  /** For each SBOM the further names of that; open only: for what rules nothing out alone. */
  readonly images: readonly (readonly DescribedName[])[]
  readonly record: string
  readonly aliases: readonly string[]
  readonly upstream: readonly string[]
  readonly package: string
  readonly version: string
  /** The package URLs that SBOMs list of it; `sbom`: the number of the only one that does; null: each. */
  readonly packages: readonly { readonly purl: string; readonly sbom: number | null }[]
}

/** A name of what an SBOM describes. */
interface DescribedName {
  readonly purl: string
  readonly isOpenOnly: boolean
}

/** Findings that are read at most: above, those that were read are enough for a decision. */
const MOST = 200_000

interface Row {
  readonly tag: string
  readonly tagName: string
  readonly subjects: string
  readonly images: string
  readonly package: string
  readonly version: string
  readonly packages: string
}

/** Creates reads of the findings that are open; usable on any connection to the findings. */
export function createOpenFindings(db: Db) {
  const names = db.prepare<[], { id: string; names: string }>('SELECT id, names FROM record')
  const ofRecord = db.prepare<[string], Row>(
    `SELECT t.owner AS tag, t.name AS tagName, t.subjects, t.images, c.name AS package, c.version, c.packages
     FROM finding f JOIN component c ON c.id = f.component
       JOIN tag_component l ON l.component = c.id JOIN tag t ON t.id = l.tag
     WHERE f.record = ? AND NOT EXISTS
       (SELECT 1 FROM suppressed s WHERE s.component = c.id AND s.tag = t.id AND s.record = f.record)`,
  )
  const counts = db.prepare<[], { tag: string; findings: number; components: number }>(
    `SELECT owner AS tag, findings + suppressed AS findings,
       (SELECT count(*) FROM tag_component WHERE tag = id) AS components FROM tag`,
  )
  return {
    /** Returns the open findings of the records for which a function returns true. */
    listOpenFindings(
      isWanted: (one: Pick<OpenFinding, 'record' | 'aliases' | 'upstream'>) => boolean,
    ): OpenFinding[] {
      const found: OpenFinding[] = []
      for (const row of names.all()) {
        const [aliases = [], upstream = []] = JSON.parse(row.names) as string[][]
        const named = { record: row.id, aliases, upstream }
        if (!isWanted(named)) continue
        for (const one of ofRecord.iterate(row.id)) found.push({ ...named, ...toFinding(one) })
        if (found.length > MOST) break
      }
      return found
    },
    /** Numbers of findings, those that VEX rules out included, and of components, of each tag by its id. */
    countOfTags: () => counts.all(),
  }
}

function toFinding({ subjects, images, packages, ...row }: Row) {
  const listed = JSON.parse(packages) as [purl: string, sbom?: number][]
  return {
    ...row,
    subjects: JSON.parse(subjects) as string[][],
    images: JSON.parse(images) as DescribedName[][],
    packages: listed.map(([purl, sbom = null]) => ({ purl, sbom })),
  }
}
