import type { Setting } from './kinds/base.ts'
import { SCHEMA } from './table.ts'

/** A setting with its names: `upstream.apiRoot` in messages, PATCHMIRROR_UPSTREAM_API_ROOT outside. */
export interface NamedSetting {
  readonly key: string
  readonly section: string
  readonly name: string
  readonly env: string
  /** The variable that names a file with the value; only secrets have one. */
  readonly fileEnv: string | null
  readonly setting: Setting<unknown>
}

/** What every environment variable of ours begins with. */
export const ENV_PREFIX = 'PATCHMIRROR_'

function nameSetting(section: string, name: string, setting: Setting<unknown>): NamedSetting {
  const words = `${section}_${name.replace(/[A-Z]/g, (letter) => `_${letter}`)}`
  const env = ENV_PREFIX + words.toUpperCase()
  const fileEnv = setting.secret ? `${env}_FILE` : null
  return { key: `${section}.${name}`, section, name, env, fileEnv, setting }
}

/** All settings, in the order of the schema. */
export const SETTINGS: readonly NamedSetting[] = Object.entries(SCHEMA).flatMap(([section, table]) =>
  Object.entries<Setting<unknown>>(table).map(([name, setting]) => nameSetting(section, name, setting)),
)

/** The names of the sections, in the order of the schema. */
export const SECTIONS: readonly string[] = Object.keys(SCHEMA)
