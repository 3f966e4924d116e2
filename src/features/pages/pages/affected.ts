import { describeAffected, describeSeverity } from '../../../server/lookup/affected.ts'
import { clip } from '../../../base/text.ts'
import type { Fields } from '../../../base/json/objects.ts'
import { type Cell, link, plain } from '../../../answers/cells.ts'
import type { PageCall } from '../page.ts'

/** Longest name of a package or an ecosystem that leads to a page, characters. */
const MAX_NAME = 500

/** Returns a row of an affected package: ecosystem, package, affected ranges, fixed versions. */
export function affectedRow({ ui }: Pick<PageCall, 'ui'>, affected: unknown): (Cell | Cell[])[] {
  const { ecosystem, name, purl, ...ranges } = describeAffected(affected)
  const isShort = (text: string | null): text is string => text !== null && text !== '' && text.length < MAX_NAME
  const cell = isShort(ecosystem) && isShort(name) ? link(name, ui('package', { ecosystem, name })) : plain(name)
  const note = purl === null ? {} : { note: clip(purl, 120) }
  const fixed = ranges.fixed.map((one) => plain(one, 101))
  return [
    plain(ecosystem),
    { ...cell, ...note },
    ranges.affected.map((one) => plain(one, 401)),
    fixed.length === 0 ? [plain('no fix is named')] : fixed,
  ]
}

/** Returns the severities that a record names. */
export function severityCells(record: Fields): Cell[] {
  return describeSeverity(record).map((one) => plain(one))
}
