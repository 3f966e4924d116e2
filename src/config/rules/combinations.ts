import { checkBundles } from './bundles.ts'
import { checkCredentials, isTrusted } from './credentials.ts'
import { checkFleet } from './fleet.ts'
import { parseScopeEntry } from '../../base/domain/osv-scope.ts'
import { ecosystemNames } from '../../base/versions/ecosystems.ts'
import { nearest } from '../nearest.ts'
import { type Checked, place } from '../problems.ts'
import { SETTINGS } from '../settings.ts'
import { checkServer } from './server.ts'
import { checkWebhooks } from './webhooks.ts'
import { decodedKey } from '../kinds/keys.ts'
import { relayTargets } from '../kinds/relay-targets.ts'
import { isLoopbackHost } from '../kinds/urls.ts'

/** Problems that show only when settings are seen together. A key already refused is left alone. */
export function checkTogether(checked: Checked, requireUpstream: boolean): string[] {
  return [
    ...checkPresence(checked),
    ...checkCredentials(checked),
    ...checkServer(checked),
    ...checkWebhooks(checked),
    ...checkRelay(checked),
    ...checkSignatures(checked),
    ...checkBundles(checked),
    ...checkEdge(checked),
    ...checkFleet(checked),
    ...checkOsvScope(checked),
    ...(requireUpstream ? checkUpstream(checked) : []),
  ]
}

/** Only an edited or cut-off default.yaml can leave a setting without any value. */
function checkPresence({ values, refused }: Checked): string[] {
  return SETTINGS.filter(({ key }) => !values.has(key) && !refused.has(key)).map(
    ({ key }) => `${key}: missing from the shipped defaults; restore config/default.yaml`,
  )
}

function checkUpstream({ values, refused }: Checked): string[] {
  const key = 'upstream.apiRoot'
  if (refused.has(key) || typeof values.get(key) === 'string') return []
  return [
    `${key}: not set, and there is no default. Give the root URL of the service in the settings file (--config FILE) as ` +
      'upstream: { apiRoot: https://api.example.com }, or in the environment as ' +
      'PATCHMIRROR_UPSTREAM_API_ROOT=https://api.example.com. Where no network leads, "patchmirror bundle import FILE" takes ' +
      'bundles instead, and "patchmirror bundle import --again FILE" (a full one) repairs what is damaged.',
  ]
}

/** Without anything that is trusted no artifact can be verified: with `enforce` none would ever be published. */
function checkSignatures(checked: Checked): string[] {
  const { values, refused } = checked
  const key = 'catalog.signatures'
  const mode = values.get(key)
  const trusted = values.get('catalog.trustRoot')
  if (refused.has(key) || refused.has('catalog.trustRoot')) return []
  if (mode !== 'warn' && mode !== 'enforce') return []
  if (Array.isArray(trusted) && trusted.length > 0) return []
  return [
    `${place(checked, key)}: is ${mode}, and catalog.trustRoot names nothing that is trusted. ` +
      'Give a file of public keys or a trusted_root.json there, or set off.',
  ]
}

/** Problems of the relay's settings that show only together. Neither a target nor the secret is quoted. */
function checkRelay(checked: Checked): string[] {
  const { values, refused } = checked
  const problems: string[] = []
  const secret = values.get('relay.secret')
  if (typeof secret === 'string' && decodedKey(secret) === null)
    problems.push(
      `${place(checked, 'relay.secret')}: is not whsec_ and base64, as Standard Webhooks wants it. ` +
        'Give one that is, or null: the mirror then makes its own.',
    )
  const targets = refused.has('relay.targets') ? [] : ((values.get('relay.targets') ?? []) as string[])
  const named = relayTargets({ targets })
  const urls = named.map(({ url }) => url)
  const names = named.flatMap(({ name }) => name ?? [])
  if (new Set(urls).size < urls.length)
    problems.push(`${place(checked, 'relay.targets')}: a URL is there twice. Give it one name, and chat+ or not.`)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined)
    problems.push(
      `${place(checked, 'relay.targets')}: two targets have the name ${twice}. Give each a name of its own.`,
    )
  for (const [at, url] of urls.entries()) {
    const { protocol, hostname } = new URL(url)
    if (protocol === 'https:' || isLoopbackHost(hostname) || isTrusted(checked, hostname)) continue
    problems.push(
      `${place(checked, 'relay.targets')}: (entry ${at + 1}) is plain http to another machine, where the network path ` +
        'is not protected. Use https, or name its host in network.trusted where the way there is trusted as a whole.',
    )
  }
  return problems
}

/** Problems of the settings of shared caches that show only together: purges that could reach nothing. */
function checkEdge(checked: Checked): string[] {
  const { values, refused } = checked
  const purge = values.get('edge.purge')
  if (!Array.isArray(purge) || purge.length === 0) return []
  const problems: string[] = []
  if (values.get('edge.maxAgeSeconds') === 0 && !refused.has('edge.maxAgeSeconds'))
    problems.push(
      `${place(checked, 'edge.purge')}: ${place(checked, 'edge.maxAgeSeconds')} is 0, so no shared cache keeps anything that could be purged. Give the seconds, or remove the URLs.`,
    )
  if (values.get('edge.tagHeader') === 'none' && !refused.has('edge.tagHeader'))
    problems.push(
      `${place(checked, 'edge.purge')}: ${place(checked, 'edge.tagHeader')} is none, so a purge names nothing. Give the header that the cache reads: xkey, Surrogate-Key or Cache-Tag.`,
    )
  return problems
}

/**
 * Problems of the entries of `osv.scope`: by a mistyped ecosystem no record is in scope, and nothing else would show it. An ecosystem is one
 * of the OSV schema, with or without a release, that of a vendor, or a vendor of `views.vendors`.
 */
function checkOsvScope(checked: Checked): string[] {
  const { values, refused } = checked
  const key = 'osv.scope'
  const entries = values.get(key)
  if (refused.has(key) || refused.has('views.vendors') || !Array.isArray(entries)) return []
  const vendors = values.get('views.vendors')
  const own = Array.isArray(vendors) ? vendors.map(String) : []
  return entries.map(String).flatMap((entry) => {
    const hint = whyNoEcosystem(entry, own)
    if (hint === null) return []
    return [
      `${place(checked, key)}: ${JSON.stringify(entry)} is no ecosystem of OSV records and no vendor of views.vendors${hint} ` +
        'The beginning of record ids ends with - or *.',
    ]
  })
}

/** Returns the end of a sentence about an entry that names no ecosystem; null for all others. */
function whyNoEcosystem(entry: string, own: readonly string[]): string | null {
  const parsed = parseScopeEntry(entry.replace(/^!/, ''))
  if (parsed === null || !('ecosystem' in parsed)) return null
  const { names, vendors } = ecosystemNames()
  const all = [...names, ...vendors, ...own]
  const isIn = (text: string | undefined, among: readonly string[]): boolean =>
    among.some((one) => one.toLowerCase() === text)
  const [first = '', second] = parsed.ecosystem.split(':')
  if (isIn(first, names) || isIn(second, names)) return null
  if (second === undefined && isIn(first, all)) return null
  const meant = nearest(
    first,
    all.map((one) => one.toLowerCase()),
  )
  return meant === null ? '.' : `; did you mean ${all.find((one) => one.toLowerCase() === meant) ?? meant}?`
}
