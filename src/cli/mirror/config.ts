import { formatConfig } from '../../config/describe.ts'
import { settingsSchema } from '../../config/json-schema.ts'
import type { Config } from '../../config/schema.ts'
import { ConfigError } from '../../config/problems.ts'
import { type GlobalOptions, print, printJson, settings } from '../context.ts'

/** `patchmirror config`: the settings in force, secrets masked, and where each came from. */
export function configCommand(options: GlobalOptions & { json?: boolean }): number {
  print(formatConfig(settings(options, false), { json: options.json === true }))
  return 0
}

/** `patchmirror config --check FILE`: all problems of a file of settings, with the environment over it. Exit 2 for any. */
export function checkConfigCommand({ check: file, json }: { check: string; json?: boolean }): number {
  try {
    const { config, warnings } = settings({ config: file }, false)
    if (json === true) printJson({ file, problems: [], warnings })
    else print(`${file}: no problem in the settings${sourceNote(config)}`)
    return 0
  } catch (error) {
    if (json !== true || !(error instanceof ConfigError)) throw error
    printJson({ file, problems: error.problems, warnings: [] })
    return 2
  }
}

/** What a mirror with these settings alone has no data from; empty where there is a source. */
function sourceNote({ upstream, bundle, fleet }: Config): string {
  const hasSource = upstream.apiRoot !== null || bundle.inbox !== null || fleet.url !== null
  return hasSource ? '' : '; they name no source: set upstream.apiRoot, bundle.inbox or fleet.url, or import a bundle'
}

/** `patchmirror config --schema`: the JSON Schema of a file of settings. */
export function configSchemaCommand(_options: GlobalOptions): number {
  printJson(settingsSchema())
  return 0
}
