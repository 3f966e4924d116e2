import { type Fields, eachObject, fieldsOf } from '../../base/json/objects.ts'
import { cvss2Score } from './cvss2.ts'
import { cvss4Score } from './cvss4.ts'

/** Levels of severity, the worst first. */
export const LEVELS = ['critical', 'high', 'medium', 'low', 'none'] as const

/** A level of severity. */
export type Level = (typeof LEVELS)[number]

/** The severity of a vulnerability as its record states it. */
export interface Severity {
  /** The higher one of the record's word and the class of its score; null: it states none. Everything counts by it. */
  readonly level: Level | null
  /** The level that the record says in a word; null: it says none. */
  readonly word: Level | null
  /** The class of the score; null: there is none. */
  readonly scoreLevel: Level | null
  /** Base score of a CVSS 3 or 4 vector, the highest of several; without one that of CVSS 2; null: there is none. */
  readonly score: number | null
  /** What the record says: types with vectors or words. */
  readonly stated: readonly { readonly type: string; readonly score: string }[]
}

/** Elements of `severity` that are read. */
const MOST = 20
/** Longest text of a severity, characters: far above any vector. */
const LONGEST = 300

/**
 * Returns the severity of a record: its own `severity`, else that of its affected packages, and the word in
 * `database_specific.severity`, else the worst of those that its packages have in fields of their own.
 */
export function severityOf(record: Fields): Severity {
  const own = statedIn(record)
  const packages = eachObject(record['affected'])
  const stated = own.length > 0 ? own : packages.flatMap(statedIn).slice(0, MOST)
  const { score, level: scoreLevel } = highestOf(stated) ?? { score: null, level: null }
  const words = [
    wordIn(record),
    ...stated.map(({ type, score }) => (type.startsWith('CVSS') ? null : levelNamed(score))),
  ]
  const said = words.find((level) => level !== null) ?? worstOf(packages.map(wordIn))
  return { level: worstOf([said, scoreLevel]), word: said, scoreLevel, score, stated }
}

/** The base score of a vector, and its class. */
interface Rating {
  readonly score: number
  readonly level: Level
  /** Whether the vector is of CVSS 2, which counts where there is none of a later version. */
  readonly isOld: boolean
}

/** Returns how one vector rates a vulnerability; null where it is none of CVSS 2 to 4. */
export function ratingOf({ type, score: vector }: Severity['stated'][number]): Rating | null {
  if (!type.startsWith('CVSS')) return null
  const score = cvss3Score(vector) ?? cvss4Score(vector)
  if (score !== null) return { score, level: levelOf(score), isOld: false }
  const old = cvss2Score(vector)
  return old === null ? null : { score: old, level: oldLevelOf(old), isOld: true }
}

function highestOf(stated: Severity['stated']): Rating | null {
  const [highest = null] = stated
    .flatMap((one) => ratingOf(one) ?? [])
    .sort((one, other) => Number(one.isOld) - Number(other.isOld) || other.score - one.score)
  return highest
}

function worstOf(levels: readonly (Level | null)[]): Level | null {
  return LEVELS.find((level) => levels.includes(level)) ?? null
}

/** The level in the fields of the database, or of the ecosystem. */
function wordIn(fields: Fields): Level | null {
  const places = [fields['database_specific'], fields['ecosystem_specific']].map(fieldsOf)
  // Debian's records have `urgency`
  return worstOf(places.flatMap(({ severity, urgency }) => [levelNamed(severity), levelNamed(urgency)]))
}

/** Reports whether the word of a record is of another level than its score. */
export function disagrees({ word, scoreLevel }: Severity): boolean {
  return word !== null && scoreLevel !== null && word !== scoreLevel
}

function statedIn({ severity, database_specific: own }: Fields): { type: string; score: string }[] {
  const stated = eachObject(severity).slice(0, MOST)
  return (stated.length > 0 ? stated : vectorIn(fieldsOf(own))).flatMap(({ type, score }) => {
    if (typeof type !== 'string' || typeof score !== 'string') return []
    return type.length + score.length > LONGEST ? [] : [{ type, score }]
  })
}

/** The vector that RustSec and old records of GitHub have in a field of their own. */
function vectorIn({ cvss }: Fields): Fields[] {
  const score = typeof cvss === 'string' ? cvss : fieldsOf(cvss)['vectorString']
  const [, version] = /^CVSS:([34])\./.exec(typeof score === 'string' ? score : '') ?? []
  return version === undefined ? [] : [{ type: `CVSS_V${version}`, score }]
}

function levelNamed(word: unknown): Level | null {
  if (typeof word !== 'string') return null
  const name = word.trim().toLowerCase()
  return LEVELS.find((level) => level === (SYNONYMS.get(name) ?? name)) ?? null
}

/** Words of databases for a level, beside those of CVSS. */
const SYNONYMS: ReadonlyMap<string, Level> = new Map([
  ['important', 'high'],
  ['minor', 'low'],
  ['moderate', 'medium'],
  ['negligible', 'low'],
  ['severe', 'high'],
  ['unimportant', 'low'],
])

/** The class of a score of CVSS 2, as the NVD has them: there is no worse one than high. */
function oldLevelOf(score: number): Level {
  if (score >= 7) return 'high'
  return score >= 4 ? 'medium' : 'low'
}

/** The qualitative rating of a score (CVSS 3.1 specification, section 5). */
function levelOf(score: number): Level {
  if (score >= 9) return 'critical'
  if (score >= 7) return 'high'
  if (score >= 4) return 'medium'
  return score > 0 ? 'low' : 'none'
}

/** Weights of the base metrics (CVSS 3.1 specification, section 7.4); PR by whether the scope changes. */
const WEIGHTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  AV: { N: 0.85, A: 0.62, L: 0.55, P: 0.2 },
  AC: { L: 0.77, H: 0.44 },
  UI: { N: 0.85, R: 0.62 },
  U: { N: 0.85, L: 0.62, H: 0.27 },
  C: { N: 0.85, L: 0.68, H: 0.5 },
  CIA: { H: 0.56, L: 0.22, N: 0 },
}

/** Returns the base score of a CVSS 3.0 or 3.1 vector; null for a text that is none. */
export function cvss3Score(vector: string): number | null {
  const [head = '', ...parts] = vector.trim().split('/')
  if (head !== 'CVSS:3.0' && head !== 'CVSS:3.1') return null
  const metrics = new Map(parts.map((part) => part.split(':') as [string, string]))
  const scope = metrics.get('S')
  const weight = (table: string, metric = table): number => WEIGHTS[table]?.[metrics.get(metric) ?? ''] ?? NaN
  const isChanged = scope === 'C'
  const impacts = ['C', 'I', 'A'].map((metric) => 1 - weight('CIA', metric))
  const iss = 1 - impacts.reduce((product, one) => product * one, 1)
  const impact = isChanged ? 7.52 * (iss - 0.029) - 3.25 * (iss - 0.02) ** 15 : 6.42 * iss
  const exploitability = 8.22 * weight('AV') * weight('AC') * weight(isChanged ? 'C' : 'U', 'PR') * weight('UI')
  const sum = isChanged ? 1.08 * (impact + exploitability) : impact + exploitability
  if (Number.isNaN(sum) || (scope !== 'U' && scope !== 'C')) return null
  return impact <= 0 ? 0 : roundUp(Math.min(sum, 10))
}

/** Rounds up to one decimal without the errors of binary fractions (CVSS 3.1 specification, appendix A). */
function roundUp(value: number): number {
  const whole = Math.round(value * 100_000)
  return whole % 10_000 === 0 ? whole / 100_000 : (Math.floor(whole / 10_000) + 1) / 10
}
