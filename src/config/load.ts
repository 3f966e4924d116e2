import { resolve } from 'node:path'
import { inspect } from 'node:util'
import { whyUnreadable } from '../base/errors.ts'
import { type CronPeriod, findContradictions } from './rules/contradictions.ts'
import { readDefaults } from './defaults.ts'
import { derive } from './derived.ts'
import { readFileLayer } from './file.ts'
import type { CheckContext } from './kinds/base.ts'
import { looksLikeCron } from './kinds/names.ts'
import { type Checked, type GivenSettings, type Layer, type Unread, configError, describeFault } from './problems.ts'
import { checkTogether } from './rules/combinations.ts'
import type { Config } from './schema.ts'
import { maskSecret } from './kinds/keys.ts'
import { ENV_PREFIX, type NamedSetting, SECTIONS, SETTINGS } from './settings.ts'
import { isKeyMaterial } from './kinds/pem-files.ts'
import { isEmpty, secretText } from './secret-files.ts'
import { suggestSetting } from './suggest.ts'
import type { Values } from './table.ts'
import type { Environment } from './proxies.ts'

/** What the program runs with, and where each value came from (by dotted key). */
export interface LoadedConfig {
  readonly config: Config
  readonly origins: ReadonlyMap<string, string>
  readonly warnings: readonly string[]
  /** Problems of settings whose file is not used: they have their default. */
  readonly unread: readonly string[]
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
  const problemsOf = (some: readonly Unread[]): string[] => some.map(({ problem }) => problem)
  const needed = problemsOf(checked.unread.filter(({ key }) => needsFile(key)))
  const unread = problemsOf(checked.unread.filter(({ key }) => !needsFile(key)))
  const problems = [
    ...layers.flatMap((layer) => layer.problems),
    ...checked.problems,
    ...needed,
    ...checkTogether(checked, options.requireUpstream ?? false),
  ]
  if (problems.length > 0) throw configError(problems)
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...findContradictions(checked, options.cronPeriod)]
  return { config: buildConfig(checked), origins: checked.origins, warnings, unread }
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
      const earlier = values.get(key)
      const joined = earlier === undefined ? undefined : setting.merge?.(earlier, result.value)
      values.set(key, joined ?? result.value)
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
    return [section, Object.fromEntries(entries)] as const
  })
  // Each value passed the check of the very table the type is derived from.
  const derived = new Map<string, object>(Object.entries(derive(Object.fromEntries(sections) as unknown as Values)))
  const settings = new Map<string, object>(sections)
  const names = new Set([...settings.keys(), ...derived.keys()])
  const whole = [...names].map((section) => {
    const all = { ...settings.get(section), ...derived.get(section) }
    return [section, Object.freeze(conceal(section, all))] as const
  })
  const config: object = Object.fromEntries(whole)
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

/** Settings are scalars, or lists or maps of scalars, so one level is deep enough. */
function freeze(value: unknown): unknown {
  return Object.freeze(value)
}

/** The variable that names the configuration file. */
const CONFIG_VARIABLE = 'PATCHMIRROR_CONFIG'

const LINK = /^(tcp|udp|sctp):\/\//
const LINK_NAME = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/

/** The value of a variable; the empty string counts as not set. */
function variable(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

/** Reads the settings given as PATCHMIRROR_… variables, and secrets from the files that …_FILE names. */
function readEnvironmentLayer(env: Environment, cwd: string): Layer {
  const given: GivenSettings[] = []
  const unread: Unread[] = []
  const problems = Object.keys(env).flatMap((name) => unknownVariable(env, name))
  for (const setting of SETTINGS) {
    const found = readSetting(env, cwd, setting)
    if (typeof found === 'string') problems.push(found)
    else if (found !== null && 'problem' in found) unread.push(found)
    else if (found !== null) given.push(found)
  }
  return { given, problems, unread, warnings: [] }
}

/** A value, a problem as text, or null when the environment has none. */
function readSetting(env: Environment, cwd: string, setting: NamedSetting): GivenSettings | Unread | string | null {
  const text = variable(env, setting.env)
  const path = setting.fileEnv === null ? undefined : variable(env, setting.fileEnv)
  if (setting.fileEnv !== null && path !== undefined)
    return text === undefined
      ? readSecretFile(setting, setting.fileEnv, path, cwd)
      : `${setting.key}: both ${setting.env} and ${setting.fileEnv} are set; keep one`
  if (text === undefined) return null
  const origin = `env ${setting.env}`
  return { setting, raw: setting.setting.fromText(text), origin, where: origin }
}

function readSecretFile(setting: NamedSetting, name: string, given: string, cwd: string): GivenSettings | Unread {
  const path = resolve(cwd, given)
  const { key, env } = setting
  const origin = `secret file ${path} (env ${name})`
  try {
    const text = secretText(path)
    if (isEmpty(setting.setting, text)) return { key, problem: `${key} (${origin}): the file is empty` }
    return { setting, raw: setting.setting.fromText(text), origin, where: origin, file: path }
  } catch (error) {
    if (isKeyMaterial(given))
      return {
        key,
        problem: `${key} (env ${name}): the value (not shown) may be the secret itself: give the path of a file that has it, or set ${env}`,
      }
    return { key, problem: `${key} (${origin}): the file cannot be read: ${whyUnreadable(error)}` }
  }
}

/** A complaint about a variable with our prefix that names nothing of ours, as a list of none or one. */
function unknownVariable(env: Environment, name: string): string[] {
  const value = variable(env, name)
  if (!name.startsWith(ENV_PREFIX) || name === CONFIG_VARIABLE || value === undefined) return []
  if (SETTINGS.some((setting) => setting.env === name || setting.fileEnv === name)) return []
  if (isServiceLink(name, value)) return []
  const owner = SETTINGS.find(({ env: known }) => name === `${known}_FILE`)
  if (owner !== undefined)
    return [`${name}: ${owner.key} is not secret, so it cannot come from a file; use ${owner.env}`]
  const near = suggestSetting(name.slice(ENV_PREFIX.length))
  const meant = name.endsWith('_FILE') ? near?.fileEnv : null
  const hint = near === null ? '' : `; did you mean ${meant ?? near.env}?`
  return [`${name}: unknown environment variable${hint}`]
}

/** Kubernetes adds these to every pod in the namespace of a service called patchmirror or patchmirror-…. */
function isServiceLink(name: string, value: string): boolean {
  return LINK_NAME.test(name) || (name.endsWith('_PORT') && LINK.test(value))
}
