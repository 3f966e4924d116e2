import { MirrorError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import { SINCE_FORMS, readSince } from '../../core/time.ts'
import { answerFindings, listChanges, listTags } from '../../findings/answers.ts'
import { changeMessage } from '../../store/findings/message.ts'
import { detailWords, findingWords } from '../../store/findings/words.ts'
import type { LookupOptions } from './open.ts'
import { type LookupCall, type LookupResult, limitOf, runLookup } from './snapshot.ts'
import { idOfTag } from './tag-sbom.ts'

/** Options of `patchmirror findings`. */
interface FindingsOptions extends LookupOptions {
  since?: string
}

const LIMIT = 100
/** Time within which changes are listed when none is named. */
const SINCE = '7d'

/** `patchmirror findings [TAG]`: what changed in the findings of the mirrored tags, or what they are of one tag. */
export function findingsCommand(tag: string | undefined, options: FindingsOptions): number {
  const { since = SINCE } = options
  const limit = limitOf(options.limit, LIMIT)
  const at = readSince(since, Date.now())
  if (at === null) throw new MirrorError('usage', `--since ${since} is none of: ${SINCE_FORMS}`)
  if (at > Date.now()) throw new MirrorError('usage', `--since ${since} is in the future`)
  return runLookup(options, (stored) => {
    for (const source of ['osv', 'catalog'] as const) {
      const refusal = stored.use(source)
      if (refusal !== null) throw refusal
    }
    return tag === undefined
      ? changesSince(stored, since, limit)
      : findingsOfTag(stored, tag, { since, at, limit })
  })
}

type Change = ReturnType<typeof changeMessage>

/** What changed since a time, the oldest first, as `/-/tags/changes` answers it. */
function changesSince({ config }: LookupCall, since: string, limit: number): LookupResult {
  const query = new URLSearchParams({ since, limit: String(limit) })
  const json = answerFindings(config, (reads) => listChanges(reads, query, Date.now()))
  const { changes, next, complete, counts } = json
  const lines = changes.flatMap((one) => linesOf(one, `${one.at}  ${one.tag.name}: `))
  return {
    json,
    lines: [
      `changes of findings since ${since}; ${counts.judged} of ${counted(counts.tags, 'tag')} are judged`,
      '',
      ...(lines.length === 0 ? ['nothing changed'] : lines),
      ...(complete ? [] : ['', INCOMPLETE]),
      ...(next === null ? [] : ['', `more exist than these ${changes.length}: --limit shows up to 1000`]), // prettier-ignore
    ],
  }
}

const INCOMPLETE =
  'the log may have forgotten earlier changes, or began again since then: it is kept for data.changeDays'

/** Which changes are listed: since a time, in words and as Unix milliseconds. */
interface Listed {
  readonly since: string
  readonly at: number
  readonly limit: number
}

/** The findings of a tag as numbers, and what changed in them, the newest first. */
function findingsOfTag(
  stored: LookupCall,
  name: string,
  { since, at, limit }: Listed,
): LookupResult {
  const id = idOfTag(stored, name)
  const json = answerFindings(stored.config, (reads) => ({
    ...listTags(reads, new URLSearchParams({ tag: id })),
    changes: reads
      .listLogOf(id, limit)
      .filter((one) => one.at >= at)
      .map(changeMessage),
  }))
  const [tag] = json.tags
  const { counts, notJudgedReason } = tag ?? {}
  const changes = json.changes.flatMap((one) => linesOf(one, `${one.at}  `))
  return {
    json,
    lines: [
      `tag ${tag?.name ?? name}`,
      ...(counts === undefined ? [`not judged: ${notJudgedReason ?? 'unknown'}`] : countLines(counts)), // prettier-ignore
      ...(changes.length === 0 ? [] : ['', `changes since ${since}, the newest first`, ...changes]),
    ],
  }
}

interface Counts {
  readonly packages: number
  readonly notJudged: number
  readonly findings: number
  readonly fixable: number
  readonly critical: number
  readonly high: number
  readonly suppressed: number
}

function countLines(counts: Counts): string[] {
  const { packages, notJudged, findings, fixable, critical, high, suppressed } = counts
  return [
    `${counted(findings, 'finding')}: ${fixable} with a fix, ${critical} critical, ${high} high`,
    ...(suppressed === 0 ? [] : [`${counted(suppressed, 'finding')} ruled out by VEX`]),
    `${counted(packages, 'package')}, of which ${notJudged} are not judged`,
  ]
}

function linesOf(one: Change, before: string): string[] {
  const words = findingWords({
    ...{ found: one.newFindings, foundFixable: one.newFixable },
    ...{ gone: one.goneFindings, goneFixable: one.goneFixable },
    ...{ fixes: one.newFixes, fixesGone: one.goneFixes },
  })
  const details = one.changes.map(({ change, id, package: name, version, fixable }) =>
    detailWords([change, id, name, version, fixable ? 1 : 0]),
  )
  return [before + words, ...details.map((text) => `  ${text}`)]
}
