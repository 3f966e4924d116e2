import { counted } from '../../../base/text.ts'
import { describeMissing } from '../../../server/snapshot/missing.ts'
import type { BundleStatus } from '../../../base/reports/transfer.ts'
import type { Status } from '../../../base/reports/status.ts'
import { maySync } from '../../../base/domain/sources.ts'
import type { Config } from '../../../config/schema.ts'
import { judgedWords, whyNoTags } from '../../../store/findings/words.ts'
import { timeOf } from '../../output.ts'
import { describeUnread, isRegistryAsked, registryWords } from '../../../base/domain/status.ts'
import type { ViewsStatus } from '../../../base/reports/scanners.ts'
import type { GatheredStatus } from './gather.ts'
import type { MirrorProblem } from '../../../server/status/problem.ts'
import { problemsOf } from '../../../server/status/problems.ts'

/**
 * A sync goes by the stamps of the index: when more than these was compared is another date. Nothing is said where this mirror
 * has no upstream to compare with, as a daemon that schedules no runs (`serve --offline`).
 */
export function describeCompared({ sources }: Status, config: Config, from: GatheredStatus['from']): string[] {
  const osv = sources.find(({ name, snapshot }) => name === 'osv' && snapshot !== null)
  if (osv === undefined) return []
  const at = osv.comparedAt ?? null
  const isScheduled = from !== 'daemon' || osv.nextRunAt !== null
  if (at === null && !(maySync(config) && isScheduled)) return []
  return [
    at === null
      ? `osv: contents not compared with upstream's yet: the next reconcile does that (osv.reconcileSchedule, or "patchmirror sync osv --reconcile")`
      : `osv: contents last compared with upstream's (reconcile) on ${timeOf(Date.parse(at))}`,
  ]
}

/** Returns a line on the last import. */
export function describeBundle({ sequence, kind, mirror, key, asOf, ...rest }: BundleStatus): string {
  const by = key === null ? 'UNSIGNED' : `signed by ${key}`
  const when = timeOf(Date.parse(rest.importedAt))
  const back = rest.rollback ? ', a rollback' : ''
  return `last import: bundle ${sequence} (${kind}) of mirror ${mirror}, ${by}, as of ${asOf}, on ${when}${back}`
}

/** Returns lines on outbox and inbox. */
export function describeBoxes({ boxes }: Status): string[] {
  const lines: string[] = []
  const { outbox, inbox } = boxes ?? { outbox: null, inbox: null }
  const last = outbox?.last ?? null
  if (last !== null) {
    const { kind, sequence, at, receipts } = last
    const why = receipts === null ? '' : `, ${receipts}`
    lines.push(`outbox: bundle ${sequence} (${kind}) on ${timeOf(Date.parse(at))}${why}`)
  }
  if (inbox === null) return lines
  const { waiting, imported, superseded, refused } = inbox
  lines.push(`inbox: ${imported} imported, ${superseded} superseded, ${refused} refused`)
  return [...lines, ...describeWaiting(waiting)]
}

/** Returns a line on which images the registry has; none where the settings name no registry. */
export function describeRegistry({ images }: Config, { registry }: Pick<Status, 'registry'>): string[] {
  if (registry === undefined) return []
  const { checkedAt } = registry
  const name = images.registry === null ? 'registry' : `registry ${images.registry}`
  const words = `${name}: ${registryWords(registry)}`
  if (!isRegistryAsked(registry)) return [words]
  return [
    `${words}, ${checkedAt === null ? 'not checked to the end yet' : `checked on ${timeOf(Date.parse(checkedAt))}`}`,
  ]
}

/** What is served lacks something, whatever became of the last run. */
export function describeSourcesMissing({ sources }: Status): string[] {
  return sources.flatMap((source) => {
    const words = describeMissing(source.name, source)
    return words === null ? [] : [`${source.name}: ${words}`]
  })
}

/** Returns a line for each list that is not known to be complete, or whose end is not proved. */
export function describeLists({ sources }: Status): string[] {
  return sources.flatMap(({ name, partialLists, unprovedLists }) => [
    ...partialLists.map(({ path, reason }) => `${name}: ${path} is not known to be complete: ${reason}`),
    ...unprovedLists.map(({ path, reason }) => `${name}: the end of ${path} is not proved: ${reason}`),
  ])
}

/** Returns a line on what the signatures of the artifacts came to; none where they are not verified. */
export function describeSignatures({ sources }: Status): string[] {
  return sources.flatMap(({ signatures }) => {
    if (signatures === null) return []
    const { verified, failed, none } = signatures
    return [`signatures: ${verified} verified, ${failed} failed, ${none} without one`]
  })
}

/** Returns a line on the last verification of what is stored; none where none is known. */
export function describeVerified({ verified = null }: Status): string[] {
  if (verified === null) return []
  const { endedAt, damagedCount, healed } = verified
  const found = damagedCount === 0 ? 'sound' : `${counted(damagedCount, 'part')} damaged`
  const more = healed === null ? '' : `, healed: ${healed}`
  return [`verified on ${timeOf(Date.parse(endedAt))}: ${found}${more}`]
}

/** Returns a line on one kind of views, as `patchmirror status` prints it. */
export function describeViews({ kind, state, madeAt, odd, unread, ...is }: ViewsStatus): string {
  const parts = [
    state,
    ...(madeAt === null ? [] : [`made on ${timeOf(Date.parse(madeAt))}`]),
    ...(is.making ? ['being built'] : []),
    ...(is.failing ? ['the last try failed: see the log'] : []),
    ...(odd ? [`${counted(odd, 'record')} with an invalid package`] : []),
    ...(unread ? [describeUnread(unread)] : []),
  ]
  return `views of ${kind}: ${parts.join(', ')}`
}

/** Returns how far the SBOMs of the tags are judged, or why they are not; null where nothing is to be said. */
export function describeFindings(config: Config, status: Status): string | null {
  const { findings, sources, views = [] } = status
  const snapshotOf = (source: string) => sources.find(({ name }) => name === source)?.snapshot
  const off = whyNoTags(config)
  const line = (text: string): string => `findings of tags: ${text}`
  if (off !== null) return snapshotOf('catalog') ? line(`none: ${off}`) : null
  if (findings === undefined) return null
  const { state, tags, judged, judging, failing } = findings
  const more = `${judging ? ', being judged' : ''}${failing ? ', the last try failed: see the log' : ''}`
  if (state !== 'none') {
    const why = judged === 0 && tags > 0 ? ': "patchmirror list findings" says why' : ''
    return line(`${state}${partialWords(sources)}, ${judgedWords({ tags, judged }, true)}${why}${more}`)
  }
  if (snapshotOf('catalog') === undefined) return line('none: this mirror has no catalog')
  const missing = [
    ...(snapshotOf('catalog') === null ? ['the catalog is not mirrored yet'] : []),
    ...(snapshotOf('osv') ? [] : ['no records are mirrored yet']),
    ...(views.some(({ kind, state: is }) => kind === 'osv' && (is === 'none' || is === 'unreadable'))
      ? ['the views of the records are not built yet']
      : []),
  ]
  return line(`the tags are not judged yet${missing.length === 0 ? '' : `: ${missing.join(', ')}`}${more}`)
}

/** Says by which partial sources the tags are judged; '' where they are whole. */
function partialWords(sources: Status['sources']): string {
  const partial = sources.filter((one) => one.partial && (one.name === 'osv' || one.name === 'catalog'))
  return partial.length === 0 ? '' : `, by what is partial (${partial.map(({ name }) => name).join(', ')})`
}

/** Files that wait for the same reason and are named each, at most. */
const MOST_WAITING = 3

/** Returns a line for each file that waits, and one line for all that wait for the same reason where they are many. */
function describeWaiting(waiting: readonly { file: string; why: string }[]): string[] {
  return [...Map.groupBy(waiting, ({ why }) => why)].flatMap(([why, files]) => {
    const [first] = files
    if (files.length > MOST_WAITING && first !== undefined)
      return [`inbox: ${first.file} and ${files.length - 1} more: ${why}`]
    return files.map(({ file }) => `inbox: ${file}: ${why}`)
  })
}

/** Returns the lines on everything that is wrong with the mirror: one problem for each cause, with what helps. */
export function describeProblems(status: Status, config: Config, now = Date.now()): string[] {
  return problemsOf(status, config, now).flatMap(linesOf)
}

/** A problem and its start on one line; below it more about it, its effect and commands. */
function linesOf(problem: MirrorProblem): string[] {
  const { level, subject, text, detail, since, effect, advice } = problem
  const word = level === 'failed' ? 'PROBLEM' : 'WARNING'
  const begun = since === null ? '' : `, since ${timeOf(Date.parse(since))}`
  return [
    `${word}: ${subject}: ${text}${begun}`,
    ...(detail === null ? [] : [`  ${detail}`]),
    ...(effect === null ? [] : [`  ${withTimes(effect)}`]),
    ...(advice.length === 0 ? [] : [`  ${advice.join(' | ')}`]),
  ]
}

/** The dates in a text as the table has them. */
function withTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (date) => timeOf(Date.parse(date)))
}
