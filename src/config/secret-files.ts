import type { Config } from './schema.ts'
import { SETTINGS } from './settings.ts'
import { briefReason, fileMark, readNamedFile } from '../base/files.ts'

/** A secret setting in use: its value follows the file that it was read from, if it was read from one. */
interface FollowedSecret<T> {
  /** The value in force; the file is read again when it looks changed. */
  readonly current: () => T
  /** Reads the file, even if unchanged. True when the value in force changed. */
  readonly reload: () => boolean
}

/** The text of a secret's file without the line end that editors add. Throws what the file system does. */
export function secretText(path: string): string {
  return readNamedFile(path)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** However a file is rewritten, its content is compared this often, milliseconds: a clock's step hides quick changes. */
const LOOK_MS = 1_000

/** Reports whether a secret's file has no secret in it: nothing, or only what separates the entries of a list. */
export function isEmpty({ fromText }: Pick<Setting, 'fromText'>, text: string): boolean {
  const value = fromText(text)
  return text.trim() === '' || (Array.isArray(value) && value.length === 0)
}

/**
 * Follows a secret setting. A file that is missing, empty or malformed, as it may be during a rotation,
 * changes nothing: the last valid value stays in force, and `warn` is called once. No message quotes a value.
 */
export function followSecret<T>(
  config: Pick<Config, 'secretFiles'>,
  key: string,
  initial: T,
  warn: (text: string) => void = () => undefined,
): FollowedSecret<T> {
  const file = config.secretFiles?.[key]
  const setting = SETTINGS.find((one) => one.key === key)?.setting
  if (file === undefined || setting === undefined || initial === null)
    return { current: () => initial, reload: () => false }
  let value = initial
  let seen = { mark: '', at: -Infinity }
  let text: string | null = null // what the value was made of
  let complaint: string | null = null
  const refuse = (fault: string): false => {
    if (complaint !== fault) warn(`${key}: the file ${file} ${fault}; the value that was read before stays in force`)
    complaint = fault
    return false
  }
  const reload = (): boolean => {
    seen = { mark: fileMark(file), at: performance.now() }
    const read = readSecret(setting, file, text)
    if ('fault' in read) return refuse(read.fault)
    complaint = null
    if (read.text === text) return false
    text = read.text
    const changed = JSON.stringify(read.value) !== JSON.stringify(value)
    if (changed) value = read.value as typeof value // of the setting that the key names
    return changed
  }
  return {
    current() {
      const old = performance.now() - seen.at >= LOOK_MS
      if (old || fileMark(file) !== seen.mark) reload()
      return value
    },
    reload,
  }
}

type Setting = (typeof SETTINGS)[number]['setting']

/** Reads the file of a secret setting, or says what is wrong with it. The value is missing where the text is `known`. */
function readSecret(
  setting: Setting,
  file: string,
  known: string | null,
): { readonly text: string; readonly value?: unknown } | { readonly fault: string } {
  let text: string
  try {
    text = secretText(file)
  } catch (error) {
    return { fault: `cannot be read (${briefReason(error, 'not a file name')})` }
  }
  if (isEmpty(setting, text)) return { fault: 'is empty' }
  if (text === known) return { text }
  // The secret settings' checks look at nothing but the text.
  const context = { cwd: '/', validateCron: () => true }
  const result = setting.check(setting.fromText(text), context)
  return 'fault' in result ? { fault: `contains a value that ${result.fault}` } : { text, value: result.value }
}

/** Returns what is wrong now with the files of secret settings: a start would fail by it. No text quotes a value. */
export function faultsOfSecretFiles({ secretFiles = {} }: Pick<Config, 'secretFiles'>): {
  readonly key: string
  readonly fault: string
}[] {
  return SETTINGS.flatMap(({ key, setting }) => {
    const file = secretFiles[key]
    const read = file === undefined ? { text: '' } : readSecret(setting, file, null)
    return 'fault' in read ? [{ key, fault: read.fault }] : []
  })
}

/**
 * The same settings, of which `server.keys` and `webhooks.secrets` follow their files: reading one gives what is in force,
 * the same object as long as nothing changed.
 */
export function followConfig(config: Config, warn: (text: string) => void): Config {
  const keys = followSecret(config, 'server.keys', config.server.keys, warn)
  const secrets = followSecret(config, 'webhooks.secrets', config.webhooks.secrets, warn)
  return {
    ...config,
    server: follow(config.server, 'keys', keys),
    webhooks: follow(config.webhooks, 'secrets', secrets),
  }
}

function follow<Section extends object, Name extends keyof Section>(
  section: Section,
  name: Name,
  { current }: FollowedSecret<Section[Name]>,
): Section {
  const properties = Object.getOwnPropertyDescriptors(section) as PropertyDescriptorMap
  const read = { get: current, enumerable: true }
  return Object.defineProperties({}, { ...properties, [name]: read }) as Section
}
