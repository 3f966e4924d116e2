import { toIso } from '../../../../base/time.ts'
import { type PublishedDoubt, doubtSentence } from '../../../../base/domain/doubts.ts'
import { type SourceName, SOURCES, isPrivateSource } from '../../../../base/domain/sources.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, code, link, plain, state, time } from '../../../../answers/cells.ts'
import { type PageCall, parameter } from '../../page.ts'
import { selectOf } from '../runs/list.ts'

/** Returns the form that asks what changed since a time, of a source or a package. */
export function formBlock(call: PageCall, shown = parameter(call.query, 'source')): Block {
  const { query, ui, signedIn } = call
  const known = SOURCES.filter((source) => signedIn || !isPrivateSource(source))
  const since = parameter(query, 'since')
  const hint = 'a date, monday, 7d, or a snapshot'
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
  return { name: 'tag', label: 'Tag', value, hint: 'for the packages in its SBOM' }
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

/** Sentences of a record that a row shows. */
const MAX_WORDS = 10

/** Returns why the change of a record is doubted, and the first sentences about it. */
export function wordCells(words: readonly string[] = [], doubts: readonly PublishedDoubt[] = []): Cell[] {
  return [...doubts.map((doubt) => state(doubtSentence(doubt), 'warn')), ...firstCells(words)]
}

function firstCells(words: readonly string[]): Cell[] {
  const more = words.length - MAX_WORDS
  const shown = words.slice(0, MAX_WORDS).map((text) => plain(text))
  return more > 0 ? [...shown, plain(`… and ${more} more`)] : shown
}

const TONES = { added: 'good', changed: 'plain', removed: 'warn' } as const

/** Returns the cell of what became of a name. */
export function changeCell(change: keyof typeof TONES): Cell {
  return state(change, TONES[change])
}

/** A record leads to its page, a path to what the mirror serves there. */
export function nameCell({ ui, root }: PageCall, source: SourceName, name: string): Cell {
  if (source === 'osv' && name.length <= 500) return code(name, ui('record', { id: name }))
  return /^\/(?![/\\])[^\p{Cc}]*$/u.test(name) ? code(name, root(name)) : code(name)
}
