import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../../../config/load.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import type { Config } from '../../../config/schema.ts'
import { SETTINGS } from '../../../config/settings.ts'
import { readLocalKey } from '../../../store/local-key.ts'
import { readNamedFile } from '../../../base/files.ts'
import { percentDecoded } from '../../../base/text.ts'
import { withReads } from '../../../store/reads.ts'

/** Variables of the environment whose values are taken for secrets. */
const SECRET_NAME = /key|token|secret|pass|pwd|credential|auth|cookie|signature|dsn|proxy|_url$/i

/**
 * Returns all secrets that this machine knows of the mirror: of the settings and their files, of the environment, of the
 * data folder and the database. A file that cannot be read has none.
 */
export function collectSecrets({ config }: LoadedConfig, env: NodeJS.ProcessEnv): string[] {
  const ofEnv = Object.entries(env).flatMap(([name, value]) =>
    SECRET_NAME.test(name) && value !== undefined ? [value] : [],
  )
  const files = [
    ...Object.values(config.secretFiles ?? {}),
    ...Object.entries(env).flatMap(([name, path]) =>
      name.endsWith('_FILE') && SECRET_NAME.test(name.slice(0, -5)) && path ? [path] : [],
    ),
    ...config.bundle.signingKeys,
    config.webhooks.keyFile ?? [],
  ].flat()
  const given = [...secretSettings(config), ...ofEnv.filter((one) => !isPath(one))]
  return [
    ...given.flatMap(withParts),
    ...files
      .map(textOf)
      .flatMap((text) => text.split(/[\r\n]+/))
      .flatMap(withValue),
    ...ofDataFolder(config),
  ].map((secret) => secret.trim())
}

/** A key can begin with a slash too, as a secret key of AWS does. */
const isPath = (text: string): boolean => /^[~.]?\//.test(text) && existsSync(text)

function secretSettings(config: Config): string[] {
  const { secretFiles: _files, ...sections } = config
  const values = new Map<string, Readonly<Record<string, unknown>>>(Object.entries(sections))
  return SETTINGS.filter(({ setting }) => setting.secret)
    .map(({ section, name }) => values.get(section)?.[name])
    .flat()
    .filter((value) => typeof value === 'string')
}

/** A URL and its parts that may be a secret: user name, password, path, and the values of its query. */
function withParts(secret: string): string[] {
  const url = URL.parse(secret)
  if (url === null || url.host === '') return [secret]
  const { username, password, pathname, search, searchParams } = url
  const inner = [username, password, search.slice(1), ...searchParams.values()]
  const path = pathname.split('/').filter((part) => part.length >= 16)
  return [...inner, ...inner.map(percentDecoded), ...path]
}

/** A line of a file, and the value in it where it is `name = value`, as in a profile of AWS. */
function withValue(line: string): string[] {
  const [, value] = /^\s*\w+\s*=\s*(\S{16,})\s*$/.exec(line) ?? []
  return value === undefined ? [line] : [line, value]
}

function textOf(path: string): string {
  try {
    const text = readNamedFile(path).toString('utf8').slice(0, 65_536)
    return text.includes('-----BEGIN CERTIFICATE') ? '' : text // certificates are public
  } catch {
    return ''
  }
}

/** The local key, the secret of the database, and what the file of webhook secrets has between quotes. */
function ofDataFolder(config: Config): string[] {
  const { data } = config
  const quoted = textOf(secretFilePath(config))
  const values = [...quoted.matchAll(/"secret"\s*:\s*"((?:[^"\\]|\\.)+)"/g)].map(([, one = '']) => one)
  return [...values, ...localKey(data.dir), ...ofDatabase(data.dir)]
}

function localKey(dataDir: string): string[] {
  try {
    return [readLocalKey(dataDir) ?? []].flat()
  } catch {
    return []
  }
}

function ofDatabase(dataDir: string): string[] {
  try {
    const row = withReads(dataDir, (_, db) => db.prepare<[], Buffer>('SELECT bytes FROM secret').pluck().get()) ?? null
    return row === null ? [] : [row.toString('hex'), row.toString('base64')]
  } catch {
    return [] // a damaged database: the archive has nothing of its tables either
  }
}
