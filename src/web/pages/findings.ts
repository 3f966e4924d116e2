import { judgeReadiness } from '../../api/status/readiness.ts'
import type { SourceStatus, Status } from '../../api/status/report.ts'
import { counted } from '../../core/text.ts'
import { type SourceName, activeSources, servedSources } from '../../domain/sources.ts'
import { FLEET_PAUSED, describeUnread } from '../../domain/status.ts'
import { findDoubtful, findRejected, heldBack } from '../../store/runs/rejected.ts'
import type { NoticeBlock } from '../blocks.ts'
import { clip } from '../cells.ts'
import type { PageCall } from '../page.ts'

/** A thing that is wrong: the worst first, each with what to do. */
type Finding = NoticeBlock

/** Returns what is wrong with the mirror, with the commands that show or fix it; the worst first. */
export function findProblems(call: PageCall, status: Status): Finding[] {
  const { config, reads } = call
  const served = servedSources(config, (name) => reads.snapshots.readSnapshot(name) !== null)
  const readiness = judgeReadiness(status, config, served)
  const tooOld = new Map(
    readiness.sources.map(({ name, ready, reason }) => [name, ready ? null : reason]),
  )
  const isBusy = status.sources.some(({ state }) => state === 'running')
  const found = [
    ...storageProblems(status),
    ...unsyncedProblems(status),
    ...scopeProblems(status),
    ...quarantines(call),
    ...status.sources.flatMap((source) =>
      sourceProblems(call, source, tooOld.get(source.name) ?? null, isBusy),
    ),
    ...fleetProblems(status),
    ...relayProblems(status),
    ...webhookProblems(status),
    ...bundleProblems(status),
    ...viewProblems(status),
  ]
  return [
    ...found.filter(({ tone }) => tone === 'bad'),
    ...found.filter(({ tone }) => tone !== 'bad'),
  ]
}

function problem(
  tone: 'bad' | 'warn',
  title: string,
  text: string | null,
  commands: readonly string[],
): Finding {
  return { kind: 'notice', tone, title, ...(text !== null && { text: clip(text, 600) }), commands }
}

function storageProblems({ storage }: Status): Finding[] {
  if (storage.state === 'ok') return []
  const text = storage.reason ?? 'the data folder cannot be written to'
  return [
    problem(
      'bad',
      `Data folder: ${storage.state}`,
      `${text}. Reads continue, nothing new is stored.`,
      [],
    ),
  ]
}

/** A source that is not synced any more only gets older, also where its last run was complete. */
function unsyncedProblems({ sources }: Status): Finding[] {
  return sources.flatMap(({ name, unsynced }) => {
    const text = `${unsynced}. Then start the daemon again.`
    return unsynced === null ? [] : [problem('bad', `${name}: not synced any more`, text, [])]
  })
}

/** The settings ask for something else than what is stored. */
function scopeProblems({ sources }: Status): Finding[] {
  return sources.flatMap(({ name, scopeChanged: text }) =>
    text === null
      ? []
      : [problem('warn', `${name}: its scope has changed`, text, [`patchmirror sync ${name}`])],
  )
}

/** A quarantined change waits for a decision; what it would do is shown to those with a key. */
function quarantines({ reads, ui, signedIn }: PageCall): Finding[] {
  return reads.quarantine.listOpenQuarantines().map(({ runId, source, reason }) => {
    const shown = signedIn || source === 'osv' || source === 'feeds' ? reason : null
    const commands = [`patchmirror approve ${runId}`, `patchmirror reject ${runId}`]
    const found = problem('bad', `${source}: a change waits for your decision`, shown, commands)
    return {
      ...found,
      links: [{ text: `Run ${runId}: what it would change`, href: ui('run', { id: runId }) }],
    }
  })
}

/** What writes to the mirror: while a run is in progress, it is refused. */
function renewal(call: PageCall, name: SourceName): string {
  if (isSynced(call, name)) return `patchmirror sync ${name}`
  return call.config.fleet.url === null ? 'patchmirror import FILE' : 'patchmirror fleet status'
}

/** A source that is too old, or not mirrored yet; `isBusy`: a run is in progress, of this source or another. */
function ageProblem(
  call: PageCall,
  { name, asOf, ageSeconds, state, lastRun }: SourceStatus,
  reason: string,
  isBusy: boolean,
): Finding {
  const commands = isBusy ? ['patchmirror status'] : [renewal(call, name)]
  if (asOf !== null && ageSeconds === null)
    return problem('bad', `${name}: its age is not known`, reason, ['patchmirror doctor'])
  if (asOf !== null) return problem('bad', `${name}: older than its policy`, reason, commands)
  if (state !== 'running' || lastRun === null) {
    const text = isBusy ? `${reason}; the run of another source is in progress` : reason
    return problem(isBusy ? 'warn' : 'bad', `${name}: nothing is mirrored yet`, text, commands)
  }
  const text = `It started at ${lastRun.startedAt}. Nothing of it is served until it has ended.`
  return problem('warn', `${name}: the first run is in progress`, text, commands)
}

function sourceProblems(
  call: PageCall,
  source: SourceStatus,
  tooOld: string | null,
  isBusy: boolean,
): Finding[] {
  const { name, state, lastRun } = source
  const found: Finding[] = []
  const sync = isSynced(call, name) && !isBusy ? [renewal(call, name)] : []
  const runs = lastRun === null ? [] : [`patchmirror runs ${lastRun.id}`]
  if (tooOld !== null) found.push(ageProblem(call, source, tooOld, isBusy))
  const rejected = findRejected(call.reads, name)
  if (rejected !== null) {
    const title = `${name}: a rejected change is still offered; ${heldBack(rejected)}`
    found.push(problem('warn', title, null, [`patchmirror approve ${rejected.runId}`]))
  }
  const doubtful = findDoubtful(call.reads, name, call.now)
  if (doubtful !== null) {
    const title = `${name}: changes were published that should not be believed`
    const commands = ['runs', 'acknowledge'].map((verb) => `patchmirror ${verb} ${doubtful.id}`)
    found.push(problem('warn', title, doubtful.message, commands))
  }
  if (state === 'failed')
    found.push(
      problem('bad', `${name}: the last run failed`, lastRun?.message ?? null, [...runs, ...sync]),
    )
  if (state === 'partial')
    found.push(problem('warn', `${name}: the last run was partial`, lastRun?.message ?? null, runs))
  return found
}

function isSynced({ config }: PageCall, name: SourceName): boolean {
  return activeSources(config).includes(name)
}

function fleetProblems({ fleet }: Status): Finding[] {
  if (fleet?.paused !== true) return []
  const text = 'The data of all mirrors gets older. Release it once the service has the right data.'
  return [problem('warn', `Fleet: ${FLEET_PAUSED}`, text, ['patchmirror fleet release'])]
}

function relayProblems({ relay }: Status): Finding[] {
  return relay
    .filter(({ state }) => state !== 'ok')
    .map(({ id, target, state, reason, pending }) => {
      const title = `Relay target ${target ?? id}: ${state}`
      const text = `${reason ?? 'deliveries fail'}; ${counted(pending, 'event waits', 'events wait')}`
      return problem('warn', title, text, [`patchmirror relay enable ${id}`])
    })
}

function webhookProblems({ webhooks }: Status): Finding[] {
  if (webhooks === undefined) return []
  const { counts, refresh } = webhooks
  const warning = refresh.misses?.warning ?? null
  const dead = counts?.dead ?? 0
  return [
    ...(warning === null
      ? []
      : [
          problem('warn', 'Webhooks: the subscription seems dead', warning, [
            'patchmirror webhooks list',
          ]),
        ]),
    ...(dead === 0
      ? []
      : [
          problem(
            'warn',
            `Webhooks: ${counted(dead, 'delivery was', 'deliveries were')} given up`,
            'Nothing handles them any more until you decide; scheduled syncs find the same changes. The list has the reason of each.',
            ['patchmirror webhooks dead-letters'],
          ),
        ]),
  ]
}

function bundleProblems({ boxes }: Status): Finding[] {
  const { inbox = null, outbox = null } = boxes ?? {}
  const found: Finding[] = []
  if (outbox !== null && outbox.problem !== null)
    found.push(problem('bad', `Bundle outbox: ${outbox.problem}`, outbox.reason, []))
  if (inbox !== null && inbox.problem !== null)
    found.push(problem('bad', 'Bundle inbox: the folder cannot be read', inbox.problem, []))
  if (inbox !== null && inbox.lastRefused !== null) {
    const { file, why } = inbox.lastRefused
    found.push(
      problem('warn', 'Bundle inbox: a bundle was refused', `${file}: ${why}`, [
        'patchmirror inspect FILE',
      ]),
    )
  }
  return found
}

function viewProblems({ views = [] }: Status): Finding[] {
  return views.flatMap(({ kind, failing, unread }) => [
    ...(failing ? [problem('warn', `Views (${kind}) cannot be built`, TRIED_AGAIN, [])] : []),
    ...(unread ? [problem('warn', `Views (${kind}): ${describeUnread(unread)}`, null, [])] : []),
  ])
}

const TRIED_AGAIN = 'The log has the reason; it is tried again every minute.'
