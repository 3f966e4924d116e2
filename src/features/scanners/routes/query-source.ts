import type { QuerySource } from '../records/search.ts'
import { type BodyViews, oneBodyOf } from './one-body.ts'
import { folderOf } from '../store/generations.ts'
import type { Views } from '../store/reads.ts'

/** Returns a generation of views as the place that queries look in. */
export function querySourceOf(views: Pick<Views, 'listCandidates' | 'readViewRecord'>): QuerySource {
  return {
    listCandidates: views.listCandidates,
    readRecord: (ecosystem, id) => views.readViewRecord(folderOf(ecosystem), id),
  }
}

/** What of a generation the query API asks. */
export type ApiViews = BodyViews & Pick<Views, 'listCandidates' | 'listNamed' | 'readViewRecord' | 'readUpstreamRecord'>

/** Returns the place that the query API looks in: each record that is found has its one body. */
export function apiSourceOf(views: ApiViews): QuerySource {
  const plain = querySourceOf(views)
  const withBody = (record: ReturnType<QuerySource['readRecord']>, id: string): typeof record => {
    if (record === null) return null
    const shown = (): Pick<typeof record, 'content' | 'prefixes'> => {
      const own = record.prefixes.length === 0 ? record : views.readUpstreamRecord(id)
      return own === null ? record : (oneBodyOf(views, id, own.content) ?? record)
    }
    return { ...record, shown }
  }
  return {
    ...plain,
    readRecord: (ecosystem, id) => withBody(plain.readRecord(ecosystem, id), id),
    anywhere: {
      listNamed: views.listNamed,
      readRecord: (id) => withBody(views.readUpstreamRecord(id), id),
    },
  }
}
