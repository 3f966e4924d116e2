import { MirrorError } from '../base/errors.ts'
import type { Config } from '../config/schema.ts'

/** Throws `config` for a reader of a fleet: what it fetched itself would be replaced by the next generation, and never served. */
export function refuseReader({ fleet }: Pick<Config, 'fleet'>): void {
  if (fleet.url === null || fleet.role !== 'reader') return
  throw new MirrorError(
    'config',
    'fleet.role: reader: this mirror gets its data from fleet.url and never asks upstream. Run the command on the mirror that leads ' +
      '("patchmirror fleet status" names it)',
  )
}
