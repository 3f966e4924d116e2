import type { Config } from '../../config/schema.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { type SourceName, activeSources, ageSecondsOf, isReader, servedSources } from '../../base/domain/sources.ts'
import { NEEDS_CREDENTIAL } from '../../base/domain/run-facts.ts'
import { counted } from '../../base/text.ts'
import { type Served, partProblems, servedProblems } from './part-problems.ts'
import { type MirrorProblem, problem } from './problem.ts'
import type { ProblemCode } from '../../base/reports/problems.ts'
import { type AgeKind, ageKind, contradictsClock, describeOverAge } from './age.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import type { Status } from '../../base/reports/status.ts'

/**
 * Returns everything that is wrong with the mirror, one for each cause, the most severe first. `now`: Unix milliseconds. What makes
 * a mirror not ready is among it, with the level `failed` but for a first run.
 */
export function problemsOf(status: Status, config: Config, now: number): readonly MirrorProblem[] {
  const sources = ownSources(status, config)
  const found = [
    ...storageProblem(status),
    ...sources.flatMap((source) => unsyncedProblem(status, source)),
    ...sources.flatMap(scopeProblem),
    ...sources.flatMap(decisions),
    ...failures(status, sources, config),
    ...ageProblems(status, sources, config),
    ...futureProblem(sources, now),
    ...sources.flatMap(partialProblem),
    ...sources.flatMap(signatureProblem),
    ...partProblems(status, config, now),
  ]
  const isSevere = ({ level }: MirrorProblem): boolean => level === 'failed'
  return [...found.filter(isSevere), ...found.filter((one) => !isSevere(one))]
}

/** Returns the problems for which a mirror with these sources is not ready. */
export function unreadyProblems(
  status: Served,
  sources: readonly SourceStatus[],
  config: Config,
  now: number,
): readonly MirrorProblem[] {
  const found = [
    ...storageProblem(status),
    ...failures(status, sources, config),
    ...ageProblems(status, sources, config),
    ...servedProblems(status, config, now),
  ]
  return found.filter(({ unready }) => unready)
}

/** Sources that count: those that the settings ask for or that are stored. */
function ownSources({ sources }: Status, config: Config): SourceStatus[] {
  const isStored = (name: SourceName): boolean =>
    sources.some((source) => source.name === name && source.snapshot !== null)
  const served = servedSources(config, isStored)
  return sources.filter(({ name }) => served.includes(name))
}

const EFFECTS = {
  full: 'nothing new is stored',
  failing: 'the daemon cannot start, and nothing new is stored', // nothing was written to find out
  damaged: 'what cannot be read is answered with 503',
} as const

function storageProblem(status: Served): MirrorProblem[] {
  const { storage } = status
  if (storage.state === 'ok') return []
  const { state, reason, since = null } = storage
  const isWritten = state !== 'damaged' && isByDaemon(status)
  const effect = isWritten ? 'what is stored is served, nothing new is stored' : EFFECTS[state]
  const advice = state === 'damaged' ? ['patchmirror doctor --data'] : ['patchmirror doctor']
  return [problem('storage', 'failed', 'Data folder', state, { detail: reason, since, effect, advice, unready: true })]
}

/** A source that is not synced any more only gets older, also where its last run was complete. */
function unsyncedProblem(status: Served, { name, unsynced, asOf }: SourceStatus): MirrorProblem[] {
  if (unsynced === null) return []
  const detail = `${unsynced}. Then start the daemon again.`
  return [
    problem('unsynced', 'failed', name, 'not synced any more', {
      detail,
      effect: servedWords(status, [asOf]),
      sources: [name],
    }),
  ]
}

/** The settings ask for something else than what is stored. */
function scopeProblem({ name, scopeChanged }: SourceStatus): MirrorProblem[] {
  if (scopeChanged === null) return []
  const advice = [`patchmirror sync ${name}`]
  return [
    problem('scope_changed', 'warning', name, 'its scope has changed', {
      detail: scopeChanged,
      advice,
    }),
  ]
}

/** What waits for an operator: a refused change, one that is still refused, and one that was published and is doubtful. */
function decisions({ name, state, waiting, rejected, doubtful }: SourceStatus): MirrorProblem[] {
  const found = waiting.map(({ run, since, reason }) => {
    const advice = ['runs', 'approve', 'reject'].map((verb) => `patchmirror ${verb} ${run}`)
    const more = { detail: reason, since, advice, run }
    return problem('quarantined', 'failed', name, 'a change waits for your decision', more)
  })
  if (state === 'quarantined' && found.length === 0 && rejected === null)
    found.push(
      problem('quarantined', 'failed', name, 'a change is quarantined', {
        advice: ['patchmirror runs'],
      }),
    )
  if (rejected !== null) {
    const text = `a rejected change is still offered; ${rejected.effect}`
    found.push(
      problem('rejected', 'warning', name, text, {
        advice: [`patchmirror approve ${rejected.run}`],
      }),
    )
  }
  if (doubtful) {
    const advice = ['runs', 'approve'].map((verb) => `patchmirror ${verb} ${doubtful.run}`)
    const text = 'changes were published that should not be believed'
    const detail = doubtful.words.length > 0 ? doubtful.words.join('; ') : doubtful.message
    found.push(problem('doubtful', 'warning', name, text, { detail, since: doubtful.at, advice }))
  }
  return found
}

/** Causes that several sources have in common, by the code of their last run. */
const SHARED: Partial<Record<ErrorCode, { code: ProblemCode; text: string; advice: string }>> = {
  upstream_unreachable: {
    code: 'unreachable',
    text: 'the service cannot be reached',
    advice: 'patchmirror doctor',
  },
  upstream_auth: {
    code: 'unauthorized',
    text: 'the service refuses the credential',
    advice: 'patchmirror doctor',
  },
}
/** The same, where the refusal is for a credential that was not sent. */
const NOT_SENT = {
  code: 'no_credential',
  text: 'the package catalog wants a credential, and none is sent: set catalog.sendCredential',
  advice: 'patchmirror sync catalog',
} as const
/** The same of what is asked without a credential: a proxy may ask for one, or the address is not the service's. */
const PUBLIC = {
  code: 'unauthorized',
  text: 'the public feeds are refused, which are asked for without a credential',
  advice: 'patchmirror doctor',
} as const
const OF_STORAGE: readonly (string | null)[] = ['storage', 'corrupt']

/** Failed runs, once for each cause; those that the state of the data folder explains are no problem of their own. */
function failures(status: Served, sources: readonly SourceStatus[], config: Config): MirrorProblem[] {
  const { storage } = status
  const failed = sources.filter(({ state }) => state === 'failed')
  const own = failed.filter(({ wrongRun }) => storage.state === 'ok' || !OF_STORAGE.includes(wrongRun?.code ?? null))
  return causesOf(own).map(({ cause, ones }) => failureOf(status, cause, ones, config))
}

/** Why sources failed: a cause that they have in common, or the name of the only one. */
interface FailureCause {
  readonly cause: SourceName | NonNullable<ReturnType<typeof sharedCause>>
  /** What their runs asked; null: their messages do not say it. */
  readonly host: string | null
  readonly ones: SourceStatus[]
}

/**
 * Puts sources together that failed for the same cause: of the same kind, and not of two hosts. A message that names no host, such
 * as that of a private source without a key, is proved to be of the kind alone.
 */
function causesOf(failed: readonly SourceStatus[]): FailureCause[] {
  const causes: FailureCause[] = []
  const known = failed.map((one) => ({ one, host: hostOf(one.wrongRun?.message ?? '') }))
  for (const { one, host } of [
    ...known.filter(({ host }) => host !== null),
    ...known.filter(({ host }) => host === null),
  ]) {
    const cause = sharedCause(one) ?? one.name
    const same = causes.find((other) => other.cause === cause && (host === null || other.host === host))
    if (same === undefined) causes.push({ cause, host, ones: [one] })
    else same.ones.push(one)
  }
  return causes
}

/** Returns the host of the first address that a message begins with. */
function hostOf(message: string): string | null {
  const [address = ''] = /^https?:\/\/[^\s,;]+/.exec(message) ?? []
  return URL.canParse(address) ? new URL(address).host : null
}

function sharedCause({ name, wrongRun: run }: SourceStatus) {
  const cause = SHARED[(run?.code ?? '') as ErrorCode]
  if (cause?.code !== 'unauthorized') return cause
  if (run?.facts[NEEDS_CREDENTIAL] === 1) return NOT_SENT
  return name === 'feeds' || name === 'osv' ? PUBLIC : cause
}

function failureOf(
  status: Served,
  cause: FailureCause['cause'],
  ones: readonly SourceStatus[],
  config: Config,
): MirrorProblem {
  const subject = ones.map(({ name }) => name).join(', ')
  const messages = new Set(ones.flatMap(({ wrongRun }) => wrongRun?.message ?? []))
  const more = {
    detail: [...messages][0] ?? null,
    since: earliest(ones.map(({ failingSince }) => failingSince)),
    effect: effectOf(status, ones, config),
    unready: ones.some((one) => ageKind(one, config) !== null),
    sources: ones.map(({ name }) => name),
  }
  if (typeof cause !== 'string')
    return problem(cause.code, 'failed', subject, cause.text, { ...more, advice: [cause.advice] })
  const runs = ones.flatMap(({ wrongRun }) => (wrongRun === null ? [] : [`patchmirror runs ${wrongRun.id}`]))
  const active = activeSources(config)
  const isBusy = status.sources.some(({ state }) => state === 'running')
  const repeated = ones.filter(({ name, wrongRun }) => active.includes(name) || wrongRun?.kind === 'import')
  const advice = [...runs, ...(isBusy ? [] : repeated.map(({ name }) => renewal(config, name)))]
  return problem('run_failed', 'failed', subject, 'the last run failed', { ...more, advice })
}

/** What is served meanwhile, and whether it is older than the settings allow. */
function effectOf(status: Served, ones: readonly SourceStatus[], config: Config): string {
  const dates = ones.map(({ asOf }) => asOf)
  const over = ones.flatMap(({ name, asOf, ageSeconds }) =>
    asOf === null ? [] : (describeOverAge(config, name, ageSeconds) ?? []),
  )
  return [servedWords(status, dates), ...new Set(over)].join(', ')
}

function servedWords(status: Served, dates: readonly (string | null)[]): string {
  const oldest = earliest(dates)
  if (oldest === null) return 'nothing is mirrored yet'
  return `data of ${oldest} is ${isByDaemon(status) ? 'served' : 'stored'}`
}

/** Reports whether a daemon made the report: read from the data folder, it does not say that anything is served. */
function isByDaemon({ uptimeSeconds }: Served): boolean {
  return uptimeSeconds !== null
}

function earliest(dates: readonly (string | null)[]): string | null {
  const known = dates.filter((date) => date !== null)
  return known.length === 0 ? null : known.reduce((one, other) => (one < other ? one : other))
}

/** Sources that are too old, or not mirrored yet, where no failed run says why. */
function ageProblems(status: Served, sources: readonly SourceStatus[], config: Config): MirrorProblem[] {
  const { sources: all, storage } = status
  if (storage.state !== 'ok' && all.length === 0) return []
  const isBusy = all.some(({ state }) => state === 'running')
  const calm = sources.filter(({ state }) => state !== 'failed')
  const kinds = Map.groupBy(calm, (source) => ageKind(source, config))
  return [...kinds].flatMap(([kind, ones]) => {
    if (kind === null) return []
    const isFirst = kind === 'first_run' || (kind === 'empty' && isBusy)
    const renewals = ones.map(({ name }) => renewal(config, name))
    const isAhead = kind === 'old' && ones.some(contradictsClock)
    const advice = isBusy ? ['patchmirror status'] : [...new Set(renewals)]
    const subject = ones.map(({ name }) => name).join(', ')
    const reasons = ones.flatMap(({ name, ageSeconds, asOf }) =>
      asOf === null ? [] : (describeOverAge(config, name, ageSeconds) ?? []),
    )
    const started = earliest(ones.map(({ lastRun }) => lastRun?.startedAt ?? null))
    return [
      problem(kind, isFirst ? 'warning' : 'failed', subject, AGE_TEXTS[kind], {
        detail: kind === 'empty' && isBusy ? BUSY : detailOfAge(kind, isAhead ? [...reasons, AHEAD] : reasons),
        since: kind === 'first_run' ? started : null,
        effect: effectOfAge(status, kind, ones),
        advice: kind === 'age_unknown' || isAhead ? ['patchmirror doctor'] : advice,
        unready: true,
        ...(kind !== 'first_run' && { sources: ones.map(({ name }) => name) }),
      }),
    ]
  })
}

/** What is served meanwhile; null: the text of the problem says it. */
function effectOfAge(status: Served, kind: AgeKind, ones: readonly SourceStatus[]): string | null {
  if (kind === 'first_run') return 'nothing of it is served until it has ended'
  const dates = ones.map(({ asOf }) => asOf)
  return kind === 'empty' ? null : servedWords(status, dates)
}

const AHEAD =
  'the last sync was complete, and began hours after the date of its data: the clock here is ahead, or upstream’s is behind. Check it (NTP)'

const BUSY = 'the run of another source is in progress'

function detailOfAge(kind: AgeKind, reasons: readonly string[]): string | null {
  if (reasons.length === 0) return null
  const text = [...new Set(reasons)].join('; ')
  return kind === 'age_unknown' ? `${text}. Set the clock of this machine (NTP)` : text
}

const AGE_TEXTS: Readonly<Record<AgeKind, string>> = {
  old: 'older than its policy',
  age_unknown: 'its age is not known',
  empty: 'nothing is mirrored yet',
  first_run: 'the first run is in progress',
}

/** The command that brings newer data of a source. */
function renewal(config: Config, name: SourceName): string {
  if (isReader(config)) return 'patchmirror fleet status'
  if (activeSources(config).includes(name)) return `patchmirror sync ${name}`
  return config.fleet.url === null ? 'patchmirror bundle import FILE' : 'patchmirror fleet status'
}

/** Snapshots that were stored at a time that is still to come: the clock was ahead then, or is behind now. */
function futureProblem(sources: readonly SourceStatus[], now: number): MirrorProblem[] {
  const ahead = sources.filter(({ lastChangeAt }) => isFuture(lastChangeAt, now))
  if (ahead.length === 0) return []
  const subject = ahead.map(({ name }) => name).join(', ')
  const dates = ahead.map(({ name, lastChangeAt }) => `${name} on ${lastChangeAt}`).join(', ')
  const detail = `Stored: ${dates}. The clock of this machine was ahead then, or is behind now. Set it (NTP)`
  const effect = 'ages and the dates of changes may be wrong'
  const more = { detail, effect, advice: ['patchmirror doctor'] }
  return [problem('future', 'warning', subject, 'the newest snapshot lies in the future', more)]
}

function isFuture(date: string | null, now: number): boolean {
  return date !== null && ageSecondsOf(Date.parse(date), now) === null
}

/** Artifacts that are stored and not verified: somebody else may have written them. */
function signatureProblem({ name, signatures }: SourceStatus): MirrorProblem[] {
  if (signatures === null || signatures.failed + signatures.none === 0) return []
  const { failed, none, enforced, unverified } = signatures
  const [first] = unverified
  const text = `the signatures of ${counted(failed, 'artifact')} failed, ${none} without one`
  const effect = enforced ? 'what is not verified rules nothing out' : 'they are served and believed'
  const detail = first === undefined ? null : `${first.path}: ${first.reason}`
  const advice = ['patchmirror runs', 'patchmirror show TAG']
  return [problem('signatures', 'warning', name, text, { detail, effect, advice })]
}

function partialProblem({ name, state, wrongRun, lastSuccessAt }: SourceStatus): MirrorProblem[] {
  if (state !== 'partial') return []
  const advice = wrongRun === null ? [] : [`patchmirror runs ${wrongRun.id}`]
  const last = lastSuccessAt === null ? 'no run was complete yet' : `the last complete run ended on ${lastSuccessAt}`
  return [
    problem('partial', 'warning', name, 'the last run was partial', {
      detail: wrongRun?.message ?? null,
      effect: `what is missing is not served, or in an older version; ${last}`,
      advice,
    }),
  ]
}
