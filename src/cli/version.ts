import { FORMAT } from '../features/bundles/format/manifest.ts'
import { VERSION } from '../base/version.ts'
import { MIGRATIONS } from '../store/database/migrations/mirror.ts'
import { print, printJson } from './context.ts'

/** `patchmirror version`: the version; as JSON also the formats that it reads and writes. */
export function versionCommand({ json = false }: { json?: boolean }): number {
  if (json)
    printJson({
      version: VERSION,
      schema: MIGRATIONS.length,
      bundleFormat: FORMAT,
      node: process.versions.node,
    })
  else print(VERSION)
  return 0
}
