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
