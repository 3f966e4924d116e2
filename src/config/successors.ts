import { AGED } from './sections/ages.ts'
import { ENV_PREFIX } from './settings.ts'

/** The kinds of doubt of earlier versions, of which each had a mode and two limits of its own. */
const KINDS = [
  'fixLowered',
  'rangesLost',
  'ecosystemChanged',
  'severityChanged',
  'emptied',
  'withdrawn',
  'futureModified',
  'notCompared',
  'incomparable',
]

/** What took the place of a setting: the key of another, and a value for it. */
interface Successor {
  readonly key: string
  readonly value: Value
}

type Scalar = string | number | boolean
type Value = Scalar | readonly Scalar[] | Readonly<Record<string, Scalar>>

const CHANGED = { changed: '1% and 20' }
const VIEWS = ['bucket', 'derived', 'query', 'vex', 'findings']
const PATTERNS = ['image:library/*', '!image:library/*-rc']
const TRUSTED = ['s3.internal', '10.0.0.0/8']
const REMOVED = { removed: '10% and 20' }

/** Settings that are no longer there, the setting that has taken the place of each, and how it is written there. */
const SUCCESSORS: readonly (readonly [former: string, successor: string, value: Value])[] = [
  ...KINDS.flatMap((kind) => [
    [`guard.${kind}`, 'guard.mode', 'enforce'] as const,
    [`guard.${kind}Records`, 'guard.limit', CHANGED] as const,
    [`guard.${kind}Fraction`, 'guard.limit', CHANGED] as const,
  ]),
  ['guard.limitShare', 'guard.limit', CHANGED],
  ['guard.limitCount', 'guard.limit', CHANGED],
  ['guard.windowDays', 'guard.window', '7d'],
  ['osv.guardFraction', 'guard.limit', REMOVED],
  ['osv.guardRecords', 'guard.limit', REMOVED],
  ['feeds.guardFraction', 'guard.limit', REMOVED],
  ['feeds.guardEntries', 'guard.limit', REMOVED],
  ['catalog.guardFraction', 'guard.limit', REMOVED],
  ['catalog.guardItems', 'guard.limit', REMOVED],
  ['data.tombstoneDays', 'data.historyDays', 90],
  ['data.changeDays', 'data.historyDays', 90],
  ['history.keepDays', 'data.historyDays', 90],
  ['upstream.maxJsonBytes', 'upstream.maxBytes', { json: '256 MB' }],
  ['upstream.maxRecordBytes', 'upstream.maxBytes', { record: '32 MB' }],
  ['upstream.maxArchiveBytes', 'upstream.maxBytes', { archive: '8 GB' }],
  ['catalog.maxListBytes', 'upstream.maxBytes', { list: '1 GB' }],
  ['catalog.concurrency', 'upstream.concurrency', 16],
  ['osv.include', 'osv.scope', ['npm', '!Ubuntu']],
  ['osv.exclude', 'osv.scope', ['npm', '!Ubuntu']],
  ['catalog.include', 'catalog.patterns', PATTERNS],
  ['catalog.exclude', 'catalog.patterns', PATTERNS],
  ['catalog.avrIds', 'catalog.patterns', ['avr:8f14e45f']],
  ['catalog.mirrorApiKeys', 'catalog.personalData', ['apiKeys']],
  ['identity.mirrorUsers', 'catalog.personalData', ['users']],
  ...['upstream', 'identity'].flatMap((section) => [
    [`${section}.clientId`, 'oauth.clientId', '8f14e45f'] as const,
    [`${section}.clientSecret`, 'oauth.clientSecret', 'the-secret-of-the-client'] as const,
    [`${section}.authUrl`, 'oauth.authUrl', 'https://auth.example.com'] as const,
    [`${section}.audience`, 'oauth.audience', 'https://identity.example.com/v1'] as const,
    [`${section}.allowPlainHttp`, 'network.trusted', TRUSTED] as const,
  ]),
  ['identity.token', 'identity.apiKey', 'the-token'],
  ['relay.allowPlainHttp', 'network.trusted', TRUSTED],
  ['catalog.allowPrivateArtifacts', 'network.trusted', TRUSTED],
  ['server.host', 'server.listen', '127.0.0.1:8080'],
  ['server.port', 'server.listen', '127.0.0.1:8080'],
  ['server.socket', 'server.listen', 'unix:/run/pm.sock?mode=0660'],
  ['server.socketMode', 'server.listen', 'unix:/run/pm.sock?mode=0660'],
  ['webhooks.host', 'webhooks.listen', '0.0.0.0:8443'],
  ['webhooks.port', 'webhooks.listen', '0.0.0.0:8443'],
  ['webhooks.path', 'webhooks.endpoints', ['default=/-/webhooks']],
  ['fleet.region', 'fleet.endpoint', 'https://s3.eu-central-1.amazonaws.com?region=eu-central-1'],
  ['fleet.pathStyle', 'fleet.endpoint', 'https://s3.internal:8333?pathStyle=false'],
  ['fleet.caFile', 'upstream.caFile', '/etc/ssl/certs/internal-ca.pem'],
  ['fleet.soleWriter', 'fleet.role', 'sole-writer'],
  ['fleet.site', 'fleet.name', 'mirror-1@berlin'],
  ['bundle.revokedKeys', 'bundle.trustedKeys', ['/etc/patchmirror/bundle.pub.pem', '!9f86d081884c7d65']],
  ['relay.chatTargets', 'relay.targets', ['team=chat+https://hooks.example.com/services/T0/B0']],
  ['views.bucket', 'views.serve', VIEWS],
  ['views.derived', 'views.serve', VIEWS],
  ['views.query', 'views.serve', VIEWS],
  ['views.vex', 'views.serve', VIEWS],
  ['match.tags', 'views.serve', VIEWS],
  ['feeds.schedule', 'osv.schedule', '7 * * * *'],
  ['identity.schedule', 'catalog.schedule', '37 * * * *'],
  ...AGED.flatMap((source) => [
    [`${source}.maxAgeHours`, 'sync.maxAgeHours', { [source]: 50 }] as const,
    [`${source}.staleAction`, 'server.staleAction', { [source]: 'refuse' }] as const,
  ]),
]

/** Settings that are no longer there, and that nothing replaces. */
const GONE: ReadonlySet<string> = new Set([
  'guard.futureDays',
  'server.threads',
  'server.cacheMaxAgeSeconds',
  'relay.chatTemplate',
  'relay.dialect',
])

/** Settings that are constants now, with their value: what no two installations need to be different. */
const CONSTANTS: ReadonlyMap<string, string> = new Map([
  ['upstream.connectTimeoutMs', '10 seconds'],
  ['upstream.archiveTimeoutMs', 'one hour, and the next run resumes a download'],
  ['upstream.requestTimeoutMs', '60 seconds'],
  ['upstream.lowSpeedBytesPerSecond', '1000 bytes a second'],
  ['upstream.lowSpeedSeconds', '30 seconds'],
  ['upstream.retries', '4'],
  ['upstream.retryMinMs', 'half a second'],
  ['upstream.retryMaxMs', '30 seconds'],
  ['upstream.retryAfterMaxSeconds', '300 seconds'],
  ['data.keepRuns', '500 runs of each source'],
  ['osv.archiveThreshold', '250 records'],
  ['osv.maxSingleFetches', '5000 records'],
  ['catalog.reconcileSchedule', 'each 15 minutes'],
  ['catalog.maxListPages', '10000 pages'],
  ['catalog.listTimeoutMs', '15 minutes'],
  ['catalog.maxArtifactBytes', '1 GB'],
  ['catalog.artifactTimeoutMs', '10 minutes'],
  ['webhooks.toleranceSeconds', '300 seconds'],
  ['sync.jitterSeconds', '60 seconds'],
  ['sync.catchUp', 'true'],
  ['verify.schedule', 'weekly, on Sunday at 04:43'],
  ['webhooks.secretFile', 'webhook-secrets.json in data.dir'],
  ['webhooks.debounceMs', '2 seconds'],
  ['webhooks.maxBytes', '256 KiB'],
  ['webhooks.keepDays', '30 days'],
  ['webhooks.maxPending', '100000 deliveries'],
  ['webhooks.debounceMaxMs', '30 seconds'],
  ['relay.waitVisible', 'true'],
  ['relay.timeoutMs', '15 seconds'],
  ['relay.maxDays', '4 days'],
  ['relay.concurrency', '4 requests'],
  ['bundle.dateHours', '6 hours'],
  ['bundle.pollSeconds', '10 seconds'],
  ['fleet.pollSeconds', '10 seconds'],
  ['fleet.maxLagSeconds', '60 seconds'],
  ['fleet.graceHours', '24 hours'],
  ['log.fileMode', '0600, and a file that exists keeps its mode'],
])

/** Returns what took the place of a setting of an earlier version, as the end of a message; null: it never was one. */
export function successorOf(key: string): string | null {
  const constant = CONSTANTS.get(key)
  if (constant !== undefined) return sayConstant(constant)
  if (GONE.has(key)) return 'this setting is no longer there, and nothing takes its place; remove it'
  const found = findSuccessor(key)
  return found === null ? null : saySuccessor(found.key, inYaml(found.value))
}

/** The same for a name of a variable, with its prefix; the successor is named as a variable too. */
export function successorOfVariable(name: string): string | null {
  const key = FORMER.find((one) => variableOf(one) === name)
  const found = key === undefined ? null : findSuccessor(key)
  if (found !== null) return saySuccessor(variableOf(found.key), inVariable(found.value))
  return key === undefined ? null : successorOf(key)
}

/** Reports whether settings of an earlier version are in a section of this name. */
export function isFormerSection(section: string): boolean {
  return FORMER.some((key) => key.startsWith(`${section}.`))
}

/** The keys of all settings of earlier versions. */
const FORMER: readonly string[] = [...CONSTANTS.keys(), ...GONE, ...SUCCESSORS.map(([former]) => former)]

function findSuccessor(former: string): Successor | null {
  const [, key, value] = SUCCESSORS.find(([name]) => name === former) ?? []
  return key === undefined || value === undefined ? null : { key, value }
}

function sayConstant(value: string): string {
  return `there is no such setting any more, and the value is always ${value}; remove it`
}

function saySuccessor(name: string, value: string): string {
  return `this setting is no longer there; ${name} takes its place, for example ${value}`
}

/** Writes a value as a file has it. */
function inYaml(value: Value): string {
  if (isList(value)) return `[${value.map(quoted).join(', ')}]`
  if (typeof value !== 'object') return quoted(value)
  const entries = Object.entries(value).map(([name, one]) => `${name}: ${quoted(one)}`)
  return `{ ${entries.join(', ')} }`
}

function quoted(value: Scalar): string {
  const text = String(value)
  return /^[\w/][\w %./+-]*$/.test(text) ? text : JSON.stringify(text)
}

/** Writes a value as a variable has it. */
function inVariable(value: Value): string {
  if (isList(value)) return value.join(',')
  if (typeof value !== 'object') return String(value)
  const entries = Object.entries(value).map(([name, one]) => `${name}=${one}`)
  return entries.join(',')
}

function isList(value: Value): value is readonly Scalar[] {
  return Array.isArray(value)
}

function variableOf(key: string): string {
  const words = key.replace('.', '_').replace(/[A-Z]/g, (letter) => `_${letter}`)
  return ENV_PREFIX + words.toUpperCase()
}
