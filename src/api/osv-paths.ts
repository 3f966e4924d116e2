/** Everything below is osv.dev's query API. */
export const QUERY_API = '/osv/v1/'

/** Its paths, as they are shown. */
export const QUERY_PATHS: readonly string[] = ['query', 'querybatch', 'vulns/{id}'].map(
  (path) => QUERY_API + path,
)
