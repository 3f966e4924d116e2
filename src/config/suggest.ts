import { isOneOff, nearest } from './nearest.ts'
import { type NamedSetting, SECTIONS, SETTINGS } from './settings.ts'

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z\d]/g, '')

/**
 * The setting an unknown name most likely meant: the same letters written another way (`api_root`), one letter off
 * (`webhooks.secret`), the same name in another section, or a misspelling. Takes a dotted key or a variable without its prefix.
 */
export function suggestSetting(unknown: string): NamedSetting | null {
  const word = plain(unknown)
  const known = SETTINGS.find(({ key }) => plain(key) === word)
  return known ?? secretOfFile(word) ?? suggestOther(word)
}

/** Returns the secret that a name such as `upstream.apiKeyFile` means the file of, also without its section. */
function secretOfFile(word: string): NamedSetting | null {
  if (!word.endsWith('file')) return null
  const own = word.slice(0, -'file'.length)
  const secrets = SETTINGS.filter(({ fileEnv }) => fileEnv !== null)
  const exact = secrets.find(({ key }) => plain(key) === own)
  return exact ?? secrets.find(({ name }) => plain(name) === own) ?? null
}

/** Returns how a secret is given by a file, to be added to a suggestion of it; empty for other settings. */
export function fileHint({ fileEnv }: NamedSetting): string {
  return fileEnv === null ? '' : ` A file with this secret is named by the environment variable ${fileEnv}.`
}

function suggestOther(word: string): NamedSetting | null {
  const almost = SETTINGS.find(({ key }) => isOneOff(plain(key), word))
  if (almost !== undefined) return almost
  const moved = SETTINGS.find(({ name }) => ['', ...SECTIONS].some((section) => plain(section + name) === word))
  if (moved !== undefined) return moved
  const key = nearest(
    word,
    SETTINGS.map((setting) => plain(setting.key)),
  )
  return SETTINGS.find((setting) => plain(setting.key) === key) ?? null
}

/** The section an unknown one most likely meant. */
export function suggestSection(unknown: string): string | null {
  return nearest(plain(unknown), SECTIONS)
}
