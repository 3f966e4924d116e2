import type { Config } from '../../../config/schema.ts'
import { messageOf, systemCode } from '../../../base/errors.ts'
import { listArrivals } from '../boxes/inbox-files.ts'

/** Returns a line for each bundle in the inbox where no daemon answers: its report would have them. */
export function describeArrivals({ bundle }: Config): string[] {
  if (bundle.inbox === null) return []
  try {
    return listArrivals(bundle.inbox).map(({ name }) => `inbox: ${name} waits: no daemon answers that would look at it`)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [] // the daemon makes it
    return [`inbox: it cannot be looked into: ${messageOf(error)}`]
  }
}
