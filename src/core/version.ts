import { readFileSync } from 'node:fs'

/** The program's version, from package.json, one level above both `src` and `dist`. */
export const VERSION = readVersion()

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  return version
}
