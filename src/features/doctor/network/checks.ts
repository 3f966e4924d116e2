import type { Proxy } from '../../../config/proxies.ts'
import type { Config } from '../../../config/schema.ts'
import { messageOf } from '../../../base/errors.ts'
import { agentName } from '../../../upstream/client.ts'
import { networkError } from '../../../upstream/http/response.ts'
import { isCertificateError } from '../../../upstream/http/certificates.ts'
import { connectTimeoutOf, proxyStatus } from '../../../upstream/http/transport.ts'
import { type DoctorCheck, type Finding, failure, fine, skipped, worst } from '../check.ts'
import type { DoctorWorld } from '../world.ts'
import { resolveHost, tryRequest, tryTcp, tryTls } from './probes.ts'
import { type NetworkTarget, networkTargets } from './targets.ts'
import { boundedUpstream } from '../../../upstream/bounded.ts'

/** What a check finds at each host; null: it does not apply to this one. */
type AtTarget = (target: NetworkTarget) => Promise<Finding | null>

/** Creates the checks of the way to the service: proxy, DNS, TCP, TLS. */
export function networkChecks(world: DoctorWorld, config: Config): DoctorCheck[] {
  const limits = boundedUpstream(config.upstream, world.timeoutMs)
  const ms = connectTimeoutOf(limits)
  const targets = (): NetworkTarget[] => networkTargets(config, world.env)
  /** The result of one request through a proxy, for all checks that it concerns; null: it succeeded. */
  const proxied = memoizeByOrigin(async ({ url }: NetworkTarget): Promise<{ error: unknown } | null> => {
    try {
      await tryRequest(url, limits, agentName(limits, world.version))
      return null
    } catch (error) {
      return { error }
    }
  })
  const each = (name: string, title: string, needs: string[], none: string, at: AtTarget): DoctorCheck => ({
    name,
    title,
    needs: ['settings', ...needs],
    async run() {
      const all = await Promise.all(targets().map(at))
      const findings = all.filter((one) => one !== null)
      const isFirst = ({ found }: Finding, at: number): boolean =>
        findings.findIndex((other) => other.found === found) === at // two surfaces may be on one host
      return worst(findings.filter(isFirst), skipped(targets().length === 0 ? NO_UPSTREAM : none))
    },
  })
  return [
    each('proxy', 'proxy', [], 'no proxy is set', async (target) => {
      if (target.proxy === null) return null
      return (await proxyFault(target.proxy, ms)) ?? refusedByProxy(target, await proxied(target))
    }),
    each('dns', 'DNS', ['proxy'], 'the proxy looks up the hosts', (target) => dns(target)),
    each('tcp', 'TCP connection', ['proxy', 'dns'], 'no host is connected to', async (target) =>
      target.proxy === null ? tcp(target, ms) : beyondProxy(target, await proxied(target)),
    ),
    each(
      'tls',
      'TLS and certificate authorities',
      ['proxy', 'dns', 'tcp'],
      'the addresses are http://',
      async (target) => {
        if (target.url.protocol !== 'https:') return null
        return target.proxy === null ? tls(target, limits) : tlsThroughProxy(target, await proxied(target))
      },
    ),
  ]
}

/** The reason of a check that needs the service, on a mirror without one. */
export const NO_UPSTREAM = 'upstream.apiRoot is not set, so this mirror asks no service'

/** Names the host of a message and the setting that it is from. */
const placeOf = ({ url, setting }: NetworkTarget): string => `${url.host} (${setting})`

const nameOf = ({ url, setting }: Proxy): string => {
  const { protocol, host } = new URL(url)
  return `the proxy ${protocol}//${host} of ${setting}`
}

async function proxyFault(proxy: Proxy, ms: number): Promise<Finding | null> {
  try {
    await tryTcp(new URL(proxy.url), ms)
    return null
  } catch (error) {
    const { message } = networkError(error, nameOf(proxy), ms)
    const action = `Correct ${proxy.setting}, start the proxy, or name the host in NO_PROXY to reach it directly.`
    return failure(message, action)
  }
}

type Outcome = { error: unknown } | null

/** A proxy's own refusal is its status below 500; another one is about the host behind it. */
function refusedByProxy(target: NetworkTarget, outcome: Outcome): Finding {
  const status = outcome === null ? null : proxyStatus(outcome.error)
  const through = target.proxy === null ? 'no proxy' : nameOf(target.proxy)
  if (outcome === null || status === null || status >= 500)
    return fine(`${placeOf(target)} is reached through ${through}`)
  const { message } = networkError(outcome.error, placeOf(target), 0)
  return failure(message, 'Change what the message names at the proxy, or in its setting.')
}

async function dns(target: NetworkTarget): Promise<Finding | null> {
  if (target.proxy !== null) return null
  try {
    return fine(`${target.url.hostname} is ${(await resolveHost(target.url)).join(', ')}`)
  } catch (error) {
    const action = `Correct ${target.setting}, or the resolver of this machine (/etc/resolv.conf). Where only a proxy looks names up, set upstream.proxy.`
    return failure(`${placeOf(target)} has no address: ${messageOf(error)}`, action)
  }
}

async function tcp(target: NetworkTarget, ms: number): Promise<Finding> {
  try {
    await tryTcp(target.url, ms)
    return fine(`${target.url.host} accepts connections`)
  } catch (error) {
    const { message } = networkError(error, placeOf(target), ms)
    const action = `Check the port of ${target.setting} and the firewall, or set upstream.proxy where a proxy is the only way out.`
    return failure(message, action)
  }
}

function beyondProxy(target: NetworkTarget, outcome: Outcome): Finding {
  if (outcome === null || isCertificateError(outcome.error))
    return fine(`${target.url.host} is reached through the proxy`)
  const { message } = networkError(outcome.error, placeOf(target), 0)
  return failure(message, `Check ${target.setting}, and whether the proxy reaches that host.`)
}

async function tls(target: NetworkTarget, limits: Config['upstream']): Promise<Finding> {
  try {
    const { issuer, validTo } = await tryTls(target.url, limits, connectTimeoutOf(limits))
    return fine(`${target.url.host} has a trusted certificate of ${issuer}, valid to ${validTo}`)
  } catch (error) {
    return tlsFailure(target, error, connectTimeoutOf(limits))
  }
}

function tlsThroughProxy(target: NetworkTarget, outcome: Outcome): Finding {
  return outcome === null ? fine(`${target.url.host} has a trusted certificate`) : tlsFailure(target, outcome.error, 0)
}

function tlsFailure(target: NetworkTarget, error: unknown, ms: number): Finding {
  const action = isCertificateError(error)
    ? 'Set upstream.caFile to the PEM file of the authority that signed the certificate, where the message asks for it.'
    : `Check that ${target.setting} is an https address, and what on the way changes the connection.`
  return failure(networkError(error, placeOf(target), ms).message, action)
}

function memoizeByOrigin<T>(work: (target: NetworkTarget) => Promise<T>): (target: NetworkTarget) => Promise<T> {
  const made = new Map<string, Promise<T>>()
  return (target) => {
    const { origin } = target.url
    const result = made.get(origin) ?? work(target)
    made.set(origin, result)
    return result
  }
}
