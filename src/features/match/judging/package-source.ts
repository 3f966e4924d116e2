import { querySourceOf } from '../../scanners/routes/query-source.ts'
import { type QuerySource, parseRecord } from '../../scanners/records/search.ts'
import { coversAsked, isMeant } from '../../../base/identity/meant.ts'
import { folderOf } from '../../scanners/store/generations.ts'
import type { Views } from '../../scanners/store/reads.ts'

/** Where an SBOM is judged: one snapshot's index and records. */
export interface JudgeSource extends QuerySource, RecordedEcosystems {
  /**
   * Returns the records that name each of many packages, in id order, and how many packages from the first on it has
   * completely: all of them, where they have fewer than `limit` records together.
   */
  readonly listPackageRecords: (
    ecosystem: string,
    names: readonly string[],
    limit: number,
  ) => { readonly records: ReadonlyMap<string, PackageRecords>; readonly complete: number }
}

/** The records that name a package. */
type PackageRecords = readonly {
  readonly id: string
  readonly read: () => ReturnType<QuerySource['readRecord']>
}[]

/** Returns a generation of views as the place where SBOMs are judged. */
export function judgeSourceOf(views: Views): JudgeSource {
  return {
    ...querySourceOf(views),
    listPackageRecords: (ecosystem, names, limit) => views.listPackageRecords(ecosystem, names, limit),
    ...ecosystemsOf(listRecorded(views)),
  }
}

/** What is known of the ecosystems that have records. */
export type RecordedEcosystems = ReturnType<typeof ecosystemsOf>

/** Returns the ecosystems that views have records of, as the records name them. */
export function listRecorded(views: Pick<Views, 'hasView' | 'listEcosystems'>): string[] {
  return views.listEcosystems().filter((name) => views.hasView(folderOf(name)))
}

/** Returns what is known where records of these ecosystems are there. */
export function ecosystemsOf(recorded: readonly string[]) {
  return {
    /** Whether there is any record of an ecosystem that may be about its release. */
    hasEcosystem: remembered((name) => recorded.some((one) => isMeant(one, name))),
    /** Whether there is one that is about its release, where records of other releases are there. */
    hasRelease: remembered((name) => coversAsked(recorded, name)),
  }
}

function remembered(decide: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>()
  return (name) => {
    const answer = known.get(name) ?? decide(name)
    known.set(name, answer)
    return answer
  }
}

/** Bytes of records of a package that are kept parsed: those of all but the packages with the most records. */
const KEPT_BYTES = 8 * 2 ** 20

/**
 * Returns a source that reads the records of a package once for all its versions, when these are asked for one after the
 * other.
 */
export function createPackageSource(source: QuerySource): QuerySource {
  const kept = new Map<string, ReturnType<QuerySource['readRecord']>>()
  const lists = new Map<string, ReturnType<QuerySource['listCandidates']>>()
  let current = ''
  let bytes = 0
  return {
    listCandidates(ecosystem, name, after, limit) {
      const asked = JSON.stringify([ecosystem, name])
      if (asked !== current) {
        kept.clear()
        lists.clear()
        current = asked
        bytes = 0
      }
      const listed = lists.get(after) ?? source.listCandidates(ecosystem, name, after, limit)
      lists.set(after, listed)
      return listed
    },
    readRecord(ecosystem, id) {
      const before = kept.get(id)
      if (before !== undefined) return before
      const read = source.readRecord(ecosystem, id)
      const record = read && { ...read, parsed: parseRecord(read.content) }
      bytes += read?.content.length ?? 0
      if (bytes <= KEPT_BYTES) kept.set(id, record)
      return record
    },
  }
}

/** Packages whose records are listed at once, and these records: a few milliseconds, and about a megabyte. */
const AHEAD = { packages: 256, records: 4096 }

/** A source that lists the records of many packages at once, before it is asked for them. */
interface AheadSource extends QuerySource {
  /** Lists the records of packages from the one at `from` on; returns of how many, at least one, and which have any. */
  readonly readAhead: (
    ecosystem: string,
    names: readonly string[],
    from: number,
  ) => { readonly packages: number; readonly recorded: (name: string) => boolean }
}

/** Creates a source that reads ahead. What it has not read, and a package with very many records, is read as ever. */
export function createAheadSource(source: JudgeSource): AheadSource {
  let lists: ReadonlyMap<string, PackageRecords> = new Map()
  let byId = new Map<string, PackageRecords[number]>()
  let current = ''
  return {
    readAhead(ecosystem, names, from) {
      const asked = names.slice(from, from + AHEAD.packages)
      const { records, complete } = source.listPackageRecords(ecosystem, asked, AHEAD.records)
      lists = records
      byId = new Map([...records.values()].flat().map((one) => [one.id, one]))
      current = ecosystem
      return {
        packages: Math.max(1, complete),
        recorded: (name) => complete === 0 || records.has(name),
      }
    },
    listCandidates(ecosystem, name, after, limit) {
      const listed = ecosystem === current ? lists.get(name) : undefined
      if (listed === undefined) return source.listCandidates(ecosystem, name, after, limit)
      const from = after === '' ? 0 : listed.findIndex(({ id }) => id === after) + 1
      return listed.slice(from, from + limit)
    },
    readRecord(ecosystem, id) {
      const listed = ecosystem === current ? byId.get(id) : undefined
      return listed === undefined ? source.readRecord(ecosystem, id) : listed.read()
    },
  }
}
