import type { Config } from '../../config/schema.ts'
import type { ProblemCode } from '../../base/reports/problems.ts'
import type { Status } from '../../base/reports/status.ts'
import type { MirrorProblem } from '../../server/status/problem.ts'
import { problemsOf } from '../../server/status/problems.ts'
import { type Finding, failure, warning } from './check.ts'
import type { DoctorWorld } from './world.ts'

/** A check that says what the list of problems has. */
type ListedCheck =
  'boxes' | 'damage' | 'dates' | 'dead-letters' | 'edge' | 'fleet' | 'keys' | 'relay' | 'sources' | 'views'

/** The check that says it, for everything that the list of problems can have. */
const CHECKS: Readonly<Record<ProblemCode, ListedCheck>> = {
  storage: 'damage',
  damaged: 'damage',
  unreachable: 'sources',
  unauthorized: 'sources',
  no_credential: 'sources',
  run_failed: 'sources',
  age_unknown: 'sources',
  old: 'sources',
  empty: 'sources',
  first_run: 'sources',
  quarantined: 'sources',
  partial: 'sources',
  doubtful: 'sources',
  rejected: 'sources',
  unsynced: 'sources',
  scope_changed: 'sources',
  signatures: 'sources',
  future: 'dates',
  fleet: 'fleet',
  relay: 'relay',
  edge: 'edge',
  webhooks: 'dead-letters',
  outbox: 'boxes',
  inbox: 'boxes',
  registry: 'boxes',
  views: 'views',
  findings: 'views',
  secret_file: 'keys',
}

const SET_CLOCK =
  'Check the clock of this machine (NTP). If it is right, the date came from a machine whose clock was not, and this ends once that date has passed.'
const NEXT_SNAPSHOT =
  'Check the clock of this machine (NTP). If it is right, it was ahead when that was stored: the next snapshot with a change ends this.'
const LOOK_ABOVE =
  'The checks of the network and of the credential above name what to correct. The next runs try again.'

/** What to do about a problem, beside the commands that the list names. */
const HELP: Partial<Record<ProblemCode, string>> = {
  unreachable: LOOK_ABOVE,
  unauthorized: LOOK_ABOVE,
  no_credential:
    'Set catalog.sendCredential to true if upstream.catalogUrl may get the credential of upstream, and start the daemon again.',
  age_unknown: SET_CLOCK,
  future: NEXT_SNAPSHOT,
  run_failed: 'Correct what is named.',
  old: 'Keep a daemon running that syncs it, or bring newer bundles; otherwise raise the setting that is named.',
  empty: 'A daemon brings it by its schedule, or when a bundle arrives; the command does it now.',
  partial: 'Correct what is named; the next run tries again.',
  doubtful: 'The run has the records and what changed in them; to acknowledge it ends this warning.',
  rejected: 'To approve it undoes that.',
  unsynced:
    'Set what is named and start the daemon again, or, where the daemon has it, give this command the same settings. Until then this data only gets older.',
  fleet: 'Correct what is named; the mirror serves what it has and tries again by itself.',
  relay: 'Correct the receiver; the command tries it at once.',
  secret_file: 'Restore the file; the daemon reads it at once.',
}

/** Returns what the list of problems has for a check, as severe and in the same words. */
export function listedFindings(
  { now }: Pick<DoctorWorld, 'now'>,
  config: Config,
  status: Status | null,
  check: ListedCheck,
): Finding[] {
  return listedFor(check, status, config, now()).map(findingOf)
}

/** Returns the problems of the list that a check says. `now`: Unix milliseconds. */
export function listedFor(check: ListedCheck, status: Status | null, config: Config, now: number): MirrorProblem[] {
  if (status === null) return []
  return problemsOf(status, config, now).filter(({ code }) => CHECKS[code] === check)
}

/** Returns a problem as a finding. */
export function findingOf({ code, level, subject, text, detail, since, effect, advice }: MirrorProblem): Finding {
  const begun = since === null ? '' : `, since ${since}`
  const more = detail === null ? '' : ` (${detail})`
  const meaning = effect === null ? '' : `; ${effect}`
  const commands = advice.filter((command) => command !== 'patchmirror doctor').map((command) => `"${command}"`)
  const next = commands.length === 0 ? [] : [`Commands: ${commands.join(', ')}.`]
  const isOfClock = code === 'old' && next.length === 0 // the detail names what to set, and newer data would not help
  const action = [isOfClock ? [] : (HELP[code] ?? []), next].flat().join(' ')
  const make = level === 'failed' ? failure : warning
  return make(`${subject}: ${text}${begun}${more}${meaning}`, action === '' ? 'Correct what is named.' : action)
}
