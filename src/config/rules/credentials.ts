import { createTrusted } from '../../base/connections/network.ts'
import { type Checked, isSet, place } from '../problems.ts'
import { isLoopbackHost } from '../kinds/urls.ts'

/** A section with a credential, and the name of its surface in messages. */
interface Surface {
  readonly section: 'upstream' | 'identity'
  readonly title: string
  readonly root: string
}

const SURFACES: readonly Surface[] = [
  { section: 'upstream', title: 'remediation surface', root: 'upstream.apiRoot' },
  { section: 'identity', title: 'identity surface', root: 'identity.apiUrl' },
]

/**
 * Problems of the credentials: more than one for a surface, half a pair, no token endpoint, nothing to send it
 * to, or plain http on the way. No value is quoted.
 */
export function checkCredentials(checked: Checked): string[] {
  return [
    ...SURFACES.flatMap((surface) => checkSurface(checked, surface)),
    ...checkClient(checked),
    ...checkCatalog(checked),
    ...checkIdentity(checked),
  ]
}

function checkSurface(checked: Checked, { section, title, root }: Surface): string[] {
  const given = ['apiKey', 'token'].map((name) => `${section}.${name}`).filter((key) => isSet(checked, key))
  if (given.length > 1) {
    const places = given.map((key) => place(checked, key)).join(' and ')
    return [`${places}: more than one credential for the ${title}. Keep one of them.`]
  }
  const isUsed = given.length > 0 || (hasClient(checked) && isSet(checked, root))
  return isUsed ? checkPlain(checked, root) : []
}

const CLIENT = ['oauth.clientId', 'oauth.clientSecret', 'oauth.authUrl'] as const

function hasClient(checked: Checked): boolean {
  return isSet(checked, 'oauth.clientId') || isSet(checked, 'oauth.clientSecret')
}

/** OAuth client credentials are four settings; each missing one is named. They are for the surfaces without a key of their own. */
function checkClient(checked: Checked): string[] {
  if (!hasClient(checked)) return []
  const isMissing = (key: string): boolean => !isSet(checked, key) && !checked.refused.has(key)
  const because = `${isMissing('oauth.clientId') ? 'oauth.clientSecret' : 'oauth.clientId'} is set`
  const problems = CLIENT.filter(isMissing).map((key) => `${key}: not set, though ${because}. ${WANTED[key]}`)
  if (isMissing('oauth.audience') && !isSet(checked, 'identity.apiUrl'))
    problems.push(
      `oauth.audience: not set, though ${because}, and there is no identity.apiUrl to take its place. ` +
        'Give the address of the identity API.',
    )
  const own = ['upstream.apiKey', 'upstream.token'].find((key) => isSet(checked, key))
  const identity = isSet(checked, 'identity.apiKey') ? 'identity.apiKey' : null
  if (own !== undefined && (identity !== null || !isSet(checked, 'identity.apiUrl')))
    problems.push(
      `${place(checked, 'oauth.clientId')}: nothing uses this client, because ${place(checked, own)}` +
        `${identity === null ? '' : ` and ${place(checked, identity)}`} ${identity === null ? 'is' : 'are'} set. Keep one credential for each surface.`,
    )
  return [...problems, ...checkPlain(checked, 'oauth.authUrl')]
}

const WANTED = {
  'oauth.clientId': 'The two belong together.',
  'oauth.clientSecret': 'The two belong together.',
  'oauth.authUrl': 'Give the host of the token endpoint, without /oauth/token.',
}

/** Refuses a credential over plain http to another machine: the network between could read it. */
function checkPlain(checked: Checked, key: string): string[] {
  const url = checked.values.get(key)
  if (typeof url !== 'string' || !url.startsWith('http:')) return []
  const { hostname } = new URL(url)
  if (isTrusted(checked, hostname) || isLoopbackHost(hostname)) return []
  return [
    `${place(checked, key)}: the credential would go to another machine over plain http, where the network ` +
      `path is not protected. Use https, or name ${hostname} in network.trusted where the way there is trusted as a whole.`,
  ]
}

/** Reports whether `network.trusted` has a host. */
export function isTrusted({ values }: Checked, host: string): boolean {
  return createTrusted((values.get('network.trusted') ?? []) as string[])(host)
}

function checkCatalog(checked: Checked): string[] {
  const key = 'catalog.sendCredential'
  if (!isSet(checked, key)) return []
  return ['upstream.apiKey', 'upstream.token', 'oauth.clientId'].some((name) => isSet(checked, name))
    ? checkPlain(checked, 'upstream.catalogUrl')
    : [`${place(checked, key)}: upstream has no credential to send. Set one, or remove the line.`]
}

function checkIdentity(checked: Checked): string[] {
  if (isSet(checked, 'identity.apiUrl') || checked.refused.has('identity.apiUrl')) return []
  const personal = checked.values.get('catalog.personalData')
  const hasUsers = Array.isArray(personal) && personal.includes('users')
  const users = hasUsers ? 'catalog.personalData' : undefined
  const user = isSet(checked, 'identity.apiKey') ? 'identity.apiKey' : users
  return user === undefined
    ? []
    : [
        `identity.apiUrl: not set, though ${place(checked, user)} is. Give the base of the identity surface ` +
          'with its version, such as https://identity.example.com/v1',
      ]
}
