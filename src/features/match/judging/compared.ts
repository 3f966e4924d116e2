import type { Identity } from '../../../base/identity/identity.ts'
import type { Uncompared } from '../../scanners/records/affected.ts'
import type { Why } from './components.ts'
import type { RecordedEcosystems } from './package-source.ts'

/** How many records about a package were compared with its version, and the ids of others, with the reason. */
export interface Comparison {
  readonly compared: number
  readonly uncompared: ReadonlyMap<string, Uncompared>
}

/** Returns why the records that a mirror has can say nothing, or not everything, about a component; null when they can. */
export function whyPartly(
  identity: Pick<Identity, 'ecosystem' | 'version' | 'questions'>,
  source: RecordedEcosystems,
): Why | null {
  const { version, questions } = identity
  const { name, order } = identity.ecosystem
  if (!questions.some(({ ecosystem }) => source.hasEcosystem(ecosystem.name)))
    return { code: 'no_records', reason: `this mirror has no records of the ecosystem ${name}` }
  if (!questions.some(({ ecosystem }) => source.hasRelease(ecosystem.name)))
    return {
      code: 'partly_compared',
      reason: `this mirror has no records of ${name}: it was compared with those that name no release`,
    }
  if (order !== null && order.read(version) === null)
    return {
      code: 'version_not_ordered',
      reason: `${version.slice(0, 100)} is not a version as ${name} orders them: only records that list exactly this version were found`,
    }
  return null
}

/**
 * Returns why a component was not, or not wholly, compared with the records about its package, or that these may be about another
 * package; null when neither is so.
 */
export function whyUncompared(
  { ecosystem: { name }, doubt }: Pick<Identity, 'ecosystem' | 'doubt'>,
  { compared, uncompared }: Comparison,
): Why | null {
  if (uncompared.size === 0) return doubt === null ? null : { code: 'ambiguous', reason: doubt }
  const said = new Set(uncompared.values())
  const whys = REASONS.flatMap(([why, words]) => (said.has(why) ? [words(name)] : []))
  const which = compared === 0 ? 'no record' : 'not every record'
  return {
    code: compared === 0 ? 'not_compared' : 'partly_compared',
    reason: `${which} about its package can be compared with its version: ${whys.join('; ')}`,
  }
}

/** Why records are not compared, in the order in which the reasons are said. */
const REASONS: readonly (readonly [why: Uncompared, words: (ecosystem: string) => string])[] = [
  ['no_order', (ecosystem) => `no order of versions is known for ${ecosystem}`],
  ['version', (ecosystem) => `it is not a version as ${ecosystem} orders them`],
  ['commits', () => 'they name commits alone'],
  ['bounds', () => 'they name versions that cannot be read, or ranges without a first version, or with several ends'],
  ['no_versions', () => 'they name no versions'],
  ['epoch', () => 'the epoch of its source package is not known'],
  ['patch', () => 'a patch of its vendor alone puts it behind their fix, which what it patches lacks'],
  ['stream', () => 'it was built for a module, and their fixes may be of another stream of that'],
  ['open', (ecosystem) => `it names no single version of ${ecosystem}, and they tell those apart that it may be`],
]

/** Adds what was compared for another question about the same component. */
export function addComparison(one: Comparison, other: Comparison): Comparison {
  const uncompared = new Map([...one.uncompared, ...other.uncompared])
  return { compared: one.compared + other.compared, uncompared }
}

/** Nothing was compared: no record is about the package. */
export const NO_RECORDS: Comparison = { compared: 0, uncompared: new Map() }
