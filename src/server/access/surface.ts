import { type ProblemForm, type Problem, methodNotAllowed } from '../http/problems.ts'

/**
 * The parts of the service that a path can belong to (service API, sections 1 and 4). On the mirror all of them
 * have one address; artifact links and the mirror's own pages belong to none.
 */
type ApiSurface = 'public' | 'remediation' | 'catalog' | 'settings' | 'identity'

interface Surface {
  readonly name: ApiSurface
  readonly paths: RegExp
  /** Whether reading it takes a local key. */
  readonly private: boolean
  readonly form: ProblemForm
}

/**
 * The identity surface: what its four groups of paths begin with, at any version, and everything of the versions that it
 * alone has (service API, sections 1 and 9).
 */
const IDENTITY_PATHS =
  /^\/(v\d+(-[a-z]+)?\/(users|roles|permissions|auth|authentication|login|logout|register|registration|tokens?)|v0|v2-beta|oauth)(\/|$)/

/** In the order of asking: the first that matches. */
const SURFACES: readonly Surface[] = [
  { name: 'public', paths: /^\/external(\/|$)/, private: false, form: 'message' },
  {
    name: 'identity',
    paths: IDENTITY_PATHS,
    private: true,
    form: 'identity',
  },
  { name: 'remediation', paths: /^\/v1(\/|$)/, private: true, form: 'message' },
  { name: 'settings', paths: /^\/v3(\/|$)/, private: true, form: 'message' },
  { name: 'catalog', paths: /^\/packages\/ecosystems(\/|$)/, private: true, form: 'message' },
]

/** The surface of a request path (no query); null for the mirror's own pages and everything unknown. */
export function surfaceOf(path: string): ApiSurface | null {
  return SURFACES.find(({ paths }) => paths.test(path))?.name ?? null
}

/** The surface of a request target as metrics name it: few values, whatever clients ask for. */
export function metricSurface(target: string): string {
  const path = target.split('?', 1)[0] ?? ''
  if (path === '/' || path.startsWith('/-/')) return 'mirror'
  if (path.startsWith('/osv/') || path.startsWith('/.well-known/')) return 'views'
  return surfaceOf(path) ?? 'other'
}

/** Whether reading a surface takes a local key. */
export function isPrivate(name: ApiSurface | null): boolean {
  return SURFACES.some((surface) => surface.name === name && surface.private)
}

/** The form that a surface's errors have. */
export function errorForm(name: ApiSurface | null): ProblemForm {
  return SURFACES.find((surface) => surface.name === name)?.form ?? 'message'
}

interface Writing {
  readonly method: string
  readonly path: RegExp
  /** Where to do it instead. */
  readonly instead: string
  readonly command: string | null
}

const TOKENS =
  'the mirror issues no tokens: ask the token endpoint of the service itself. To read from the mirror, send a local ' +
  'key ("patchmirror keys create") as Bearer token'

function writing(method: string, path: RegExp, command: string): Writing {
  const instead = `do it at the service itself, for example with "patchmirror ${command}"`
  return { method, path, instead, command: `patchmirror ${command}` }
}

/** Every writing method of the contract (section 4). */
const WRITINGS: readonly Writing[] = [
  writing('POST', /^\/v1\/api_keys\/?$/, 'api-keys create'),
  writing('DELETE', /^\/v1\/api_keys\/[^/]+\/?$/, 'api-keys delete ID'),
  writing('POST', /^\/v1\/subscriptions\/?$/, 'subscriptions add'),
  writing('DELETE', /^\/v1\/subscriptions\/?$/, 'subscriptions remove'),
  writing('POST', /^\/v3\/settings\/webhooks\/?$/, 'webhooks register'),
  writing('DELETE', /^\/v3\/settings\/webhooks\/[^/]+\/?$/, 'webhooks delete ID'),
  writing('POST', /^\/v3\/settings\/webhooks\/[^/]+\/test-tag-created\/?$/, 'webhooks test ID'),
  { method: 'POST', path: /^\/oauth\/token\/?$/, instead: TOKENS, command: null },
]

/** Whether the contract writes at this path, so that it is known though the mirror may have nothing to read there. */
export function isWrittenAt(path: string): boolean {
  return WRITINGS.some((writing) => writing.path.test(path))
}

/** 405 for a method that writes, with where to do it instead. */
export function refuseWriting(method: string, path: string): Problem {
  const plain = methodNotAllowed(method)
  const known = WRITINGS.find((one) => one.method === method && one.path.test(path))
  if (known === undefined) return { ...plain, message: `${plain.message}; do it at the service itself` }
  const { instead, command } = known
  const fields = command === null ? {} : { command }
  return { ...plain, message: `${plain.message}; ${instead}`, fields }
}
