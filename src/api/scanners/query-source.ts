import type { QuerySource } from '../../query/search.ts'
import { folderOf } from '../../store/views/generations.ts'
import type { Views } from '../../store/views/reads.ts'

/** Returns a generation of views as the place that queries look in. */
export function querySourceOf(
  views: Pick<Views, 'listCandidates' | 'readViewRecord'>,
): QuerySource {
  return {
    listCandidates: views.listCandidates,
    readRecord: (ecosystem, id) => views.readViewRecord(folderOf(ecosystem), id),
  }
}
