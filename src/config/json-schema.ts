import { type NamedSetting, SECTIONS, SETTINGS } from './settings.ts'

/** Returns the JSON Schema (2020-12) of a file of settings, for editors: names, types, limits and what each accepts. */
export function settingsSchema(): object {
  const sections = SECTIONS.map((section) => {
    const own = SETTINGS.filter((setting) => setting.section === section)
    const properties = Object.fromEntries(own.map((setting) => [setting.name, shapeOf(setting)]))
    // A section or a file without anything in it reads as null.
    return [section, { type: ['object', 'null'], additionalProperties: false, properties }] as const
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of Patchmirror',
    type: ['object', 'null'],
    additionalProperties: false,
    properties: Object.fromEntries(sections),
  }
}

function shapeOf({ setting, env, fileEnv }: NamedSetting): object {
  const { allowed, secret, shape, example } = setting
  const from = fileEnv === null ? env : `${env} or ${fileEnv}`
  const description = `Accepts ${allowed}.${secret ? ' Secret.' : ` Example: ${example}.`} Environment: ${from}.`
  // Examples of secrets are random: they are not shown.
  return { description, ...shape }
}
