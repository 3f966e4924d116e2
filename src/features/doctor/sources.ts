import type { MirrorProblem } from '../../server/status/problem.ts'
import { counted } from '../../base/text.ts'
import { ownsResource } from '../../base/domain/resources.ts'
import { REASON_FACTS } from '../../base/domain/run-facts.ts'
import { SOURCES, type SourceName } from '../../base/domain/sources.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import { type Reads, withReads } from '../../store/reads.ts'
import type { Run, RunFacts } from '../../store/runs/runs.ts'
import { type Finding, fine, skipped, warning, worst } from './check.ts'
import { findingOf, listedFindings, listedFor } from './listed.ts'
import type { Examined } from './world.ts'

const NOTHING = 'nothing is mirrored yet'

/** Looks whether a snapshot lies in the future. */
export function dates(examined: Examined): Promise<Finding> {
  return listed(examined, 'dates', 'no snapshot lies in the future')
}

/** Returns what the last verification found. */
export function damage(examined: Examined): Promise<Finding> {
  return listed(examined, 'damage', 'none is known; "patchmirror doctor --data" checks the contents')
}

async function listed({ world, config }: Examined, check: 'dates' | 'damage', sound: string): Promise<Finding> {
  const status = await world.readStatus(config)
  if (status === null) return skipped(NOTHING)
  return worst(listedFindings(world, config, status, check), fine(sound))
}

/** Says what is wrong with the sources, and what only the database has: reasons of a partial run, and refused paths. */
export async function sources({ world, config }: Examined): Promise<Finding> {
  const status = await world.readStatus(config)
  if (status === null) return skipped(NOTHING)
  const found = withReads(config.data.dir, (reads) => {
    const problems = listedFor('sources', status, config, world.now())
    const named = new Set(problems.flatMap(({ subject }) => subject.split(', ')))
    const sound = status.sources.filter(({ name }) => !named.has(name)).map(soundSource)
    return [
      ...problems.flatMap((one) => ofProblem(one, reads)),
      ...status.sources.flatMap(({ name }) => ofForbidden(name, reads)),
      ...sound,
    ]
  })
  return worst(found ?? [], skipped(NOTHING))
}

function soundSource({ name, state }: SourceStatus): Finding {
  return fine(
    state === 'stopped'
      ? `${name}: the last run was stopped; the next one does what it was to do`
      : `${name}: ${state}`,
  )
}

/** Adds the reasons that a partial run recorded; where these are subscriptions alone, another check names them. */
function ofProblem(problem: MirrorProblem, reads: Reads): Finding[] {
  const finding = findingOf(problem)
  const name = SOURCES.find((one) => one === problem.subject)
  if (problem.code !== 'partial' || name === undefined) return [finding]
  const run = reads.runs.readResults(name).find(({ state }) => state === 'partial')
  if (run === undefined) return [finding]
  const reasons = reasonsOf(run.facts)
  if (reasons.length > 0) return [{ ...finding, found: `${finding.found}; such as ${reasons.join('; ')}` }]
  return isOnlySubscriptions(run) ? [fine(`${name}: partial, see subscriptions`)] : [finding]
}

/** Paths that are named of those that the service refuses. */
const MOST_PATHS = 5

/** Warns of the paths that the service refuses to the credential: every sync asks for them again. */
function ofForbidden(name: SourceName, { catalog }: Reads): Finding[] {
  const paths = catalog
    .listForbiddenPaths()
    .flatMap(({ path, resource }) => (ownsResource(name, resource) ? [path] : []))
  if (name === 'feeds' || name === 'osv' || paths.length === 0) return []
  const first = paths.slice(0, MOST_PATHS).join(', ')
  const rest = paths.length > MOST_PATHS ? `, and ${paths.length - MOST_PATHS} more` : ''
  const found = `${name}: the service refuses ${counted(paths.length, 'path')} to the credential (403): ${first}${rest}`
  return [warning(found, ALLOW)]
}

const ALLOW =
  'Allow the account of the credential to read them at the service. Until then they are answered with 403, and every sync asks again.'

/** Reports whether nothing but subscriptions makes a run partial: another check names these. */
function isOnlySubscriptions({ facts }: Run): boolean {
  return facts['subscriptionsUnderstood'] !== undefined && facts['leftAlone'] === undefined
}

/** Different reasons that are named. */
const MOST_REASONS = 3

/** Returns the first line of each different reason that a run recorded. */
function reasonsOf(facts: RunFacts): string[] {
  const lines = REASON_FACTS.flatMap((name) => facts[name] ?? []).filter((line) => typeof line === 'string')
  const first = new Map<string, string>()
  for (const line of lines) {
    const reason = line.slice(line.indexOf(': ') + 1)
    if (!first.has(reason)) first.set(reason, line)
  }
  return [...first.values()].slice(0, MOST_REASONS)
}
