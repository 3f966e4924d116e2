import { join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { counted } from '../../base/text.ts'
import { FLEET_PAUSED, describeUnread, isRegistryAsked, registryFault } from '../../base/domain/status.ts'
import { judgeFleet } from './fleet.ts'
import { type MirrorProblem, problem } from './problem.ts'
import { handleOfTarget, nameOfTarget } from '../../base/domain/status.ts'
import type { Status } from '../../base/reports/status.ts'
import type { WebhooksReport } from '../../base/reports/webhooks.ts'
import { MAX_PENDING } from '../../store/webhooks/inbox.ts'

/** The parts of the report that say whether a mirror is ready. */
export type Served = Pick<Status, 'sources' | 'storage' | 'fleet' | 'views'> & Partial<Pick<Status, 'uptimeSeconds'>>

/** Returns what is wrong with what is served beside the sources: the generations of a fleet, and the views for scanners. */
export function servedProblems(status: Served, config: Config, now: number): MirrorProblem[] {
  return [...fleetProblems(status, config, now), ...viewProblems(status)]
}

/** Returns what is wrong with the parts of a daemon beside its sources: fleet, relay, webhooks, bundles, views, caches. */
export function partProblems(status: Status, config: Config, now: number): MirrorProblem[] {
  return [
    ...fleetProblems(status, config, now),
    ...relayProblems(status),
    ...edgeProblems(status),
    ...webhookProblems(status),
    ...bundleProblems(status, config),
    ...registryProblems(status),
    ...viewProblems(status),
    ...derivedProblems(status),
    ...damageProblem(status),
    ...secretProblems(status),
  ]
}

/** Files of secrets that cannot be used, most of which changed since the start of the daemon. */
function secretProblems({ secretFaults = [], uptimeSeconds }: Status): MirrorProblem[] {
  return secretFaults.map(({ key, fault, kept = true }) => {
    const isRunning = uptimeSeconds !== null
    const inDaemon = kept ? `${KEPT}, and the next start would fail` : 'what it had is not in force any more'
    const detail = `it ${fault}; ${isRunning ? inDaemon : 'the daemon cannot start'}`
    const level = isRunning ? 'warning' : 'failed'
    const file = key.endsWith('.json') ? key : `the file of ${key}`
    return problem('secret_file', level, 'Settings', `${file} cannot be used`, { detail })
  })
}

const KEPT = 'the value that was read before stays in force'

/** What the last verification found and nothing healed since. */
function damageProblem({ verified = null, storage }: Status): MirrorProblem[] {
  if (verified === null || verified.damagedCount === 0 || storage.state === 'damaged') return []
  const { damagedCount, damaged, endedAt } = verified
  const text = `${counted(damagedCount, 'part')} of what is stored ${damagedCount === 1 ? 'is' : 'are'} damaged`
  const detail = damaged.length === 0 ? null : damaged.slice(0, 3).join('; ')
  const effect = 'what cannot be read is answered with 503'
  const advice = ['patchmirror doctor --data']
  return [problem('damaged', 'failed', 'Data folder', text, { detail, since: endedAt, effect, advice })]
}

function fleetProblems({ fleet }: Served, config: Config, now: number): MirrorProblem[] {
  if (fleet === undefined) return []
  const { paused, failing, publishedAt } = fleet
  const found: MirrorProblem[] = []
  if (paused) {
    const detail =
      'Release it once the service has the right data. Where its command was killed, run that again first: what it did not publish, --end gives up.'
    const effect = 'the data of all mirrors gets older'
    const advice = ['patchmirror fleet rollback --end']
    found.push(problem('fleet', 'warning', 'Fleet', FLEET_PAUSED, { detail, effect, advice }))
  }
  const { ready, reason } = judgeFleet(fleet, config.fleet.maxLagSeconds, now)
  const commands = ['patchmirror fleet status', 'patchmirror fleet check']
  if (!ready) {
    const effect = fleet.served === 0 ? 'nothing is served yet' : 'what was served before is served'
    const more = { detail: reason, since: failing?.since ?? null, effect, advice: commands, unready: true }
    found.push(problem('fleet', 'failed', 'Fleet', 'its generations are not served in time', more))
  } else if (failing !== null) {
    const text = failing.refused === null ? 'it cannot follow or publish now' : 'a generation is refused'
    const effect = publishedAt === null ? null : 'what is stored is served, and gets older'
    const more = { detail: failing.message, since: failing.since, effect, advice: commands }
    found.push(problem('fleet', 'warning', 'Fleet', text, more))
  }
  return found
}

function relayProblems({ relay }: Status): MirrorProblem[] {
  const failing = relay.filter(({ state }) => state === 'failing' || state === 'disabled')
  return failing.map((one) => {
    const { state, reason, pending, givenUp, since } = one
    const lost = givenUp === 0 ? '' : `, ${counted(givenUp, 'event was', 'events were')} given up`
    const detail = `${reason ?? 'deliveries fail'}; ${counted(pending, 'event waits', 'events wait')}${lost}`
    const advice = [`patchmirror relay --enable ${handleOfTarget(one)}`]
    return problem('relay', 'warning', `Relay target ${nameOfTarget(one)}`, state, {
      detail,
      since,
      advice,
    })
  })
}

function edgeProblems({ edge = [] }: Status): MirrorProblem[] {
  const failing = edge.filter(({ state }) => state === 'failing')
  return failing.map(({ id, reason }) => {
    const effect = 'it serves answers that are up to edge.maxAgeSeconds old'
    return problem('edge', 'warning', `Cache ${id}`, 'it cannot be purged', {
      detail: reason,
      effect,
    })
  })
}

function webhookProblems({ webhooks, storage }: Status): MirrorProblem[] {
  if (webhooks === undefined) return []
  const { counts, refresh, state, failing = null } = webhooks
  const found: MirrorProblem[] = []
  if (failing !== null && storage.state === 'ok') {
    const { message: detail, since } = failing
    const more = { detail, since, effect: NO_INBOX, advice: ['patchmirror doctor'] }
    found.push(problem('webhooks', 'failed', 'Webhooks', 'the inbox is not available', more))
  } else if (counts === null && state === 'on' && storage.state === 'ok') found.push(UNREAD_INBOX)
  const warning = refresh.misses?.warning ?? null
  if (warning !== null) {
    const advice = ['patchmirror webhooks list']
    found.push(
      problem('webhooks', 'warning', 'Webhooks', 'the subscription seems dead', {
        detail: warning,
        advice,
      }),
    )
  }
  if (isSignatureRefused(webhooks)) found.push(refusedProblem(webhooks))
  if (state === 'off' && webhooks.lastRefusedReason === 'no_secret') found.push(noSecretProblem(webhooks))
  if ((counts?.pending ?? 0) >= MAX_PENDING) found.push(FULL_INBOX)
  const dead = counts?.dead ?? 0
  if (dead > 0) {
    const text = `${counted(dead, 'delivery was', 'deliveries were')} given up`
    const more = { detail: GIVEN_UP, advice: ['patchmirror webhooks inbox --state dead'] }
    found.push(problem('webhooks', 'warning', 'Webhooks', text, more))
  }
  return found
}

/** Whether the newest delivery was refused because no secret gives its signature. Dates of this form order as their texts do. */
function isSignatureRefused({ lastRefusedAt, lastRefusedReason, lastReceivedAt }: WebhooksReport): boolean {
  return lastRefusedReason === 'signature' && (lastRefusedAt ?? '') > (lastReceivedAt ?? '')
}

function refusedProblem({ lastRefusedAt: since }: WebhooksReport): MirrorProblem {
  const advice = ['patchmirror webhooks list', 'patchmirror webhooks check FILE']
  return problem('webhooks', 'warning', 'Webhooks', 'the newest delivery was refused for its signature', {
    detail: 'No secret that is valid here gives it: the secret is not that of the subscription, or a stranger sent it.',
    since,
    effect: 'what it announced is found by the scheduled syncs',
    advice,
  })
}

/** A mirror that lost its secrets refuses what it took before: the deliveries that come tell it from one that never had any. */
function noSecretProblem({ lastRefusedAt: since, lastReceivedAt }: WebhooksReport): MirrorProblem {
  const before = lastReceivedAt === null ? '' : ` The last one was taken ${lastReceivedAt}.`
  const advice = ['patchmirror webhooks list', 'patchmirror webhooks rotate ID']
  return problem('webhooks', 'warning', 'Webhooks', 'deliveries are refused: no secret is valid here', {
    detail: `They are answered with 503.${before} A new secret for the subscription is needed, or a stranger sent them.`,
    since,
    effect: 'what they announce is found by the scheduled syncs',
    advice,
  })
}

const FULL_INBOX = problem('webhooks', 'warning', 'Webhooks', 'no more deliveries are taken: too many are pending', {
  detail: `${MAX_PENDING} wait for a refresh, and further ones are answered with 503.`,
  effect: 'what they announce is found by the scheduled syncs',
  advice: ['patchmirror webhooks inbox --state pending'],
})

/** It may be slow, or may fail: a report waits for no disk. */
const UNREAD_INBOX = problem('webhooks', 'warning', 'Webhooks', 'it is not known what waits in the inbox', {
  detail: 'It did not answer in time. Where it fails, the log has the reason.',
  advice: ['patchmirror doctor'],
})

const NO_INBOX =
  'deliveries are answered with 503, and nothing is relayed; scheduled syncs find what deliveries announce; events that waited for the relay are lost where they cannot be read'

const GIVEN_UP =
  'A sync that brings what they name settles them; the others wait for your decision. The list has the reason of each.'

function bundleProblems({ boxes, storage }: Status, config: Config): MirrorProblem[] {
  const { inbox = null, outbox = null } = boxes ?? {}
  const found: MirrorProblem[] = []
  const isExplained = storage.state !== 'ok' && outbox?.problem === 'storage'
  if (outbox !== null && outbox.problem !== null && !isExplained)
    found.push(problem('outbox', 'failed', 'Bundle outbox', outbox.problem, { detail: outbox.reason }))
  if (inbox !== null && inbox.problem !== null) found.push(inboxProblem(inbox.problem))
  if (inbox !== null && inbox.lastRefused !== null) {
    const { file, why, at } = inbox.lastRefused
    const detail = `${file}: ${why}. To end this warning, remove the file from the inbox`
    const advice = [`patchmirror bundle inspect ${shellWord(join(inboxFolder(config), file))}`]
    found.push(problem('inbox', 'warning', 'Bundle inbox', 'a bundle was refused', { detail, since: at, advice }))
  }
  return found
}

/** Returns the folder of the inbox, as a command of the operator names it; a public report leaves it out. */
export function inboxFolder({ bundle: { inbox }, data }: Config): string {
  return inbox === null || inbox.startsWith('oci:') ? join(data.dir, 'inbox') : inbox
}

/** Writes a name as a word of a shell's command. */
function shellWord(name: string): string {
  return /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`
}

/** The address is in the log alone, as that of an inbox. What is missing is no fault of the mirror. */
function registryProblems({ registry }: Status): MirrorProblem[] {
  if (registry === undefined) return []
  const { problem: fault, unknown, incomplete } = registry
  const found: MirrorProblem[] = []
  if (fault !== null) {
    const which = unknown === 0 ? 'the images' : counted(unknown, 'image')
    const text = `it is not known of ${which} whether images.registry has them`
    const next = fault === 'offline' ? '' : '; the log has the reason, and it is asked again'
    const detail = `${registryFault(fault)}${next}`
    found.push(problem('registry', 'warning', 'Registry', text, { detail }))
  }
  if (incomplete !== null && isRegistryAsked(registry)) {
    const text = 'images.registry was not asked for all images: their list is not known to be complete'
    const effect = 'images that the list lacks are neither there nor missing'
    found.push(problem('registry', 'warning', 'Registry', text, { detail: incomplete, effect }))
  }
  return found
}

/** What keeps the inbox from its bundles. Of a tag that it follows, the address is in the log alone: this report is public. */
function inboxProblem(code: string): MirrorProblem {
  const text = FAULTS_OF_TAG[code]
  if (text === undefined) {
    const of = code === 'ENOENT' ? 'its folder is not there' : 'its folder cannot be read'
    const more = { detail: `${code}; the log has its path`, advice: ['patchmirror doctor'] }
    return problem('inbox', 'failed', 'Bundle inbox', of, more)
  }
  const next = code === 'not_ready' ? 'names both' : 'has the reason; it is asked again every minute'
  const detail = `${code}: the log ${next}`
  const advice = [
    code === 'not_ready' ? 'patchmirror bundle need FILE' : 'patchmirror bundle inspect oci://HOST/REPOSITORY:TAG',
  ]
  return problem('inbox', 'failed', 'Bundle inbox', text, { detail, advice })
}

const FAULTS_OF_TAG: Readonly<Record<string, string>> = {
  upstream_unreachable: 'its registry cannot be reached',
  upstream_auth: 'its registry refuses access',
  upstream_not_found: 'its host answers 404: the tag is not there, or it is no registry',
  upstream_status: 'its registry answers with an error',
  upstream_shape: 'its registry does not answer as one',
  upstream_too_large: 'its registry does not answer as one',
  config: 'the credential of its registry cannot be read',
  storage: 'what its tag names cannot be stored',
  bundle: 'what its tag names is refused',
  not_ready: 'a delta waits for a bundle that has not come',
}

/** What is made from the database for scanners; where that cannot be read, nothing can be made. */
function viewProblems({ views = [], storage }: Served): MirrorProblem[] {
  const found: MirrorProblem[] = []
  for (const { kind, state, failing, unread } of views) {
    const subject = `Views (${kind})`
    const isFailing = failing && storage.state === 'ok'
    if (state === 'unreadable') found.push(unreadableViews(subject, failing))
    else if (isFailing)
      found.push(problem('views', 'warning', subject, 'they cannot be built', { detail: TRIED_AGAIN }))
    if (unread) found.push(problem('views', 'warning', subject, describeUnread(unread)))
  }
  return found
}

/** Views that are there and not served. */
function unreadableViews(subject: string, failing: boolean): MirrorProblem {
  const next = failing ? 'The last try to build them failed: the log has the reason.' : 'They are being built again.'
  const detail = `They were made by another version of the program, or are damaged. ${next}`
  const effect = '/osv/ and /-/match answer 503 until then'
  return problem('views', 'failed', subject, 'they cannot be read', { detail, effect, unready: true })
}

/** What is made from the database beside views. */
function derivedProblems({ findings, storage }: Status): MirrorProblem[] {
  if (findings?.failing !== true || storage.state !== 'ok') return []
  return [problem('findings', 'warning', 'Findings of tags', 'they cannot be judged', { detail: TRIED_AGAIN })]
}

const TRIED_AGAIN = 'The log has the reason; it is tried again every minute.'
