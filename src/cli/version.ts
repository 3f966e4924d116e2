import { VERSION } from '../base/version.ts'
import type { Feature } from '../daemon/feature.ts'
import { MIRROR_SCHEMA } from '../store/database/schema/mirror.ts'
import { newestOf } from '../store/database/schema/schema.ts'
import { print, printJson } from './context.ts'

/** `patchmirror version`: the version; as JSON also the formats that it, with these features, reads and writes. */
export async function versionCommand(
  { json = false }: { json?: boolean },
  features: readonly Feature[],
): Promise<number> {
  const formats = await Promise.all(features.map(async (one) => one.formats?.()))
  if (json)
    printJson({
      version: VERSION,
      schema: newestOf(MIRROR_SCHEMA),
      ...Object.assign({}, ...formats),
      node: process.versions.node,
    })
  else print(VERSION)
  return 0
}
