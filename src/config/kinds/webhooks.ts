import { readPemFile } from './pem-files.ts'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readLinkSecretFile } from '../../base/domain/link-secret-file.ts'
import { type Setting, type Parsed, choice, textSetting } from './base.ts'

/** The forms a signature may have: what its key is made of, and how it is written (wire facts, webhook deliveries). */
export const SIGNATURE_DIALECTS = ['standard', 'vendor', 'whole-base64', 'decoded-hex'] as const

/** Every form, or the one that alone is taken. */
export const dialectChoice = () => choice(['any', ...SIGNATURE_DIALECTS], 'any')

const PLAIN_PATH = /^(\/[\w~-][\w.~-]*)+$|^(\/-)(\/[\w~-][\w.~-]*)+$/
/** What the mirror serves itself; a webhook endpoint may take the place of none of it. */
const TAKEN = /^\/(external|v\d+(-\w+)?|oauth|packages|osv|vex)(\/|$)/
const OWN =
  /^\/-\/(health|ready|leader|status|metrics|changes|events|records|tags|vex|documents|ui|sbom|match|docs|openapi\.json)(\/|$)/

function pathFault(path: string): string | null {
  if (!PLAIN_PATH.test(path))
    return 'is not a plain path (it begins with /, without query, "..", "//", "%" or slash at the end)'
  return TAKEN.test(path) || OWN.test(path) ? 'is a path that the mirror itself answers' : null
}

/** An endpoint: its name, and its path. */
export function namedEndpoint(): Setting<string> {
  const allowed = 'endpoints NAME=/path; the name is of letters, digits, _ and -'
  return textSetting(allowed, 'staging=/-/webhooks/staging', (value): Parsed<string> => {
    const [, name, path = ''] = /^([A-Za-z\d_-]{1,64})=(.*)$/s.exec(value.trim()) ?? []
    if (name === undefined) return { fault: 'does not have the form NAME=/path' }
    const fault = pathFault(path)
    return fault === null ? { value: `${name}=${path}` } : { fault }
  })
}

/** A webhook endpoint: deliveries are remembered for each by itself. */
export interface Endpoint {
  readonly name: string
  readonly path: string
}

/** All endpoints of the settings, in their order. */
export function endpointsOf(settings: { readonly endpoints: readonly string[] }): Endpoint[] {
  return settings.endpoints.map((text) => {
    const [name = '', path = ''] = text.split('=')
    return { name, path }
  })
}

/** A pattern of event types; `*` matches any characters, `{vendor}` is replaced by upstream.vendor. */
export function typePattern(): Setting<string> {
  const allowed = 'event types, where * is any characters and {vendor} is upstream.vendor'
  return textSetting(allowed, '"io.service.cr.image.created.v*"', (value) =>
    /^([\w.:/*-]|\{vendor\}){1,200}$/.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not an event type or a pattern of them' },
  )
}

/** A sender that may ask for permission (CloudEvents web hooks, section 4.1), as it calls itself. */
export function senderOrigin(): Setting<string> {
  return textSetting('DNS names of senders, or *', 'events.example.com', (value) =>
    /^(\*|[A-Za-z\d]([A-Za-z\d.-]{0,251}[A-Za-z\d])?)$/.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a DNS name' },
  )
}

/** Returns the path of the file in which `patchmirror webhooks register` stores secrets; absolute. */
export function secretFilePath(config: {
  readonly data: { readonly dir: string }
  readonly webhooks: { readonly secretFile: string }
}): string {
  return resolve(config.data.dir, config.webhooks.secretFile)
}

/** Whether a secret is set, or a file of secrets exists, whatever is in it: without one no webhook can be received. */
export function mayReceive(
  config: Parameters<typeof secretFilePath>[0] & {
    readonly webhooks: { readonly secrets: readonly string[] }
  },
): boolean {
  return config.webhooks.secrets.length > 0 || existsSync(secretFilePath(config))
}

/** A readable file with the secrets of signed links, made absolute. */
export function linkSecretFile(): Setting<string> {
  const allowed = 'a file with a secret of at least 32 characters on its first line'
  return textSetting(allowed, '/run/secrets/patchmirror-links', (path, { cwd }) => {
    const file = resolve(cwd, path)
    const secrets = readLinkSecretFile(file)
    return typeof secrets === 'string' ? { fault: secrets } : { value: file }
  })
}

/** A readable file with a PEM private key, made absolute. */
export function privateKeyFile(): Setting<string> {
  return textSetting('a file with a PEM private key', '/etc/ssl/private/mirror.key', (path, context) =>
    readPemFile(path, context, (pem) =>
      /-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/.test(pem)
        ? null
        : 'contains no PEM private key (no "BEGIN PRIVATE KEY" line)',
    ),
  )
}
