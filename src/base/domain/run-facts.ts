import { userInfo } from 'node:os'

/** Facts of a run that list the first of something, and the fact that counts all of it. */
export const LIST_COUNTS: Readonly<Partial<Record<string, string>>> = {
  lackingIds: 'lacking',
  linksLeftIds: 'linksLeft',
  removedIds: 'removed',
  plannedRemovedIds: 'plannedRemoved',
  contradictions: 'contradicted',
  doubtfulIds: 'doubts',
  doubtsBelowLimitsIds: 'doubtsBelowLimits',
  unusable: 'unusableEntries',
}

/** Facts of a partial run with the reasons of what is missing, each line as `name: reason`; subscriptions have their own. */
export const REASON_FACTS: readonly string[] = [
  'lackingIds',
  'incompleteLists',
  'unprovedLists',
  'failed',
  'unusable',
  'unverified',
]

/** The fact, 1, of a run that the package catalog refused because no credential was sent (`catalog.sendCredential`). */
export const NEEDS_CREDENTIAL = 'needsCredential'

/** Returns who runs this command, for the run log: the name of the operating system's user, `root (alice)` with sudo. */
export function operatorName(env: Readonly<Partial<Record<string, string>>> = process.env): string {
  const name = userName()
  const before = env['SUDO_USER'] ?? ''
  return name === 'root' && before !== '' ? `${name} (${before})` : name
}

/** A user of a container may have a number and no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`
  }
}
