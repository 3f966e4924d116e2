import type { RecordDifference } from '../documents/differences/difference.ts'
import { fieldsOf } from '../base/json/objects.ts'
import { LEVELS, cvss3Score, severityOf } from '../documents/records/severity.ts'

type SeverityChange = Extract<RecordDifference, { kind: 'severity_changed' }>

/** Words of severity in the languages of databases, the lowest first. */
const WORDS: ReadonlyMap<string, number> = new Map(
  ['none', 'negligible', 'unimportant', 'low', 'minor', 'medium', 'high', 'critical'].map((word, rank) => [word, rank]),
)
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['moderate', 'medium'],
  ['important', 'high'],
  ['severe', 'high'],
])

/** Metrics of CVSS 2 and 4 with their values, the lowest first. */
const METRICS: Readonly<Record<string, string>> = {
  AV: 'PLAN',
  AC: 'HML',
  Au: 'MSN',
  AT: 'PN',
  PR: 'HLN',
  UI: 'APN',
  C: 'NPC',
  I: 'NPC',
  A: 'NPC',
  VC: 'NLH',
  VI: 'NLH',
  VA: 'NLH',
  SC: 'NLH',
  SI: 'NLH',
  SA: 'NLH',
}
const IMPACTS = ['C', 'I', 'A', 'VC', 'VI', 'VA', 'SC', 'SI', 'SA']

/** Returns the changes that made a severity lower, took it away, or made of it what cannot be read. */
export function loweredSeverities(differences: readonly RecordDifference[]): SeverityChange[] {
  const changes = differences.filter((one) => one.kind === 'severity_changed')
  return changes.filter((one) => {
    const { from, to, scale } = one
    if (from === null) return false
    if (to === null) return !changes.some((other) => takesPlace(other, one))
    const before = rankOf(scale, from)
    const after = rankOf(scale, to)
    return after === null || (before !== null && after < before)
  })
}

/**
 * Says that the level by which findings of a record count is lower, or that there is none any more; null: neither. One severity may
 * hide another: that of the record counts before those of its packages, and a vector of CVSS 4 has no level.
 */
export function loweredLevel(before: unknown, after: unknown): string | null {
  const { level: old } = severityOf(fieldsOf(before))
  const { level: now } = severityOf(fieldsOf(after))
  if (old === null) return null
  if (now === null) return `findings have no level any more, of ${old}`
  return LEVELS.indexOf(now) > LEVELS.indexOf(old) ? `findings are of level ${now}, and were of ${old}` : null
}

/** Whether a severity of another scale is there instead, and says that there is one. */
function takesPlace(other: SeverityChange, { package: named, scale }: SeverityChange): boolean {
  if (other.to === null || other.from !== null || other.scale === scale) return false
  const isSame = JSON.stringify(other.package) === JSON.stringify(named)
  return isSame && (rankOf(other.scale, other.to) ?? 0) > 0
}

/** A number by which severities of one scale are compared, 0 for none; null: it cannot be read. */
function rankOf(scale: string, text: string): number | null {
  if (scale === 'CVSS_V3') return cvss3Score(text)
  if (scale.startsWith('CVSS')) return vectorRank(text)
  const word = text.trim().toLowerCase()
  const number = Number(word)
  return WORDS.get(SYNONYMS.get(word) ?? word) ?? (word !== '' && number >= 0 ? number : null)
}

function vectorRank(vector: string): number | null {
  const metrics = vector.split('/').flatMap((part): [string, number][] => {
    const [name = '', value = ''] = part.split(':')
    const rank = value === '' ? -1 : (METRICS[name]?.indexOf(value) ?? -1)
    return rank < 0 ? [] : [[name, rank]]
  })
  if (metrics.length < 6) return null
  const impact = metrics.filter(([name]) => IMPACTS.includes(name))
  if (impact.every(([, rank]) => rank === 0)) return 0
  return metrics.reduce((sum, [, rank]) => sum + rank, 0)
}
