import type { LoadedConfig } from './load.ts'
import { maskSecret } from './kinds/keys.ts'
import { SETTINGS } from './settings.ts'
import { maskUrl } from './kinds/urls.ts'

type Scalar = string | number | boolean

/** A setting as it may be shown: a secret's value is `********`, a value that is not set is null. */
interface ShownSetting {
  readonly key: string
  readonly value: Scalar | null | readonly string[] | Readonly<Record<string, Scalar>>
  readonly origin: string
  readonly secret: boolean
  readonly env: string
}

/** Every setting with its value and origin, safe to print: secrets and passwords in URLs are masked. */
export function describeConfig({ config, origins }: LoadedConfig): ShownSetting[] {
  const { secretFiles: _files, ...values } = config
  const sections = new Map<string, Readonly<Record<string, ShownSetting['value']>>>(Object.entries(values))
  return SETTINGS.map(({ key, section, name, env, setting: { secret } }) => {
    const value = mask(sections.get(section)?.[name] ?? null, secret)
    return { key, value, origin: origins.get(key) ?? 'default', secret, env }
  })
}

function mask(value: ShownSetting['value'], secret: boolean): ShownSetting['value'] {
  if (secret) return maskSecret(value)
  return typeof value === 'string' ? maskUrl(value) : value
}

/** The configuration as an aligned table, or as a JSON object by dotted key. Ends without a newline. */
export function formatConfig(loaded: LoadedConfig, { json }: { json: boolean }): string {
  const shown = describeConfig(loaded)
  if (!json) return formatTable(shown)
  const entries = shown.map(({ key, ...rest }) => [key, rest] as const)
  return JSON.stringify(Object.fromEntries(entries), null, 2)
}

function formatTable(shown: readonly ShownSetting[]): string {
  const rows = shown.map(({ key, value, origin }) => [key, formatValue(value), origin] as const)
  const keyWidth = Math.max(...rows.map(([key]) => key.length))
  const valueWidth = Math.max(...rows.map(([, value]) => value.length))
  return rows
    .map(([key, value, origin]) => `${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${origin}`)
    .join('\n')
}

function formatValue(value: ShownSetting['value']): string {
  if (value === null) return '(not set)'
  if (typeof value !== 'object') return String(value)
  const entries = isList(value) ? value : Object.entries(value).map(([name, one]) => `${name}=${one}`)
  return entries.length === 0 ? '(none)' : entries.join(', ')
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value)
}
