import { FIXED } from '../../src/config/fixed.ts'
import { type LoadOptions, type LoadedConfig, loadConfig } from '../../src/config/load.ts'

type Figures = Record<string, Record<string, unknown>>

const USUAL = structuredClone(FIXED)

/** The entry of an environment that changes a constant for a test: LIMIT_UPSTREAM_RETRIES for `FIXED.upstream.retries`. */
function entryOf(section: string, name: string): string {
  return `LIMIT_${section}_${name.replace(/[A-Z]/g, (letter) => `_${letter}`)}`.toUpperCase()
}

/** Gives the constants of this process the values that an environment has for a test, and the usual ones otherwise. */
export function applyLimits(env: Readonly<Record<string, string | undefined>>, fixed: object = FIXED): void {
  const known = new Set<string>()
  for (const [section, usual] of Object.entries<Record<string, unknown>>(USUAL))
    for (const [name, value] of Object.entries(usual)) {
      const entry = entryOf(section, name)
      known.add(entry)
      const given = env[entry]
      const figures = (fixed as Figures)[section] ?? {}
      figures[name] = given === undefined ? value : valueLike(value, given)
    }
  const unknown = Object.keys(env).find((name) => name.startsWith('LIMIT_') && !known.has(name))
  if (unknown !== undefined) throw new Error(`${unknown} names no constant`)
}

/** The entry of an environment that a name stands for: of a constant, or else of a setting. */
export function namedEntry(name: string): string {
  const limit = `LIMIT_${name}`
  const isFixed = Object.entries<object>(USUAL).some(([section, figures]) =>
    Object.keys(figures).some((figure) => entryOf(section, figure) === limit),
  )
  return isFixed ? limit : `PATCHMIRROR_${name}`
}

/** Reads a text as a value of the same type. */
function valueLike(usual: unknown, text: string): unknown {
  if (typeof usual === 'number') return Number(text)
  return typeof usual === 'boolean' ? text === 'true' : text
}

/** Loads settings as the program does, with the constants that the environment has for a test. */
export function loadQuick(options: LoadOptions): LoadedConfig {
  applyLimits(options.env)
  try {
    return loadConfig(options)
  } finally {
    applyLimits({})
  }
}
