import { MirrorError } from '../base/errors.ts'
import { counted } from '../base/text.ts'
import type { NamedSetting } from './settings.ts'
import { isKeyMaterial } from './kinds/pem-files.ts'
import { maskUrl } from './kinds/urls.ts'

const QUOTE_LENGTH = 100

/** A value given for a setting, not yet checked. */
export interface GivenSettings {
  readonly setting: NamedSetting
  readonly raw: unknown
  /** As `origins` shows it: `default`, `file <path>`, `env NAME` or `secret file <path> (env NAME)`. */
  readonly origin: string
  /** As a message shows it: the origin, with the line where one is known. */
  readonly where: string
  /** Absolute path of the file that a secret was read from. */
  readonly file?: string
}

/** A setting whose file cannot be used, which only concerns a command that needs the file. */
export interface Unread {
  readonly key: string
  readonly problem: string
}

/** The settings of one source, with its problems and warnings. */
export interface Layer {
  readonly given: readonly GivenSettings[]
  readonly problems: readonly string[]
  /** Problems of the files that settings name. */
  readonly unread?: readonly Unread[]
  readonly warnings: readonly string[]
}

/** The values that passed their own checks, where they came from, and the keys that have a refused one. */
export interface Checked {
  readonly values: ReadonlyMap<string, unknown>
  readonly origins: ReadonlyMap<string, string>
  readonly refused: ReadonlySet<string>
  readonly problems: readonly string[]
  /** Problems of the files that settings name; their keys count as refused. */
  readonly unread: readonly Unread[]
  /** The files that secrets were read from, by key. */
  readonly files: ReadonlyMap<string, string>
}

/** Names a setting with where it is set: `osv.schedule (env PATCHMIRROR_OSV_SCHEDULE)`. */
export function place({ origins }: Pick<Checked, 'origins'>, key: string): string {
  return `${key} (${origins.get(key) ?? 'not set'})`
}

/** Reports whether a setting has a value that switches something on. */
export function isSet({ values }: Pick<Checked, 'values'>, key: string): boolean {
  const value = values.get(key)
  return value !== null && value !== undefined && value !== false
}

function quote({ setting, raw }: GivenSettings): string {
  if (setting.setting.secret) return 'the value'
  if ([raw].flat().some((one) => typeof one === 'string' && isKeyMaterial(one)))
    return 'the value (not shown: it may be a key)'
  const shown = typeof raw === 'number' ? String(raw) : maskUrl(JSON.stringify(raw))
  return shown.length > QUOTE_LENGTH ? `${shown.slice(0, QUOTE_LENGTH)}…` : shown
}

/** The line for a refused value: key, place, value unless secret, fault, what is allowed, an example. */
export function describeFault(given: GivenSettings, fault: string): string {
  const { key, setting } = given.setting
  const wrong = given.raw === null ? 'has no value (remove the line to keep the default)' : `${quote(given)} ${fault}`
  const allowed = `Allowed: ${setting.allowed}; for example ${setting.example}.`
  return `${key} (${given.where}): ${wrong}. ${allowed}`
}

/** One error that lists every problem, one a line. */
export function configError(problems: readonly string[]): ConfigError {
  const count = counted(problems.length, 'problem')
  const lines = problems.map((problem) => `  - ${problem}`)
  return new ConfigError([`${count} in the configuration:`, ...lines].join('\n'), problems)
}

/** A `config` error with each problem by itself. */
export class ConfigError extends MirrorError {
  readonly problems: readonly string[]
  constructor(message: string, problems: readonly string[]) {
    super('config', message)
    this.problems = problems
  }
}
