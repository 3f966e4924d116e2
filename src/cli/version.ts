import { VERSION } from '../base/version.ts'
import type { Feature } from '../daemon/feature.ts'
import { MIRROR_SCHEMA } from '../store/database/schema/mirror.ts'
import { newestOf } from '../store/database/schema/schema.ts'
import { printJson } from './context.ts'

/** `patchmirror --version --json`: prints the version, and the formats that it reads and writes with these features. */
export async function printVersion(features: readonly Feature[]): Promise<void> {
  const formats = await Promise.all(features.map(async (one) => one.formats?.()))
  printJson({
    version: VERSION,
    schema: newestOf(MIRROR_SCHEMA),
    ...Object.assign({}, ...formats),
    node: process.versions.node,
  })
}
