import { type PublishedDoubt, doubtSummaries } from '../../../../base/domain/doubts.ts'
import { type SourceName, SOURCES, isPrivateSource } from '../../../../base/domain/sources.ts'
import { type LeftReads, leftRecords } from '../../../../store/changes/left.ts'
import type { LoggedSnapshot } from '../../../../store/changes/log.ts'
import { createTagNames, labelOfPath } from '../../../lookup/reads/tag-names.ts'
import type { NamedChange } from '../../../lookup/change-tables.ts'
import { grouped } from '../../../lookup/answers/cells.ts'
import type { Reads } from '../../../../store/reads.ts'
import { type PageCall, choiceOf } from '../../page.ts'

/** Returns the sources that a query asks for: one, or all that this client may read. Throws `bad_request`. */
export function askedSources({ query, signedIn }: PageCall): readonly SourceName[] {
  const chosen = choiceOf(query, 'source', SOURCES)
  if (chosen !== '') return [chosen]
  return SOURCES.filter((source) => signedIn || !isPrivateSource(source))
}

/** Says what the guard doubted of a logged snapshot, one sentence a kind. */
export function doubtWords({ changes }: Pick<Reads, 'changes'>, { id }: LoggedSnapshot): string[] {
  const doubts = changes.readDoubts(id)
  return doubts === null ? [] : doubtSummaries(doubts)
}

/** Returns the doubts of one logged snapshot by the ids of the records. */
export function doubtsIn(
  { changes }: Pick<Reads, 'changes'>,
  { source, id }: LoggedSnapshot,
): ReadonlyMap<string, readonly PublishedDoubt[]> {
  return changes.listDoubts({ source, after: id - 1, until: id })
}

/** Returns what a logged snapshot changed, in words. What is not known to be removed upstream is not called removed. */
export function changeWords(reads: LeftReads, row: LoggedSnapshot): string {
  const { added, changed, removed, complete, previous } = row
  if (previous === null) return 'first snapshot of this source'
  if (!complete) return 'everything may have changed'
  const left = leftRecords(reads, row)?.count ?? 0
  const counts = [
    [added, 'added'],
    [changed, 'changed'],
    [(removed ?? 0) - left, 'removed'],
    [left, 'not mirrored any more'],
  ] as const
  const words = counts.flatMap(([number, word]) =>
    number === null || number === 0 ? [] : [`${grouped(number)} ${word}`],
  )
  return words.length === 0 ? 'no name changed' : words.join(', ')
}

/** Creates what says what people call the tags of a source, by their paths; nothing else has a further name. */
export function labelerOf({ reads }: Pick<PageCall, 'reads'>, source: SourceName) {
  const nameOf = source === 'catalog' ? createTagNames(reads) : () => null
  return ({ name }: { readonly name: string }): Pick<NamedChange, 'label'> => ({ label: labelOfPath(nameOf, name) })
}
