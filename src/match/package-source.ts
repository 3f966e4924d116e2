import { type QuerySource, parseRecord } from '../query/search.ts'

/** Bytes of records of a package that are kept parsed: those of all but the packages with the most records. */
const KEPT_BYTES = 8 * 2 ** 20

/**
 * Returns a source that reads the records of a package once for all its versions, when these are asked for one after the
 * other.
 */
export function createPackageSource(source: QuerySource): QuerySource {
  const kept = new Map<string, ReturnType<QuerySource['readRecord']>>()
  const lists = new Map<string, ReturnType<QuerySource['listCandidates']>>()
  let [current, bytes] = ['', 0]
  return {
    listCandidates(ecosystem, name, after, limit) {
      const asked = JSON.stringify([ecosystem, name])
      if (asked !== current) {
        kept.clear()
        lists.clear()
        ;[current, bytes] = [asked, 0]
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
