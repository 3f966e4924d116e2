import { homedir } from 'node:os'
import { join } from 'node:path'
import { MirrorError, systemCode, messageOf } from '../../../base/errors.ts'
import { readNamedFile } from '../../../base/files.ts'
import { fieldsOf } from '../../../base/json/objects.ts'

/** Names under which Docker's own registry stands in the file. */
const DOCKER_HUB: readonly string[] = ['docker.io', 'index.docker.io', 'registry-1.docker.io']
const DOCKER_HUB_ENTRY = 'https://index.docker.io/v1/'

/** A user name and its password, or an identity token, for a registry. */
export type RegistryCredential = { readonly basic: string } | { readonly token: string }

/**
 * Reads the credential for a registry from Docker's settings file (`$DOCKER_CONFIG/config.json`, otherwise
 * `~/.docker/config.json`), where `docker login` and others write it; null: there is none. Programs that the file names as
 * helpers are not run. Throws `config` for a file that cannot be read.
 */
export function readCredential(host: string): RegistryCredential | null {
  const path = join(process.env['DOCKER_CONFIG'] ?? join(homedir(), '.docker'), 'config.json')
  const settings = readSettings(path)
  const auths = fieldsOf(settings['auths'])
  const names = DOCKER_HUB.includes(host) ? [DOCKER_HUB_ENTRY, ...DOCKER_HUB] : [host, `https://${host}`]
  for (const name of names) {
    const { auth, identitytoken } = fieldsOf(auths[name] ?? auths[`${name}/`])
    if (typeof identitytoken === 'string' && identitytoken !== '') return { token: identitytoken }
    if (typeof auth === 'string' && auth !== '') return { basic: auth }
  }
  return null
}

/** Returns what to say of a registry that wants a credential where none is known. */
export function credentialAdvice(host: string): string {
  const path = join(process.env['DOCKER_CONFIG'] ?? join(homedir(), '.docker'), 'config.json')
  return `no user name and password for ${host} are in ${path} under "auths" (credential helpers are not run): add them there`
}

function readSettings(path: string): ReturnType<typeof fieldsOf> {
  try {
    return fieldsOf(JSON.parse(readNamedFile(path).toString('utf8')))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return {}
    // A message about JSON has a piece of the text, which may be a password.
    const why = error instanceof SyntaxError ? 'it is not JSON' : messageOf(error)
    throw new MirrorError('config', `${path} (credentials for registries) cannot be read: ${why}`)
  }
}

/** How a registry wants clients to log in (`WWW-Authenticate`); `realm` and `service` of Basic are not used. */
export interface Challenge {
  readonly scheme: 'basic' | 'bearer'
  readonly realm: string
  readonly service: string
}

const PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi

/** Reads the first challenge that is known of a header (RFC 9110, 11.6.1); null: there is none. */
export function readChallenge(header: string | string[] | undefined): Challenge | null {
  for (const text of [header ?? []].flat()) {
    const scheme = /(?:^|,\s*)(basic|bearer)(?:\s|$)/i.exec(text)
    if (scheme === null) continue
    const given = new Map<string, string>()
    for (const [, name = '', quoted, plain = ''] of text.slice(scheme.index).matchAll(PARAMETER))
      given.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain)
    const isBasic = scheme[1]?.toLowerCase() === 'basic'
    return {
      scheme: isBasic ? 'basic' : 'bearer',
      realm: given.get('realm') ?? '',
      service: given.get('service') ?? '',
    }
  }
  return null
}
