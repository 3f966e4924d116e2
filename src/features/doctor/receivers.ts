import { createProxyRule } from '../../config/proxies.ts'
import type { Config } from '../../config/schema.ts'
import { relayUrls } from '../../config/kinds/urls.ts'
import { endpointsOf } from '../../config/kinds/webhooks.ts'
import { counted } from '../../base/text.ts'
import { agentName } from '../../upstream/client.ts'
import { networkError } from '../../upstream/http/response.ts'
import { servingDaemon } from '../../store/database/lock.ts'
import { type DoctorCheck, type Finding, failure, fine, skipped, warning, worst } from './check.ts'
import { tryRequest, tryTcp } from './network/probes.ts'
import type { DoctorWorld } from './world.ts'
import { boundedUpstream } from '../../upstream/bounded.ts'
import { connectTimeoutOf } from '../../upstream/http/transport.ts'

/** Creates the checks of where events arrive, and of where they are passed on to. */
export function receiverChecks(world: DoctorWorld, config: Config): DoctorCheck[] {
  return [
    {
      name: 'endpoint',
      title: 'webhook endpoint',
      needs: ['settings', 'lock'],
      run: () => endpoint(world, config),
    },
    {
      name: 'relay',
      title: 'targets of the relay',
      needs: ['settings', 'database', 'schema'],
      run: () => relay(world, config),
    },
    {
      name: 'dead-letters',
      title: 'events that were given up',
      needs: ['settings', 'database', 'schema'],
      run: () => deadLetters(world, config),
    },
  ]
}

async function endpoint(world: DoctorWorld, config: Config): Promise<Finding> {
  const { server, webhooks, data } = config
  if (world.readSecrets(config).length === 0) return skipped('no webhook secret is stored: events are not received')
  if (servingDaemon(data.dir) === null) return skipped('no daemon is running, so no endpoint is open')
  const own = webhooks.port !== null
  if (server.publicUrl === null && own)
    return skipped('webhooks.port has a listener of its own, and server.publicUrl does not say where clients find it')
  const daemon = server.publicUrl === null ? await world.findDaemon(config, null) : null
  const base = server.publicUrl ?? daemon?.url
  if (base === undefined) return skipped('the address of the daemon is not known')
  const paths = endpointsOf(webhooks).map(({ path }) => path)
  const limits = { ...boundedUpstream(config.upstream, world.timeoutMs), proxy: null }
  const statusOf = (path: string): Promise<number> =>
    daemon?.statusOf(path) ?? tryRequest(new URL(base + path), limits, agentName(limits, world.version))
  const findings = paths.map(async (path): Promise<Finding> => {
    const shown = base + path
    try {
      const status = await statusOf(path)
      // The endpoint takes POST alone: 405 is its answer to a GET.
      if (status === 405) return fine(`${shown} is open`)
      const found = `${shown} is answered with ${status}, not by the webhook endpoint (405 to a GET)`
      return failure(found, 'Pass this path on to the daemon in the reverse proxy, or correct server.publicUrl.')
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

/** Names a target by its scheme and host: the rest of its URL may be a token. */
async function relay(world: DoctorWorld, config: Config): Promise<Finding> {
  const urls = relayUrls(config.relay)
  if (urls.length === 0) return skipped('no target is set (relay.targets)')
  const targets = world.readTargets(config)
  const rule = createProxyRule(null, world.env)
  const connectTimeoutMs = connectTimeoutOf(boundedUpstream(config.upstream, world.timeoutMs))
  const findings = urls.map(async (text): Promise<Finding> => {
    const url = new URL(text)
    const known = targets.find((one) => one.url === text)
    if (known?.state === 'disabled')
      return failure(
        `${url.origin} is disabled: ${known.reason ?? 'it refused events'}`,
        `Correct the receiver, then run: patchmirror relay enable ${known.id}`,
      )
    if (known?.state === 'failing')
      return warning(
        `${url.origin} fails, ${counted(known.pending, 'event is', 'events are')} waiting: ${known.reason ?? ''}`,
        `Correct the receiver; "patchmirror relay enable ${known.id}" tries it at once.`,
      )
    const proxy = rule(url)
    try {
      await tryTcp(proxy === null ? url : new URL(proxy.url), connectTimeoutMs)
      return fine(`${url.origin} accepts connections${proxy === null ? '' : ` through ${proxy.setting}`}`)
    } catch (error) {
      const { message } = networkError(error, url.origin, connectTimeoutMs)
      return warning(message, 'Check the receiver, its address (relay.targets, relay.chatTargets) and the firewall.')
    }
  })
  return worst(await Promise.all(findings), skipped('no target is set'))
}

/** Warns of events that nothing handles any more until somebody decides. */
function deadLetters(world: DoctorWorld, config: Config): Finding {
  const counts = world.readInboxCounts(config)
  if (counts === null) return skipped('no delivery is stored, or webhooks.db cannot be read yet')
  if (counts.dead === 0) return fine('no event was given up')
  return warning(
    `${counted(counts.dead, 'event was', 'events were')} given up`,
    'See "patchmirror webhooks dead-letters" for the reasons; "patchmirror webhooks replay --failed" tries them again, "patchmirror webhooks dismiss --all" ends this warning.',
  )
}
