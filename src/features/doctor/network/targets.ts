import { type Proxy, createProxyRule } from '../../../config/proxies.ts'
import type { Config } from '../../../config/schema.ts'

/** A host that the mirror connects to. */
export interface NetworkTarget {
  /** Its root, as the setting names it. */
  readonly url: URL
  readonly setting: string
  /** Null: it is reached directly. */
  readonly proxy: Proxy | null
}

/** Returns the hosts of the service that these settings name, each once. Throws `config` for a proxy that is no URL of one. */
export function networkTargets({ upstream, oauth, identity }: Config, env: NodeJS.ProcessEnv): NetworkTarget[] {
  const rule = createProxyRule(upstream.proxy, env)
  const roots: [string, string | null][] = [
    ['upstream.apiRoot', upstream.apiRoot],
    ['upstream.catalogUrl', upstream.catalogUrl],
    ['identity.apiUrl', identity.apiUrl],
    ['oauth.authUrl', oauth.authUrl],
  ]
  const targets = roots.flatMap(([setting, root]) => {
    if (root === null) return []
    const url = new URL(root)
    return [{ url, setting, proxy: rule(url) }]
  })
  const byOrigin = new Map(targets.toReversed().map((target) => [target.url.origin, target]))
  return [...byOrigin.values()].toReversed()
}

/** Returns the host name of a URL without the brackets of an IPv6 address, and its port. */
export function hostAndPort({ hostname, port, protocol }: URL): { host: string; port: number } {
  const usual = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) }
}
