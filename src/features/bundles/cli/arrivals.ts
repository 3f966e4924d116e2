import { inboxFolder } from '../../../config/kinds/inbox.ts'
import type { Config } from '../../../config/schema.ts'
import { messageOf, systemCode } from '../../../base/errors.ts'
import { listArrivals } from '../boxes/inbox-files.ts'

/** Returns a line for each bundle in the inbox where no daemon answers: its report would have them. */
export function describeArrivals(config: Config): string[] {
  const folder = inboxFolder(config)
  if (folder === null) return []
  try {
    return listArrivals(folder).map(({ name }) => `inbox: ${name} waits: no daemon answers that would look at it`)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [] // a daemon makes it, or reports that it is gone
    return [`inbox: it cannot be looked into: ${messageOf(error)}`]
  }
}
