/** Weights of the base metrics (CVSS 2.0 specification, section 3.2.1). */
const WEIGHTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  AV: { L: 0.395, A: 0.646, N: 1 },
  AC: { H: 0.35, M: 0.61, L: 0.71 },
  Au: { M: 0.45, S: 0.56, N: 0.704 },
  CIA: { N: 0, P: 0.275, C: 0.66 },
}

/** Returns the base score of a CVSS 2 vector, which some write in brackets; null for a text that is none. */
export function cvss2Score(vector: string): number | null {
  const plain = vector.trim().replace(/^\((.*)\)$/, '$1')
  const metrics = new Map(plain.split('/').map((part) => part.split(':') as [string, string]))
  const weight = (metric: string, table = metric): number => WEIGHTS[table]?.[metrics.get(metric) ?? ''] ?? NaN
  const impacts = ['C', 'I', 'A'].map((metric) => 1 - weight(metric, 'CIA'))
  const impact = 10.41 * (1 - impacts.reduce((product, one) => product * one, 1))
  const exploitability = 20 * weight('AV') * weight('AC') * weight('Au')
  const score = (0.6 * impact + 0.4 * exploitability - 1.5) * 1.176
  if (Number.isNaN(score)) return null
  return impact === 0 ? 0 : Math.round(score * 10) / 10
}
