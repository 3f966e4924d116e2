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
export const FLEET_PAUSED = 'a rollback was published: nothing is synced until "patchmirror fleet rollback --end"'

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
  config: "Docker's settings file cannot be read",
  usage: 'a name of the catalog is none that it can have',
  storage: 'what it answers cannot be kept',
}

/** Returns why images in a registry are not known, by the code of the error. */
export function registryFault(problem: string): string {
  return REGISTRY_FAULTS[problem] ?? 'it answers with an error'
}

/** Says which images a registry has. */
export function registryWords({ images, there, missing, unknown, problem, checking }: RegistryStatus): string {
  const why = problem === null ? '' : ` (${registryFault(problem)}: see the log)`
  return [
    `${there} of ${counted(images, 'image')} there, ${missing} missing`,
    ...(unknown === 0 && why === '' ? [] : [`${unknown} not known${why}`]),
    ...(checking ? ['being checked'] : []),
  ].join(', ')
}
