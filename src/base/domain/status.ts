import type { FleetStatus } from '../reports/fleet.ts'
import type { RegistryStatus } from '../reports/transfer.ts'
import { counted } from '../text.ts'

/*
 * Words on parts of the status that several places say.
 */

/** Says how many VEX documents views lack, and which command fetches them again. */
export function describeUnread(unread: number): string {
  const what = unread === 1 ? '1 document is' : `${unread} documents are`
  return `${what} damaged and missing: patchmirror doctor --data --repair`
}

/** What an operator reads while a rollback stops all syncs. */
export const FLEET_PAUSED = 'a rollback was begun: nothing is synced until "patchmirror fleet rollback --end"'

/** What is said of the leader of a fleet while the lease was not read. */
export const LEADER_UNKNOWN = 'which mirror leads is not known'

/** Whether a mirror that names no leader has not read the lease: before its first look, and while the store does not answer. */
export function isLeaderUnknown({ leads, leader, failing, served }: FleetStatus): boolean {
  if (leads || leader !== null) return false
  return failing === null ? served === 0 : failing.refused === null
}

/** Says why a mirror names no leader. */
export function describeLeaderless(fleet: FleetStatus): string {
  return isLeaderUnknown(fleet) ? LEADER_UNKNOWN : 'no mirror has the lease, or the store has none'
}

/** A target of the relay, as far as it may be shown. */
interface ShownTarget {
  readonly id: number
  /** As `relay.targets` names it; null: it has no name there. */
  readonly name: string | null
  /** Scheme and host; null: not shown. */
  readonly target: string | null
}

/** Returns what a target is called: its name, else its host, else its number where the host is not shown. */
export function nameOfTarget({ id, name, target }: ShownTarget): string {
  if (name !== null) return name
  return target === null ? `#${id}` : new URL(target).host
}

/** Returns what `patchmirror relay --enable` is given for a target: the host may be that of several. */
export function handleOfTarget({ id, name }: Omit<ShownTarget, 'target'>): string {
  return name ?? String(id)
}

/** Why a registry does not say of an image whether it has it. */
const REGISTRY_FAULTS: Readonly<Record<string, string>> = {
  upstream_unreachable: 'it does not answer',
  upstream_auth: 'it refuses access',
  upstream_not_found: 'it does not answer as a registry',
  upstream_shape: 'it does not answer as a registry',
  offline: 'serve --offline asks no registry',
  config: "Docker's settings file cannot be read",
  usage: 'a name of the catalog is none that it can have',
  storage: "the mirror's own disk does not keep what it answers",
}

/** Returns why images in a registry are not known, by the code of the error. */
export function registryFault(problem: string): string {
  return REGISTRY_FAULTS[problem] ?? (problem.startsWith('upstream_') ? 'it answers with an error' : OWN_FAULT)
}

const OWN_FAULT = 'the mirror itself failed to check it'

/** Whether a registry was asked for any image yet. */
export function isRegistryAsked({ images, unknown, problem, checkedAt }: RegistryStatus): boolean {
  return checkedAt !== null || unknown < images || (problem !== null && images > 0)
}

/** Says which images a registry has. */
export function registryWords(registry: RegistryStatus): string {
  const { images, there, missing, unknown, problem, incomplete, checking } = registry
  const log = problem === 'offline' ? '' : ': see the log'
  const why = problem === null ? '' : ` (${registryFault(problem)}${log})`
  const now = checking ? ['being checked'] : []
  if (!isRegistryAsked(registry)) return [`not checked yet${why}`, ...now].join(', ')
  return [
    `${there} of ${counted(images, 'image')} there, ${missing} missing`,
    ...(unknown === 0 && why === '' ? [] : [`${unknown} not known${why}`]),
    ...(incomplete === null ? [] : [`the list of images is not known to be complete (${incomplete})`]),
    ...now,
  ].join(', ')
}
