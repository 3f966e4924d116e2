import { toIso } from '../../../../base/time.ts'
import { type SourceName, SOURCES, isPrivateSource } from '../../../../base/domain/sources.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, link, time } from '../../../lookup/answers/cells.ts'
import { type PageCall, parameter } from '../../page.ts'
import { selectOf } from '../runs/list.ts'

/** Returns the form that asks what changed since a time, of a source or a package. */
export function formBlock(call: PageCall, shown = parameter(call.query, 'source')): Block {
  const { query, ui, signedIn } = call
  const known = SOURCES.filter((source) => signedIn || !isPrivateSource(source))
  const since = parameter(query, 'since')
  const hint = 'a date, monday, 7d'
  return {
    kind: 'form',
    label: 'What changed',
    action: ui('changes'),
    fields: [
      selectOf('source', 'Source', known, shown),
      { name: 'since', label: 'Since', value: since, hint },
      {
        name: 'purl',
        label: 'Package',
        value: parameter(query, 'purl'),
        hint: 'a purl, for records',
      },
      ...(signedIn ? [tagField(parameter(query, 'tag'))] : []),
    ],
    button: 'Show',
  }
}

/** The SBOM of a tag is of the catalog: the field is for those with a key. */
function tagField(value: string) {
  return { name: 'tag', label: 'Tag', value, hint: 'packages in its SBOM' }
}

/** Says since when the log has a source; nothing where it has none of it. */
export function beginning({ reads, now }: PageCall, source: SourceName): [string, Cell][] {
  const oldest = reads.changes.readNextLogged(source, 0)
  return oldest === null ? [] : [[`log of ${source} since`, time(oldest.publishedAt, now)]]
}

/** Links to what changed since the log has a source; nothing where it has none of it. */
export function sinceBeginning(
  { reads, ui }: PageCall,
  source: SourceName,
  packages: { readonly purl: string; readonly tag: string },
): [string, Cell][] {
  const oldest = reads.changes.readNextLogged(source, 0)
  if (oldest === null) return []
  const since = toIso(oldest.publishedAt)
  return knownRows(ui, 'changes since the beginning of the log', { source, since, ...packages })
}

/** Links to a list of changes that the log has. */
export function knownRows(
  ui: PageCall['ui'],
  text: string,
  query: { source: SourceName; since: string; purl: string; tag: string },
): [string, Cell][] {
  return [['what is known', link(text, ui('changes', query))]]
}

/** Sentences of a record that a row shows, and the characters of each. */
export const SHOWN = { words: 10, length: 300 }
