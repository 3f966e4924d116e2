import type { Config } from '../../../config/schema.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { counted, isHtmlPage } from '../../../base/text.ts'
import { RESOURCES } from '../../../base/domain/resources.ts'
import { NEEDS_CREDENTIAL } from '../../../base/domain/run-facts.ts'
import { SWITCHES } from '../../../base/domain/sources.ts'
import type { RunSummary } from '../../../base/reports/runs.ts'
import { TOLERATED_MS, clockDifference, describeClock } from '../../../upstream/clock-check.ts'
import { isForWrongKeys, isKeyRefused, statusOf } from '../../../upstream/http/errors.ts'
import { learn, unknownQuota } from '../../../upstream/http/quota.ts'
import type { OpenAnswer } from '../../../upstream/http/response.ts'
import { type UpstreamSurface, createUpstream } from '../../../upstream/surfaces.ts'
import { type Finding, failure, fine, skipped, warning } from '../check.ts'
import type { DoctorWorld, Examined, ServiceProbe } from '../world.ts'
import { NO_UPSTREAM } from './checks.ts'
import { boundedUpstream } from '../../../upstream/bounded.ts'

/** Opens the service for the checks; `close` it after them. */
export function openProbe({ version, now, timeoutMs }: DoctorWorld, config: Config): ServiceProbe {
  const quota = unknownQuota()
  const bounded = { ...config, upstream: boundedUpstream(config.upstream, timeoutMs) }
  const clock = {
    observe(headers: Parameters<typeof clockDifference>[0], sentAt: number, at: number): void {
      probe.clock ??= clockDifference(headers, sentAt, at)
      learn(quota, { status: 200, headers }, null, at, at)
    },
  }
  const upstream = createUpstream({ config: bounded, version, now, clock })
  const probe: ServiceProbe = { upstream, quota, clock: null, refusal: null, isKeyLimited: false }
  return probe
}

/** Sends a GET to a path of a surface; the caller ends the body. Throws `upstream_*`. */
function ask(
  { upstream }: ServiceProbe,
  surface: UpstreamSurface,
  path: string,
  timeoutMs: number,
): Promise<OpenAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs)
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  // A session of its own: after a refusal a session sends nothing more.
  return upstream.client(surface).open(deadline, 'ops').openBody(path, headers, deadline)
}

const INDEX = '/external/osv/all.json'
/** The first bytes of JSON. */
const JSON_START = /^(\xef\xbb\xbf)?\s*[[{]/
/** The first two bytes of gzip, which some servers send unasked. */
const GZIP_START = '\u001f\u008b'

/** Returns the first bytes of a body that are not white space, and ends it. */
async function startOf(body: OpenAnswer['body']): Promise<string> {
  let start = ''
  for await (const chunk of body) {
    start += chunk.toString('latin1')
    if (start.trimStart() !== '' || start.length > 1000) break // leaving the loop ends the body
  }
  return start
}

function isJsonStart(start: string): boolean {
  return JSON_START.test(start) || start.startsWith(GZIP_START)
}

/** Asks for the index of the public feeds. */
export async function service({ world: { timeoutMs }, config, probe }: Examined): Promise<Finding> {
  if (config.upstream.apiRoot === null) return skipped(NO_UPSTREAM)
  try {
    const { body, status, meta } = await ask(probe, 'public', INDEX, timeoutMs)
    const start = await startOf(body)
    if (isJsonStart(start)) return fine(`GET ${INDEX}: ${status} with JSON`)
    const isPage = isHtmlPage(start)
    return failure(
      `GET ${INDEX} is answered with ${isPage ? 'an HTML page' : `no JSON (${meta.contentType})`}`,
      'Something between this mirror and the service answers, such as a proxy or a sign-in page, or upstream.apiRoot is another server: correct the address, or have the host excepted there.',
    )
  } catch (error) {
    return failure(
      messageOf(error),
      'The service, or a server on the way to it, does not answer as it should: check upstream.apiRoot, try again later, or ask the operator of the service.',
    )
  }
}

/** Compares the clock of this machine with the dates of the answers. */
export function clock({ config, probe: { clock: ahead } }: Examined): Finding {
  if (config.upstream.apiRoot === null) return skipped(NO_UPSTREAM)
  if (ahead === null) return skipped('the response has no date of the service (it came from a cache, or without one)')
  if (Math.abs(ahead) <= TOLERATED_MS) return fine(`no more than ${TOLERATED_MS / 1000} s from upstream's clock`)
  return failure(describeClock(ahead), 'Set the clock of this machine (NTP).')
}

/** A path that the mirror reads with a credential. */
interface ReadPath {
  readonly surface: UpstreamSurface
  readonly name: string
  readonly path: string
}

function pathsOf({ catalog }: Config, { upstream }: ServiceProbe): ReadPath[] {
  return RESOURCES.flatMap(({ surface, name, personal, list, item }) => {
    const path = list?.path ?? item
    if (path === null || surface === 'catalog' || !upstream.has(surface)) return []
    if (personal !== null && !catalog.personalData.includes(personal)) return []
    return [{ surface, name, path: path.replace(/^\/v1/, '') }]
  })
}

const REPLACE =
  'Replace the credential by one that the service accepts; where it is a file, a running daemon takes the new content by itself.'
const ALLOW =
  'Set the credential of an account that may read all of it, or leave out what it may not read; "patchmirror config" shows where the credential was read from.'

/** Asks for each list that the mirror reads with a credential. */
export async function credential({ world, config, probe }: Examined): Promise<Finding> {
  const paths = pathsOf(config, probe)
  if (paths.length === 0)
    return skipped(
      config.upstream.apiRoot === null
        ? 'this mirror asks no service'
        : `no credential is set, so only the public feeds are mirrored. The catalog (tags, SBOMs, VEX, packages, patches) is not: ${SWITCHES.catalog}`,
    )
  const readable: string[] = []
  const faults: string[] = []
  let wasRefused = false
  for (const { surface, name, path } of paths) {
    const error = await errorOf(probe, surface, path, world.timeoutMs)
    if (error === null) readable.push(name)
    else if (statusOf(error) === 429) return limited(probe, error, await refusedRun(world, config))
    else if (statusOf(error) === 404)
      continue // this deployment does not have it
    else faults.push(messageOf(error))
    if ((wasRefused = isKeyRefused(error))) break // the others would be too, and could lock the account
  }
  if (faults.length === 0) return fine(`it may read: ${readable.join(', ')}`)
  const able = readable.length === 0 ? '' : `; it may read: ${readable.join(', ')}`
  return failure([...new Set(faults)].join('; ') + able, wasRefused ? REPLACE : ALLOW)
}

/** A 429 is about the credential where it counts wrong keys, or where the last run was refused for it; else about rates. */
function limited(probe: ServiceProbe, error: unknown, run: RunSummary | null): Finding {
  const found = messageOf(error)
  probe.isKeyLimited = run !== null || isForWrongKeys(error)
  if (!probe.isKeyLimited) return skipped((probe.refusal = found))
  const before = run === null ? '' : `; run ${run.id} of the catalog failed: ${run.message ?? 'access was refused'}`
  return failure(found + before, REPLACE)
}

/** The last run of the catalog, if it failed because the service refused the credential; what cannot be read is for other checks. */
async function refusedRun(world: DoctorWorld, config: Config): Promise<RunSummary | null> {
  const status = await world.readStatus(config).catch(() => null)
  const run = status?.sources.find(({ name }) => name === 'catalog')?.wrongRun ?? null
  return run?.code === 'upstream_auth' && run.facts[NEEDS_CREDENTIAL] === undefined ? run : null
}

async function errorOf(
  probe: ServiceProbe,
  surface: UpstreamSurface,
  path: string,
  timeoutMs: number,
): Promise<unknown> {
  try {
    const { body } = await ask(probe, surface, path, timeoutMs)
    const start = await startOf(body)
    if (isJsonStart(start)) return null
    const what = isHtmlPage(start)
      ? 'answered with an HTML page instead of JSON (a sign-in page or a proxy?)'
      : 'not answered with JSON'
    return new MirrorError('upstream_shape', `${path} of the ${surface} surface is ${what}`)
  } catch (error) {
    return error
  }
}

/** Share of the limit below which the mirror has to wait for the next window. */
const LOW = 0.1

/** Says what the answers before had of the rate limit. */
export function rate({ probe: { quota, refusal, isKeyLimited, upstream } }: Examined): Finding {
  if (!upstream.has('public')) return skipped(NO_UPSTREAM)
  if (isKeyLimited) return skipped('the service limits requests for a refused key, see credential')
  const action =
    'Find out what else uses this account, space out the schedules, or ask the operator of the service for a higher limit.'
  if (refusal !== null) return failure(refusal, action)
  if (quota.limit === null) return fine('the responses name no limit')
  const found = `${quota.remaining} of ${counted(quota.limit, 'request')} left in this window`
  return quota.remaining >= quota.limit * LOW ? fine(found) : warning(found, action)
}
