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

/** Settings that are no longer there, and the setting that has taken the place of each; null: none has. */
const SUCCESSORS: ReadonlyMap<string, string | null> = new Map<string, string | null>([
  ...KINDS.flatMap((kind): [string, string][] => [
    [`guard.${kind}`, 'guard.mode'],
    [`guard.${kind}Records`, 'guard.limitCount'],
    [`guard.${kind}Fraction`, 'guard.limitShare'],
  ]),
  ['guard.futureDays', null],
  ['server.threads', null],
  ['server.cacheMaxAgeSeconds', null],
  ['relay.chatTemplate', null],
  ['relay.dialect', null],
])

/** Settings that are constants now, with their value: what no two installations need to be different. */
const CONSTANTS: ReadonlyMap<string, string> = new Map([
  ['upstream.connectTimeoutMs', '10 seconds'],
  ['upstream.archiveTimeoutMs', 'one hour, and the next run resumes a download'],
  ['upstream.retryMinMs', 'half a second'],
  ['upstream.retryAfterMaxSeconds', '300 seconds'],
  ['data.keepRuns', '500 runs of each source'],
  ['osv.maxSingleFetches', '5000 records'],
  ['catalog.reconcileSchedule', 'each 15 minutes'],
  ['catalog.maxListPages', '10000 pages'],
  ['catalog.listTimeoutMs', '15 minutes'],
  ['catalog.maxArtifactBytes', '1 GB'],
  ['catalog.artifactTimeoutMs', '10 minutes'],
  ['webhooks.toleranceSeconds', '300 seconds'],
  ['webhooks.maxBytes', '256 KiB'],
  ['webhooks.keepDays', '30 days'],
  ['webhooks.maxPending', '100000 deliveries'],
  ['webhooks.debounceMaxMs', '30 seconds'],
  ['relay.waitVisible', 'true'],
  ['relay.timeoutMs', '15 seconds'],
  ['relay.maxDays', '4 days'],
  ['relay.concurrency', '4 requests'],
  ['bundle.dateHours', '6 hours'],
  ['fleet.graceHours', '24 hours'],
  ['log.fileMode', '0600, and a file that exists keeps its mode'],
])

/** Returns what took the place of a setting of an earlier version, as the end of a message; null: it never was one. */
export function successorOf(key: string): string | null {
  const value = CONSTANTS.get(key)
  if (value !== undefined) return sayConstant(value)
  const successor = SUCCESSORS.get(key)
  return successor === undefined ? null : sayIn(key, successor)
}

/** The same for a name of a variable, with its prefix; the successor is named as a variable too. */
export function successorOfVariable(name: string): string | null {
  const constant = [...CONSTANTS].find(([key]) => variableOf(key) === name)
  if (constant !== undefined) return sayConstant(constant[1])
  const found = [...SUCCESSORS].find(([key]) => variableOf(key) === name)
  if (found === undefined) return null
  const [key, successor] = found
  return sayIn(key, successor && variableOf(successor))
}

function sayConstant(value: string): string {
  return `there is no such setting any more, and the value is always ${value}; remove it`
}

function sayIn(key: string, successor: string | null): string {
  if (successor === null) return 'this setting is no longer there, and nothing takes its place; remove it'
  const extent = key.startsWith('guard.') ? ' for all kinds of doubt' : ''
  return `this setting is no longer there; ${successor} takes its place${extent}`
}

function variableOf(key: string): string {
  const words = key.replace('.', '_').replace(/[A-Z]/g, (letter) => `_${letter}`)
  return ENV_PREFIX + words.toUpperCase()
}
