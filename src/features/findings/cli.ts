import { TAGS } from '../../base/domain/resources.ts'
import { terminalLines, terminalTime } from '../lookup/answers/terminal.ts'
import {
  changedFindingsTable,
  judgedParts,
  noChangeWords,
  tagFindingsPart,
  tagsToFix,
} from '../lookup/change-tables.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { SINCE_FORMS, missingUnit, readSince, toIso, toIsoOrNull } from '../../base/time.ts'
import { type MissingParts, describeMissing, missingOf } from '../../server/snapshot/missing.ts'
import { tagRemovedAt } from '../../server/lookup/named.ts'
import { answerFindings, explained, listChanges, ownerNamed } from './answers.ts'
import { type MissingOf, type stateMessage, tagMessage } from './messages.ts'
import { requireWhole } from '../../store/catalog/completeness.ts'
import type { FindingsReads, TagFindings } from '../../store/findings/reads.ts'
import { type KnownOfTags, NOT_JUDGED, VEX_GAP, gapWords, judgedWords, tagGaps } from '../../store/findings/words.ts'
import { createWhySbomOld } from '../../documents/sboms/mirrored.ts'
import { type LookupOptions, sinceGiven } from '../lookup/open.ts'
import { type LookupCall, type LookupResult, limitOf, runLookup } from '../lookup/snapshot.ts'
import { createWhyNotJudged, reasonsNotJudged } from '../lookup/tag.ts'
import { idOfTag } from '../lookup/tag-sbom.ts'

/** Options of `patchmirror list findings` and `patchmirror changes --findings`. */
interface FindingsOptions extends LookupOptions {
  since?: string
  /** By its name, digest or id. */
  tag?: string
}

const LIMIT = 100
/** Time within which changes are listed when none is named, or as far back as they are known. */
const SINCE = '7d'

/** `patchmirror list findings [TAG]`: the tags with the numbers of their findings, or those of one and what changed in them. */
export function listFindingsCommand(tag: string | undefined, options: FindingsOptions): Promise<number> {
  if (tag !== undefined) return findingsCommand({ ...options, tag }, false)
  if (options.since === undefined) return findingsCommand(options, true)
  throw new MirrorError('usage', '--since is of one tag: name it, or ask "patchmirror changes --findings" for all')
}

/** `patchmirror changes [SINCE] --findings`: what changed in the findings of the mirrored tags, or of one. */
export function changedFindingsCommand(given: string | undefined, options: FindingsOptions): Promise<number> {
  const since = sinceGiven(given, options.since)
  return findingsCommand({ ...options, ...(since !== undefined && { since }) }, false)
}

function findingsCommand(options: FindingsOptions, all: boolean): Promise<number> {
  const { since, tag } = options
  const limit = limitOf(options.limit, LIMIT)
  const at = readSince(since ?? SINCE, Date.now())
  if (at === null)
    throw new MirrorError('usage', `--since ${since}${missingUnit(since ?? '')} is none of: ${SINCE_FORMS}`)
  if (at > Date.now()) throw new MirrorError('usage', `--since ${since} is in the future`)
  return runLookup(options, (stored) => {
    for (const source of ['osv', 'catalog'] as const) {
      const refusal = stored.use(source)
      if (refusal !== null) throw refusal
    }
    if (all) {
      const found = findingsOfTags(stored, limit)
      return { ...found, lines: [...found.lines, '', judgedLine(found.json, stored.used())] }
    }
    const removedAt = (id: string): number | null => tagRemovedAt(stored.reads, id)
    const asked = { at: toIso(at), since, limit, removedAt }
    return tag === undefined ? changesSince(stored, asked) : findingsOfTag(stored, tag, asked)
  })
}

/** Which changes are listed. */
interface Asked {
  /** The time since which, as ISO 8601. */
  readonly at: string
  /** What was written for it; without it as far back as changes are known, if that is less. */
  readonly since: string | undefined
  readonly limit: number
  /** When the catalog lost a tag. */
  readonly removedAt: (id: string) => number | null
}

/** What changed since a time, the oldest first, as `/-/tags/changes` answers it. */
function changesSince({ config, used, reads: stored }: LookupCall, asked: Asked): LookupResult {
  const json = answerFindings(config, missingBy(stored), (reads) => listSince(reads, asked, null))
  const { changes, next, counts, since } = json
  const empty = counts.judged === 0 ? noChangeWords(counts) : `${noChangeWords(counts)}${newerWords(json, used())}`
  const table = changedFindingsTable(changes, { empty, ...moreOf(next, changes.length) })
  const none = '"patchmirror list findings" says why none is judged'
  return {
    json,
    lines: [
      `changes of findings since ${since}; ${judgedWords(counts, true)}`,
      ...(counts.judged === 0 && counts.tags > 0 ? [none] : []),
      '',
      ...terminalLines({ parts: [table] }),
      '',
      judgedLine(json, used()),
    ],
    table,
  }
}

/**
 * Lists the changes since what is asked for; without a time of a week ago, or as far back as they are known. Throws
 * `not_ready` where they are not known since then.
 */
function listSince(reads: FindingsReads, { at, since, limit, removedAt }: Asked, tag: string | null) {
  const list = (of: string) => {
    const query = new URLSearchParams({ limit: String(limit) })
    for (const [name, value] of Object.entries({ since: of, tag })) if (value !== null) query.set(name, value)
    return listChanges(reads, { query, now: Date.now(), idsNamed: () => [], removedAt })
  }
  const found = list(at)
  if (found.complete) return { since: at, ...found }
  const known = found.knownSince
  if (known === null) throw new MirrorError('not_ready', NOT_JUDGED)
  if (since === undefined) return { since: known, ...list(known) }
  const isFirst = known === toIsoOrNull(reads.readState()?.beganAt)
  const why = isFirst ? 'when the tags were judged for the first time' : 'data.historyDays'
  throw new MirrorError(
    'not_ready',
    `what changed in the findings since ${since} is not known here: they are known since ${known} (${why}); use --since ${known}`,
  )
}

/** The findings of a tag as numbers, and what changed in them, the oldest first. */
function findingsOfTag(stored: LookupCall, name: string, asked: Asked): LookupResult {
  const json = answerFindings(stored.config, missingBy(stored.reads), (reads) => {
    const id = idOfJudged(stored, reads, name)
    const tag = reads.readTag(id)
    const by = { whyNotJudged: createWhyNotJudged(stored) }
    const tags =
      tag === null ? [] : [explained(by, tagMessage(tag, knownOfTags(stored.reads, reads.listTagsWithoutVex())))]
    return { tags, ...listSince(reads, asked, id) }
  })
  const [tag] = json.tags
  const found =
    tag === undefined ? [] : [tagFindingsPart(tag.counts ?? tag.notJudgedReason ?? 'unknown', gapWords(tag))]
  const { since, changes, next } = json
  const isJudged = tag?.counts !== undefined || json.tag?.removed === true
  const none = `no change since ${terminalTime(since)}${newerWords(json, stored.used())}`
  const empty = isJudged ? none : 'whether anything changed is not known: the tag is not judged'
  const table = changedFindingsTable(changes, { empty, ...moreOf(next, changes.length) }, true)
  return {
    json,
    lines: [
      `tag ${json.tag?.name ?? name}`,
      ...(json.tag?.removed === true
        ? [`removed ${terminalTime(json.tag.removedAt ?? 'from the list of tags')}; what changed before is kept`]
        : []),
      ...terminalLines({ parts: found }),
      '',
      ...(changes.length === 0 ? [] : [`changes since ${terminalTime(since)}`]),
      ...terminalLines({ parts: [table] }),
      '',
      ...nextOf(tag, name),
      judgedLine(json, stored.used()),
    ],
    table,
  }
}

function knownOfTags(reads: LookupCall['reads'], withoutVex: readonly string[]): KnownOfTags {
  return { withoutVex, whySbomOld: createWhySbomOld(reads) }
}

/** Names the command that has the findings of a tag themselves, or why there are none; nothing for a tag that was removed. */
function nextOf(tag: ReturnType<typeof tagMessage> | undefined, name: string): string[] {
  if (tag === undefined) return []
  if (tag.notJudgedReason !== null) return [`what is stored of it: patchmirror show ${name}`]
  return [`its findings, one by one: patchmirror match ${name}`]
}

/** Returns the id of the tag that is named; of one that was removed, where its findings changed before. Throws `not_found`. */
function idOfJudged(stored: LookupCall, reads: FindingsReads, name: string): string {
  try {
    return idOfTag(stored, name)
  } catch (error) {
    const isGone = reads.listLogOf(name, 1).length > 0 || reads.listOwnersLogged(name).length > 0
    const isUnnamed = error instanceof MirrorError && ['not_found', 'not_ready'].includes(error.code)
    if (!isUnnamed || !isGone) throw error
    return ownerNamed(reads, { idsNamed: () => [] }, name)
  }
}

/** Says how to see more, where there is more. */
function moreOf(next: string | null, shown: number): { readonly more?: string } {
  return next === null ? {} : { more: `more exist than these ${shown}: --limit shows up to 1000, --since later ones` }
}

type Judged = NonNullable<ReturnType<typeof stateMessage>>

type JudgedBy = Pick<Judged, 'osv' | 'catalog'>

function isBehind({ osv, catalog }: JudgedBy, used: ReturnType<LookupCall['used']>): boolean {
  return used.some(({ snapshot }) => snapshot !== osv.snapshot && snapshot !== catalog?.snapshot)
}

/** Says, behind "nothing changed", of what this does not hold. */
function newerWords(by: JudgedBy, used: ReturnType<LookupCall['used']>): string {
  return isBehind(by, used) ? '; what the mirrored snapshot changes is not judged yet' : ''
}

/** By what the tags were judged, and whether something else is mirrored. */
function judgedLine(
  { osv, catalog, judgedAt }: Pick<Judged, 'osv' | 'catalog' | 'judgedAt'>,
  used: ReturnType<LookupCall['used']>,
): string {
  const [records, tags] = [osv.snapshot, catalog?.snapshot ?? ''].map((one) => one.slice(0, 12))
  const partial = lackWords('osv', osv) + (catalog ? lackWords('catalog', catalog) : '')
  const behind = isBehind({ osv, catalog }, used)
    ? '; another snapshot is mirrored: the daemon (patchmirror serve) judges by it'
    : ''
  return `judged ${terminalTime(judgedAt ?? 'in part')} by osv ${records} and catalog ${tags}${partial}${behind}`
}

/** Returns what a source lacks, to follow other words. */
function lackWords(source: 'osv' | 'catalog', parts: MissingParts): string {
  const lacks = describeMissing(source, parts)
  return lacks === null ? '' : `; ${source} is ${lacks}`
}

/** Reasons why tags are not judged that are shown. */
const MOST_REASONS = 5

/** Returns what snapshots lack that this mirror has, or had before. */
function missingBy(reads: LookupCall['reads']): MissingOf {
  return (source, snapshot) => missingOf(reads, source, snapshot)
}

/** The judged tags, those with the most findings that have a fix first, and why others are not judged. */
function findingsOfTags({ config, reads: stored }: LookupCall, limit: number) {
  const { reasons, tags, withoutVex, ...json } = answerFindings(config, missingBy(stored), (reads) => ({
    withoutVex: reads.listTagsWithoutVex(),
    reasons: reasonsNotJudged({ config, reads: stored }, reads.listRefused(), MOST_REASONS),
    tags: reads.listTagsToFix(limit),
  }))
  const { counts } = json
  if (counts.tags === 0)
    requireWhole(stored.catalog.whyIncomplete(TAGS), 'no tag is judged: none is stored of the list of tags')
  const more = `more exist than these ${tags.length}: --limit shows up to 1000`
  const known = knownOfTags(stored, withoutVex)
  const messages = tags.map((one) => tagMessage(one, known))
  const gapsOf = (one: TagFindings): string[] => gapWords(tagGaps(one, known))
  const table = tagsToFix(tags, gapsOf, tags.length < counts.judged ? { more } : {})
  return {
    json: { ...json, tags: messages, notJudged: reasons },
    lines: [
      ...terminalLines({ parts: [...judgedParts(counts, true, reasons), ...(tags.length === 0 ? [] : [table])] }),
      ...messages.flatMap(({ name, sbomGap, recordGap }) =>
        [sbomGap, recordGap].flatMap((gap) => (gap === null ? [] : ['', `${name}: ${gap}`])),
      ),
      ...(withoutVex.length === 0 ? [] : ['', `${counted(withoutVex.length, 'tag')}: ${VEX_GAP}`]),
      ...(reasons.length === 0 ? [] : ['', 'what is stored of a tag that is not judged: patchmirror show TAG']),
    ],
    table,
  }
}
