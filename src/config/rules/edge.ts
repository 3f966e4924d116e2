import type { Checked } from '../problems.ts'

/** Problems of the settings of shared caches that show only together: purges that could reach nothing. */
export function checkEdge({ values, origins, refused }: Checked): string[] {
  const purge = values.get('edge.purge')
  if (!Array.isArray(purge) || purge.length === 0) return []
  const place = (name: string): string => `edge.${name} (${origins.get(`edge.${name}`) ?? 'not set'})`
  const problems: string[] = []
  if (values.get('edge.maxAgeSeconds') === 0 && !refused.has('edge.maxAgeSeconds'))
    problems.push(
      `${place('purge')}: ${place('maxAgeSeconds')} is 0, so no shared cache keeps anything that could be purged. Give the seconds, or remove the URLs.`,
    )
  if (values.get('edge.tagHeader') === 'none' && !refused.has('edge.tagHeader'))
    problems.push(
      `${place('purge')}: ${place('tagHeader')} is none, so a purge names nothing. Give the header that the cache reads: xkey, Surrogate-Key or Cache-Tag.`,
    )
  return problems
}
