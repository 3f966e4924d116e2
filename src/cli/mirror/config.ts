import { formatConfig } from '../../config/describe.ts'
import { type GlobalOptions, print, settings } from '../runner.ts'

/** `patchmirror config`: the settings in force, secrets masked, and where each came from. */
export function configCommand(options: GlobalOptions & { json?: boolean }): number {
  print(formatConfig(settings(options, false), { json: options.json === true }))
  return 0
}
