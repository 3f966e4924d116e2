import { createProxyRule } from '../../config/proxies.ts'
import type { Config } from '../../config/schema.ts'
import { type NamedTarget, relayTargets } from '../../config/kinds/relay-targets.ts'
import { ENDPOINT_METHODS } from '../../webhooks/receive/responses.ts'
import { endpointsOf } from '../../config/kinds/webhooks.ts'
import { agentName } from '../../upstream/client.ts'
import { networkError } from '../../upstream/http/response.ts'
import { servingDaemon } from '../../store/database/lock.ts'
import { type Finding, failure, fine, skipped, warning, worst } from './check.ts'
import { findingOf, listedFindings, listedFor } from './listed.ts'
import { tryRequest, tryTcp } from './network/probes.ts'
import { type DoctorWorld, type Examined, NO_SECRET, type PathAnswer, unreadSecrets, validSecrets } from './world.ts'
import { boundedUpstream } from '../../upstream/bounded.ts'
import { connectTimeoutOf } from '../../upstream/http/transport.ts'

const PASS_ON = 'Pass this path on to the daemon in the reverse proxy (POST and OPTIONS), or correct server.publicUrl.'

/** Asks the endpoints of deliveries where clients find them. */
export async function endpoint({ world, config }: Examined): Promise<Finding> {
  const { server, webhooks, data } = config
  if (validSecrets(world, config).length === 0) return skipped(unreadSecrets(config) ?? NO_SECRET)
  if (servingDaemon(data.dir) === null) return skipped('no daemon is running, so no endpoint is open')
  const own = webhooks.port !== null
  if (server.publicUrl === null && own)
    return skipped('webhooks.listen is a listener of its own, and server.publicUrl does not say where clients find it')
  const daemon = server.publicUrl === null ? await world.findDaemon(config, null) : null
  const base = server.publicUrl ?? daemon?.url
  if (base === undefined) return skipped('the address of the daemon is not known')
  const paths = endpointsOf(webhooks).map(({ path }) => path)
  const limits = { ...boundedUpstream(config.upstream, world.timeoutMs), proxy: null }
  const optionsOf = (path: string): Promise<PathAnswer> =>
    daemon?.optionsOf(path) ?? tryRequest(new URL(base + path), limits, agentName(limits, world.version), 'OPTIONS')
  const findings = paths.map(async (path): Promise<Finding> => {
    const shown = base + path
    try {
      const { status, allow } = await optionsOf(path)
      // The endpoint logs and counts any other request as one that it refused.
      if (status === 200 && allow === ENDPOINT_METHODS) return fine(`${shown} is open`)
      const found = `OPTIONS ${shown} is answered with ${status}, not by the webhook endpoint (200, Allow: ${ENDPOINT_METHODS})`
      return failure(found, PASS_ON)
    } catch (error) {
      const { message } = networkError(error, base, limits.requestTimeoutMs)
      return warning(
        `the endpoint is not reachable from this machine: ${message}`,
        'Check server.publicUrl and the reverse proxy; where only the outside reaches it, send a test event: "patchmirror webhooks test ID".',
      )
    }
  })
  return worst(await Promise.all(findings), skipped('there is no endpoint'))
}

/** Returns what the list of problems has of the targets, and whether the hosts of the others accept connections. */
export async function relay({ world, config }: Examined): Promise<Finding> {
  const status = await world.readStatus(config)
  const listed = listedFor('relay', status, config, world.now())
  const troubled = status?.relay.filter(({ state }) => state !== 'ok').map(({ target }) => target) ?? []
  const rest = relayTargets(config.relay).filter(({ url }) => !troubled.includes(new URL(url).origin))
  const probed = await Promise.all(rest.map((one) => probeTarget(world, config, one)))
  return worst([...listed.map(findingOf), ...probed], skipped('no target is set (relay.targets)'))
}

/** Names a target by its name, and by its scheme and host: the rest of its URL may be a token. */
async function probeTarget(world: DoctorWorld, config: Config, target: NamedTarget): Promise<Finding> {
  const url = new URL(target.url)
  const shown = target.name === null ? url.origin : `${target.name} (${url.origin})`
  const proxy = createProxyRule(null, world.env)(url)
  const connectTimeoutMs = connectTimeoutOf(boundedUpstream(config.upstream, world.timeoutMs))
  try {
    await tryTcp(proxy === null ? url : new URL(proxy.url), connectTimeoutMs)
    return fine(`${shown} accepts connections${proxy === null ? '' : ` through ${proxy.setting}`}`)
  } catch (error) {
    const { message } = networkError(error, shown, connectTimeoutMs)
    return warning(message, 'Check the receiver, its address (relay.targets) and the firewall.')
  }
}

const NONE_WAITS = 'no event that was given up waits for a decision'

/** Returns what the list of problems has of webhooks: events that nothing handles until somebody decides, and events that stay away. */
export async function deadLetters({ world, config }: Examined): Promise<Finding> {
  const status = await world.readStatus(config)
  const listed = listedFindings(world, config, status, 'dead-letters')
  if (status === null || status.webhooks?.counts === null) return worst(listed, skipped('deliveries cannot be counted'))
  return worst(listed, status.webhooks === undefined ? skipped('no delivery is stored') : fine(NONE_WAITS))
}

/** Returns what the daemon says of the caches that it purges. */
export async function edge({ world, config }: Examined): Promise<Finding> {
  const status = await world.readStatus(config)
  const caches = status?.edge ?? []
  const sound = fine(caches.map(({ id, state }) => `${id}: ${state}`).join(', '))
  const none = skipped('no running daemon has a cache to purge (edge)')
  return worst(listedFindings(world, config, status, 'edge'), caches.length === 0 ? none : sound)
}
