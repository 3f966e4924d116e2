import { MirrorError } from '../base/errors.ts'
import type { Config } from '../config/schema.ts'

/** Reports whether this mirror asks a service itself: a reader of a fleet does not, whatever is set. */
export function asksUpstream({ fleet, upstream }: Pick<Config, 'fleet' | 'upstream'>): boolean {
  return upstream.apiRoot !== null && !isReader(fleet)
}

function isReader({ url, role }: Config['fleet']): boolean {
  return url !== null && role === 'reader'
}

/** Throws `config` for a reader of a fleet: what it fetched itself would be replaced by the next generation, and never served. */
export function refuseReader({ fleet }: Pick<Config, 'fleet'>): void {
  if (!isReader(fleet)) return
  throw new MirrorError(
    'config',
    'fleet.role: reader: this mirror gets its data from fleet.url and never asks upstream. Run the command on the mirror that leads ' +
      '("patchmirror fleet status" names it)',
  )
}
