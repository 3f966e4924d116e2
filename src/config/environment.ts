import { resolve } from 'node:path'
import { whyUnreadable } from '../base/errors.ts'
import { isKeyMaterial } from './kinds/pem-files.ts'
import type { GivenSettings, Layer, Unread } from './problems.ts'
import { secretText } from './secret-files.ts'
import { type NamedSetting, ENV_PREFIX, SETTINGS } from './settings.ts'
import { suggestSetting } from './suggest.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The variable that names the configuration file. */
export const CONFIG_VARIABLE = 'PATCHMIRROR_CONFIG'

const LINK = /^(tcp|udp|sctp):\/\//
const LINK_NAME = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/
const LINK_HINT =
  'This looks like a Kubernetes service link: set enableServiceLinks: false on the pod, or rename the service.'

/** The value of a variable; the empty string counts as not set. */
export function variable(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

/** Reads the settings given as PATCHMIRROR_… variables, and secrets from the files that …_FILE names. */
export function readEnvironmentLayer(env: Environment, cwd: string): Layer {
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
  const hint = LINK.test(text) ? { hint: LINK_HINT } : {}
  return { setting, raw: setting.setting.fromText(text), origin, where: origin, ...hint }
}

function readSecretFile(setting: NamedSetting, name: string, given: string, cwd: string): GivenSettings | Unread {
  const path = resolve(cwd, given)
  const { key, env } = setting
  const origin = `secret file ${path} (env ${name})`
  try {
    const text = secretText(path)
    if (text === '') return { key, problem: `${key} (${origin}): the file is empty` }
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
