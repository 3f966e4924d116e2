import { resolve } from 'node:path'
import { inspect } from 'node:util'
import { type CronPeriod, findContradictions } from './rules/contradictions.ts'
import { CONFIG_VARIABLE, readEnvironmentLayer, variable } from './environment.ts'
import { readDefaults } from './defaults.ts'
import { readFileLayer } from './file.ts'
import type { CheckContext } from './kinds/base.ts'
import { looksLikeCron } from './kinds/names.ts'
import { type Checked, type Layer, configError, describeFault } from './problems.ts'
import { checkTogether } from './rules/combinations.ts'
import type { Config } from './schema.ts'
import { maskSecret } from './kinds/keys.ts'
import { SECTIONS, SETTINGS } from './settings.ts'

/** What the program runs with, and where each value came from (by dotted key). */
export interface LoadedConfig {
  readonly config: Config
  readonly origins: ReadonlyMap<string, string>
  readonly warnings: readonly string[]
}

/** Where settings come from, and how much of them has to be there. */
export interface LoadOptions {
  /** The `--config` argument; without it the variable PATCHMIRROR_CONFIG counts. */
  readonly file?: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  /** Refuse a configuration without `upstream.apiRoot`; commands that only read need none. */
  readonly requireUpstream?: boolean
  /**
   * Whether a setting's file is used, such as a key or a certificate; without it every file has to be sound. A setting whose
   * file is not used and not sound keeps its default.
   */
  readonly needsFile?: (key: string) => boolean
  /** The scheduler's own parser; without it only the form of a cron expression is checked. */
  readonly validateCron?: (expression: string) => boolean
  /** The scheduler's own reading of how far apart runs are; without it that is not compared with `maxAgeHours`. */
  readonly cronPeriod?: CronPeriod
}

/**
 * Reads the defaults, the user's file over them and the environment over both. Every problem found
 * goes into one MirrorError('config'); secrets are never quoted.
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const layers = readLayers(options)
  const { cwd, validateCron = looksLikeCron, needsFile = () => true } = options
  const checked = checkValues(layers, { cwd, validateCron })
  const problems = [
    ...layers.flatMap((layer) => layer.problems),
    ...checked.problems,
    ...checked.unread.filter(({ key }) => needsFile(key)).map(({ problem }) => problem),
    ...checkTogether(checked, options.requireUpstream ?? false),
  ]
  if (problems.length > 0) throw configError(problems)
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...findContradictions(checked, options.cronPeriod)]
  return { config: buildConfig(checked), origins: checked.origins, warnings }
}

/** The shipped defaults, parsed once: they are part of the program. */
let defaults: Layer | null = null

function readLayers({ file, env, cwd }: LoadOptions): Layer[] {
  const path = file ?? variable(env, CONFIG_VARIABLE)
  const user = path === undefined ? [] : [resolve(cwd, path)]
  return [
    (defaults ??= readDefaults()),
    ...user.map((absolute) => readFileLayer(absolute, `file ${absolute}`)),
    readEnvironmentLayer(env, cwd),
  ]
}

/** Settings that name files which are read when the settings are checked. */
const FILES: ReadonlySet<string> = new Set([
  'upstream.caFile',
  'server.certFile',
  'server.keyFile',
  'server.linkSecretFile',
  'webhooks.certFile',
  'webhooks.keyFile',
  'bundle.signingKeys',
  'bundle.trustedKeys',
  'fleet.caFile',
  'catalog.trustRoot',
])

function checkValues(layers: readonly Layer[], context: CheckContext): Checked {
  const values = new Map<string, unknown>()
  const origins = new Map<string, string>()
  const unread = layers.flatMap((layer) => layer.unread ?? [])
  const refused = new Set<string>(unread.map(({ key }) => key))
  const problems: string[] = []
  const files = new Map<string, string>()
  for (const given of layers.flatMap((layer) => layer.given)) {
    const { key, setting } = given.setting
    const result = setting.check(given.raw, context)
    if ('fault' in result) {
      const problem = describeFault(given, result.fault)
      if (FILES.has(key) || given.file !== undefined) unread.push({ key, problem })
      else problems.push(problem)
      refused.add(key)
    } else {
      values.set(key, result.value)
      origins.set(key, given.origin)
      if (given.file !== undefined) files.set(key, given.file)
    }
  }
  return { values, origins, refused, problems, unread, files }
}

function buildConfig({ values, files }: Checked): Config {
  const sections = SECTIONS.map((section) => {
    const own = SETTINGS.filter((setting) => setting.section === section)
    const entries = own.map(({ key, name }) => [name, freeze(values.get(key))] as const)
    return [section, Object.freeze(conceal(section, Object.fromEntries(entries)))] as const
  })
  // Each value passed the check of the very table the type is derived from.
  const config: object = Object.fromEntries(sections)
  const followed = files.size === 0 ? {} : { secretFiles: Object.freeze(Object.fromEntries(files)) }
  return Object.freeze({ ...config, ...followed }) as unknown as Config
}

/** A section dumped by accident (in a log line, an assertion) shows no secret. Not enumerable, so it is no setting. */
function conceal(section: string, values: Record<string, unknown>): Record<string, unknown> {
  const secrets = SETTINGS.filter((one) => one.section === section && one.setting.secret)
  const shown = (): Record<string, unknown> => {
    const masks = secrets.map(({ name }) => [name, maskSecret(values[name])] as const)
    return { ...values, ...Object.fromEntries(masks) }
  }
  return Object.defineProperty(values, inspect.custom, { value: shown })
}

/** Settings are scalars or lists of scalars, so one level is deep enough. */
function freeze(value: unknown): unknown {
  return Array.isArray(value) ? Object.freeze(value) : value
}
