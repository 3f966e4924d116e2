import { problemsOf } from '../../server/status/problems.ts'
import { judgeReadiness } from '../../server/status/readiness.ts'
import type { Status } from '../../base/reports/status.ts'
import type { Config } from '../../config/schema.ts'
import { counted } from '../../base/text.ts'
import { ownsResource } from '../../base/domain/resources.ts'
import { REASON_FACTS } from '../../base/domain/run-facts.ts'
import { type SourceName, activeSources, servedSources } from '../../base/domain/sources.ts'
import { openReader } from '../../store/database/open.ts'
import { type Reads, createReads } from '../../store/reads.ts'
import { refusedBy } from '../../store/runs/quarantine.ts'
import { findDoubtful, findRejected, heldBack } from '../../store/runs/rejected.ts'
import type { Run, RunFacts } from '../../store/runs/runs.ts'
import { type DoctorCheck, type Finding, failure, fine, skipped, warning, worst } from './check.ts'
import { ON_THE_WAY } from './network/service.ts'
import { isFillable } from './program.ts'
import type { DoctorWorld } from './world.ts'

/** Creates the check of what is mirrored: how the last runs ended, and how old each source is. */
export function sourceChecks(world: DoctorWorld, config: Config): DoctorCheck[] {
  return [
    {
      name: 'sources',
      title: 'last run and age of each source',
      needs: [...ON_THE_WAY, 'service', 'credential', 'database', 'schema'],
      run: () => sources(world, config),
    },
    {
      name: 'dates',
      title: 'dates of the newest snapshots',
      needs: ['clock', 'database', 'schema'],
      run: () => dates(world, config),
    },
  ]
}

/** Finds snapshots that were stored at a time that is still to come. */
async function dates(world: DoctorWorld, config: Config): Promise<Finding> {
  const status = await world.readStatus(config)
  if (status === null) return skipped('nothing is mirrored yet')
  const problems = problemsOf(status, config, world.now()).filter(({ code }) => code === 'future')
  const found = problems.map(({ subject, text, detail }) =>
    warning(`${subject}: ${text}. ${detail ?? ''}`, CHECK_CLOCK),
  )
  return worst(found, fine('no snapshot lies in the future'))
}

/** Finds what `patchmirror status` exits with something other than 0 for, but for a source that was never synced. */
async function sources(world: DoctorWorld, config: Config): Promise<Finding> {
  const status = await world.readStatus(config)
  const db = openReader(config.data.dir)
  if (status === null || db === null) return skipped('nothing is mirrored yet')
  try {
    const reads = createReads(db)
    const stored = (name: SourceName): boolean =>
      status.sources.some((one) => one.name === name && one.snapshot !== null)
    const served = servedSources(config, stored)
    const all = problemsOf(status, config, world.now())
    const shared = all.filter(({ code }) => SHARED.includes(code))
    const covered = new Set(shared.flatMap(({ subject }) => subject.split(', ')))
    const findings = served.flatMap((name) => {
      if (covered.has(name)) return []
      const last = ofRun(config, name, status, reads)
      // The last run may be the doubtful one, and is named once.
      const doubts = ofDoubts(name, reads, world.now()).filter(({ found }) => !last.found.startsWith(found))
      return [last, ...doubts, ...ofForbidden(name, reads), ...ofAge(config, name, status)]
    })
    const unsynced = status.sources.flatMap(({ name, unsynced: why }) =>
      why ? [warning(`${name}: ${why}`, SET_IT)] : [],
    )
    const rescoped = all
      .filter(({ code }) => code === 'scope_changed')
      .map(({ subject, detail, advice }) => warning(`${subject}: ${detail ?? ''}`, `Run it: "${advice.join()}".`))
    const isEmpty = !status.sources.some(({ snapshot }) => snapshot !== null)
    // Where nothing can fill it, the check of the settings says so.
    const nothing = isEmpty && isFillable(config) ? [warning('nothing is mirrored yet', firstRun(config))] : []
    return worst(
      [...nothing, ...shared.map(ofCause), ...findings, ...unsynced, ...rescoped],
      skipped('nothing is mirrored yet'),
    )
  } finally {
    db.close()
  }
}

/** Causes that several sources have in common: one finding each. */
const SHARED: readonly string[] = ['unreachable', 'unauthorized']

type Cause = ReturnType<typeof problemsOf>[number]

function ofCause({ subject, text, detail, since, effect }: Cause): Finding {
  const begun = since === null ? '' : ` since ${since}`
  const found = `${subject}: ${text}${begun} (${detail ?? 'no message'}); ${effect ?? ''}`
  return failure(found, ABOVE)
}

const ABOVE = 'The checks of the network and of the credential above name what to correct. The next runs try again.'

const SET_IT =
  'Set what is named and start the daemon again, or, where the daemon has it, give this command the same settings. Until then this data only gets older.'

const CHECK_CLOCK =
  'Check the clock of this machine (NTP). If it is right, this ends with the next snapshot, or once that time has passed.'

/** Warns of doubtful changes that a run of the last 24 hours published, also when later runs were complete. */
function ofDoubts(name: SourceName, reads: Reads, now: number): Finding[] {
  const run = findDoubtful(reads, name, now)
  if (run === null) return []
  const said = `run ${run.id} of ${name} is ${run.state}: ${run.message ?? 'no message'}`
  return [warning(said, seeDoubts(run))]
}

function seeDoubts({ id }: Run): string {
  return `See "patchmirror runs ${id}" for the records and what changed in them; "patchmirror approve ${id}" ends this warning.`
}

/** Says how the runs ended that the state of a source comes from. */
function ofRun(config: Config, name: SourceName, { sources }: Status, reads: Reads): Finding {
  const state = sources.find((source) => source.name === name)?.state ?? 'never'
  const run = reads.runs.readResults(name).find((one) => one.state === state) ?? null
  if (state === 'stopped') return fine(`${name}: the last run was stopped; the next one does what it was to do`)
  if (run === null) return fine(`${name}: ${state === 'never' ? 'not mirrored yet' : state}`)
  const said = `run ${run.id} of ${name} is ${state}: ${run.message ?? 'no message'}`
  const again = activeSources(config).includes(name)
    ? `The next run tries again: "patchmirror sync ${name}".`
    : 'Get it complete on the source mirror, and bring another bundle from there.'
  if (state === 'failed') return failure(said, `Correct what is named. ${again}`)
  const rejected = findRejected(reads, name)
  if (state === 'quarantined' && rejected !== null)
    return warning(
      `run ${rejected.runId} of ${name} was rejected; ${heldBack(rejected)}`,
      `"patchmirror approve ${rejected.runId}" undoes that.`,
    )
  if (state === 'quarantined') {
    const first = refusedBy(run)
    return warning(
      said,
      `See "patchmirror runs ${first}", then "patchmirror approve ${first}" or "patchmirror reject ${first}".`,
    )
  }
  const isUndecided = run.kind !== 'approve' && run.facts['decision'] === undefined
  const isDoubtful = isUndecided && run.facts['doubts'] !== undefined
  if (state === 'complete' && isDoubtful) return warning(said, seeDoubts(run))
  if (state !== 'partial') return fine(`${name}: ${state}`)
  const reasons = reasonsOf(run.facts)
  if (reasons.length === 0 && isOnlySubscriptions(run)) return fine(`${name}: partial, see subscriptions`)
  const such = reasons.length === 0 ? '' : `; such as ${reasons.join('; ')}`
  return warning(`${said}${such}`, `Correct what is named; "patchmirror runs ${run.id}" lists more of it. ${again}`)
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

/** Says how an empty mirror gets its first data. */
function firstRun(config: Config): string {
  if (config.fleet.url !== null) return 'It comes from the mirror that leads: "patchmirror fleet status".'
  return activeSources(config).length > 0
    ? 'A daemon syncs by its schedule; "patchmirror sync" does it now.'
    : 'It comes in a full bundle: "patchmirror bundle import FILE".'
}

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

/** Warns of a source whose data is older than its setting allows. */
function ofAge(config: Config, name: SourceName, status: Status): Finding[] {
  const { sources } = judgeReadiness(status, config, [name])
  return sources
    .filter(({ ready }) => !ready && status.sources.some((one) => one.name === name && one.asOf !== null))
    .map(({ reason }) => warning(`${name} is ${reason}`, renewal(name, status)))
}

function renewal(name: SourceName, { sources }: Status): string {
  return sources.find((source) => source.name === name)?.ageSeconds === null
    ? 'Set the clock of this machine (NTP). If it is right, the date came from a machine whose clock was not, and the age is known again once that date has passed.'
    : `Keep a daemon running that syncs it, or bring newer bundles; otherwise raise ${name}.maxAgeHours.`
}
