import { type Cell, plain } from '../../../lookup/answers/cells.ts'
import { toIso } from '../../../../base/time.ts'
import { clip, counted } from '../../../../base/text.ts'
import type { PageCall } from '../../page.ts'
import { openRegistry } from '../images/carried.ts'
import type { Elsewhere, Without } from './others.ts'

/** Returns what says in which other tag of the repository a finding is not, and whether the registry has that tag. */
export function openElsewhere(call: Pick<PageCall, 'config' | 'remember' | 'ui'>): (found: Elsewhere) => Cell[] {
  const carriedOf = openRegistry(call)
  const isThere = ({ tag }: Without): boolean => carriedOf?.(tag.repository, tag.digests).is === 'there'
  const registryWords = ({ tag }: Without): string | null => {
    if (carriedOf === null) return null
    const carried = carriedOf(tag.repository, tag.digests)
    if (carried.is === 'not known') return 'whether it is in the registry is not known'
    const asked = `(asked ${toIso(carried.at).slice(0, 10)})`
    return carried.is === 'there' ? `which is in the registry here ${asked}` : `which is not in the registry ${asked}`
  }
  return (found) => {
    const [newest] = found.without
    if (newest === undefined) return [noneCell(found)]
    const carried = isThere(newest) ? undefined : found.without.find(isThere)
    const named = [newest, ...(carried === undefined ? [] : [carried])].map((one) => {
      const { id, text, more } = wordsOf(one)
      const notes = [dayOf(one), ...more, registryWords(one)].filter((note) => note !== null)
      const href = id.length <= 500 ? { href: call.ui('tag', { id }) } : {}
      return { text, ...href, ...(notes.length > 0 && { note: notes.join(', ') }) }
    })
    return newest.how === 'fixed' || found.unknown === 0 ? named : [...named, unknownCell(found)]
  }
}

/** Returns how a tag is without a finding: only a version that a record calls fixed is one. */
function wordsOf({ tag, how, versions }: Without) {
  const { owner: id } = tag
  const name = clip(tag.name, 200)
  const version = `with version ${clip(versions.join(' and '), 80)}`
  switch (how) {
    case 'fixed':
      return { id, text: `fixed in ${name}`, more: [] }
    case 'clear':
      return { id, text: `not affected in ${name}`, more: [version] }
    case 'vex':
      return { id, text: `not affected by VEX in ${name}`, more: [version] }
    case 'absent':
      return { id, text: `the package is not contained in ${name}`, more: ['by what its SBOM identifies'] }
  }
}

function dayOf({ tag: { changed } }: Without): string | null {
  return /^\d{4}-\d\d-\d\d/.test(changed) ? `of ${changed.slice(0, 10)}` : null
}

function unknownCell({ tags, unknown }: Pick<Elsewhere, 'tags' | 'unknown'>): Cell {
  const note = `of ${unknown} of ${counted(tags, 'other tag')}: not judged completely, or not by this record`
  return { ...plain('not known'), note }
}

/** Says that no tag is known to be without a finding: that all have it only where this is known of each. */
function noneCell({ tags, unknown, isCut }: Elsewhere): Cell {
  if (unknown > 0) return unknownCell({ tags, unknown })
  if (isCut) return { ...plain('not known'), note: `none of the ${tags} tags that are looked at` }
  if (tags === 0) return plain('no other tag of this repository is mirrored')
  return plain('no mirrored tag of this repository is without it')
}
