import { counted } from '../../core/text.ts'
import { missingOf } from '../../api/snapshot/missing.ts'
import { answerFindings } from '../../findings/answers.ts'
import { type MissingOf, tagMessage } from '../../findings/messages.ts'
import { judgedWords } from '../../store/findings/words.ts'
import { table } from '../output.ts'
import type { LookupCall } from './snapshot.ts'

/** Reasons why tags are not judged that are shown. */
const MOST_REASONS = 5

/** Returns what snapshots lack that this mirror has, or had before. */
export function missingBy(reads: LookupCall['reads']): MissingOf {
  return (source, snapshot) => missingOf(reads, source, snapshot)
}

/** The judged tags, those with the most findings that have a fix first, and why others are not judged. */
export function findingsOfTags({ config, reads: stored }: LookupCall, limit: number) {
  const { reasons, tags, ...json } = answerFindings(config, missingBy(stored), (reads) => ({
    reasons: reads.listRefusals(MOST_REASONS),
    tags: reads.listTagsToFix(limit),
  }))
  const { counts } = json
  const rows = tags.map((tag) => [
    tag.name,
    ...[tag.fixable, tag.findings, tag.critical, tag.high, tag.suppressed].map(String),
  ])
  const head = ['tag', 'with a fix', 'findings', 'critical', 'high', 'ruled out by VEX']
  return {
    json: { ...json, tags: tags.map(tagMessage), notJudged: reasons },
    lines: [
      judgedWords(counts, true),
      ...reasons.map(({ reason, tags: of }) => `not judged: ${counted(of, 'tag')}: ${reason}`),
      ...(rows.length === 0 ? [] : ['', ...table(head, rows).split('\n')]),
      ...(rows.length < counts.judged ? ['', `more exist than these ${rows.length}: --limit shows up to 1000`] : []), // prettier-ignore
    ],
  }
}
