import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { sha256Hex } from '../base/digest.ts'
import { systemCode } from '../base/errors.ts'
import { readFileLayer } from './file.ts'
import type { Layer } from './problems.ts'
import { SETTINGS } from './settings.ts'

/** The shipped defaults; `src` and `dist` both are one level below the package root. */
const FILE = fileURLToPath(new URL('../../config/default.yaml', import.meta.url))
/** What the build made of them: a command that reads it does not load the parser of YAML, and is 40 ms faster. */
const PARSED = fileURLToPath(new URL('./defaults.json', import.meta.url))
const ORIGIN = 'default'

/** The defaults as parsed, and of which file: SHA-256, hex. */
interface ParsedDefaults {
  readonly sha256: string
  /** By dotted key. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Reads the shipped defaults: as the build parsed them, unless there was no build, or the file is another since. */
export function readDefaults(file = FILE, parsed = PARSED): Layer {
  const found = readParsed(parsed)
  return found !== null && found.sha256 === digestOf(file) ? toLayer(found) : readFileLayer(file, ORIGIN)
}

/** Returns the content of the file that `readDefaults` prefers; for the build. Throws where the defaults cannot be read. */
export function parsedDefaults(file = FILE): string {
  const { given, problems } = readFileLayer(file, ORIGIN)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const values = given.map(({ setting, raw }) => [setting.key, raw])
  const parsed = { sha256: digestOf(file), values: Object.fromEntries(values) as object }
  return `${JSON.stringify(parsed)}\n`
}

function readParsed(path: string): ParsedDefaults | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ParsedDefaults
  } catch (error) {
    if (error instanceof SyntaxError || systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Null for a file that cannot be read. */
function digestOf(file: string): string | null {
  try {
    return sha256Hex(readFileSync(file))
  } catch {
    return null // reading its settings says why
  }
}

function toLayer({ values }: ParsedDefaults): Layer {
  const given = SETTINGS.filter(({ key }) => Object.hasOwn(values, key)).map((setting) => ({
    setting,
    raw: values[setting.key],
    origin: ORIGIN,
    where: ORIGIN,
  }))
  return { given, problems: [], warnings: [] }
}
