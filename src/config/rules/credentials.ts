import type { Checked } from '../problems.ts'
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
    ...checkCatalog(checked),
    ...checkIdentity(checked),
  ]
}

function isSet({ values }: Checked, key: string): boolean {
  const value = values.get(key)
  return value !== null && value !== undefined && value !== false
}

/** `upstream.token (env PATCHMIRROR_UPSTREAM_TOKEN)` */
function place({ origins }: Checked, key: string): string {
  return `${key} (${origins.get(key) ?? 'not set'})`
}

function checkSurface(checked: Checked, { section, title, root }: Surface): string[] {
  const key = (name: string): string => `${section}.${name}`
  const has = (name: string): boolean => isSet(checked, key(name))
  const given = ['apiKey', 'token', has('clientId') ? 'clientId' : 'clientSecret'].filter(has)
  if (given.length > 1) {
    const places = given.map((name) => place(checked, key(name))).join(' and ')
    return [`${places}: more than one credential for the ${title}. Keep one of them.`]
  }
  const oauth = has('clientId') || has('clientSecret')
  return [
    ...(oauth ? checkClient(checked, section) : []),
    ...(given.length > 0 ? checkPlain(checked, section, root) : []),
    ...(oauth ? checkPlain(checked, section, key('authUrl')) : []),
  ]
}

/** OAuth client credentials are four settings; each missing one is named. */
function checkClient(checked: Checked, section: string): string[] {
  const isMissing = (name: string): boolean => {
    const key = `${section}.${name}`
    return !isSet(checked, key) && !checked.refused.has(key)
  }
  const because = `${section}.${isMissing('clientId') ? 'clientSecret' : 'clientId'} is set`
  const problems = (['clientId', 'clientSecret', 'authUrl'] as const)
    .filter(isMissing)
    .map((name) => `${section}.${name}: not set, though ${because}. ${WANTED[name]}`)
  const audience = isMissing('audience') && !isSet(checked, 'identity.apiUrl')
  return audience
    ? [
        ...problems,
        `${section}.audience: not set, though ${because}, and there is no identity.apiUrl to take its place. ` +
          'Give the address of the identity API.',
      ]
    : problems
}

const WANTED = {
  clientId: 'The two belong together.',
  clientSecret: 'The two belong together.',
  authUrl: 'Give the host of the token endpoint, without /oauth/token.',
}

/** Refuses a credential over plain http to another machine: the network between could read it. */
function checkPlain(checked: Checked, section: string, key: string): string[] {
  const url = checked.values.get(key)
  if (typeof url !== 'string' || !url.startsWith('http:')) return []
  const allow = `${section}.allowPlainHttp`
  if (checked.values.get(allow) === true || isLoopbackHost(new URL(url).hostname)) return []
  return [
    `${place(checked, key)}: the credential would go to another machine over plain http, where the network ` +
      `path is not protected. Use https, or set ${allow}: true for a network that is trusted as a whole.`,
  ]
}

function checkCatalog(checked: Checked): string[] {
  const key = 'catalog.sendCredential'
  if (!isSet(checked, key)) return []
  const has = (name: string): boolean => isSet(checked, `upstream.${name}`)
  return ['apiKey', 'token', 'clientId'].some(has)
    ? checkPlain(checked, 'upstream', 'upstream.catalogUrl')
    : [`${place(checked, key)}: upstream has no credential to send. Set one, or remove the line.`]
}

function checkIdentity(checked: Checked): string[] {
  if (isSet(checked, 'identity.apiUrl') || checked.refused.has('identity.apiUrl')) return []
  const personal = checked.values.get('catalog.personalData')
  const keys = ['identity.apiKey', 'identity.token', 'identity.clientId']
  const hasUsers = Array.isArray(personal) && personal.includes('users')
  const user = keys.find((key) => isSet(checked, key)) ?? (hasUsers ? 'catalog.personalData' : undefined)
  return user === undefined
    ? []
    : [
        `identity.apiUrl: not set, though ${place(checked, user)} is. Give the base of the identity surface ` +
          'with its version, such as https://identity.example.com/v1',
      ]
}
