import { readFileSync } from 'node:fs'

const MANIFEST = readManifest()

/** The program's version, from package.json, one level above both `src` and `dist`. */
export const VERSION = MANIFEST.version
/** The oldest Node.js that the program runs on, such as 22.19, and the versions of its libraries, from the same file. */
export const OLDEST_NODE = MANIFEST.engines.node.replace(/^>=/, '')
export const LIBRARY_VERSIONS = MANIFEST.dependencies

interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly dependencies: Readonly<Record<string, string>>
}

function readManifest(): Manifest {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return JSON.parse(text) as Manifest
}
