import { type Checked, isSet, place } from '../problems.ts'
import { decodedKey, publicKeyBytes } from '../kinds/keys.ts'
import { checkPair } from './server.ts'
import { endpointsOf } from '../kinds/webhooks.ts'

/** Problems of the webhook settings that show only together. No secret is quoted. */
export function checkWebhooks(checked: Checked): string[] {
  return [...checkListener(checked), ...checkEndpoints(checked), ...checkDialect(checked)]
}

const PAIR = ['webhooks.certFile', 'webhooks.keyFile']

/** Certificate and key belong together, and to a listener of their own. */
function checkListener(checked: Checked): string[] {
  const { refused } = checked
  if (['webhooks.listen', ...PAIR].some((key) => refused.has(key))) return []
  const problems = checkPair(checked, 'webhooks')
  if (isSet(checked, 'webhooks.listen')) return [...problems, ...checkAddress(checked)]
  const useless = PAIR.find((key) => isSet(checked, key))
  if (useless !== undefined) {
    problems.push(
      `webhooks.listen: not set, though ${place(checked, useless)} is. It belongs to a listener of its own: ` +
        'give its address, or remove the line.',
    )
  }
  return problems
}

function checkAddress({ values }: Checked): string[] {
  const own = String(values.get('webhooks.listen'))
  if (own !== values.get('server.listen') || own.endsWith(':0')) return []
  return [`webhooks.listen: ${own} is server.listen. Give another address, or null to receive on the main listener.`]
}

function checkEndpoints({ values, refused }: Checked): string[] {
  const endpoints = values.get('webhooks.endpoints')
  if (refused.has('webhooks.endpoints') || !Array.isArray(endpoints)) return []
  const all = endpointsOf({ endpoints: endpoints as string[] })
  if (all.length === 0) return ['webhooks.endpoints: names none. Give one, for example [default=/-/webhooks].']
  const twice = all.flatMap((one, at) => {
    const other = all.slice(0, at).find(({ name, path }) => name === one.name || path === one.path)
    return other === undefined ? [] : [`${other.name}=${other.path} and ${one.name}=${one.path}`]
  })
  return twice.map((both) => `webhooks.endpoints: ${both} have the same name or the same path. Give each its own.`)
}

const DECODED: ReadonlySet<unknown> = new Set(['standard', 'decoded-hex'])

/** A pinned form whose key is decoded needs secrets that can be. */
function checkDialect(checked: Checked): string[] {
  const dialect = checked.values.get('webhooks.dialect')
  const secrets = checked.values.get('webhooks.secrets')
  if (!DECODED.has(dialect) || !Array.isArray(secrets)) return []
  return (secrets as string[]).flatMap((secret, at) =>
    decodedKey(secret) !== null || publicKeyBytes(secret) !== null
      ? []
      : [
          `${place(checked, 'webhooks.secrets')}: (entry ${at + 1}) is not base64, and webhooks.dialect is ${String(dialect)}. ` +
            'Give the secret as the service returned it, or set webhooks.dialect: any.',
        ],
  )
}
