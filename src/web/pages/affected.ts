import { eachObject, fieldsOf } from '../../json/objects.ts'
import { type Cell, clip, grouped, link, plain } from '../cells.ts'
import type { PageCall } from '../page.ts'

type Fields = ReturnType<typeof fieldsOf>

/** Ranges and fixed versions of one package that are shown. */
const MOST_RANGES = 20
const MOST_VERSIONS = 8

/** Returns a row of an affected package: ecosystem, package, affected ranges, fixed versions. */
export function affectedRow({ ui }: Pick<PageCall, 'ui'>, affected: unknown): (Cell | Cell[])[] {
  const fields = fieldsOf(affected)
  const { ecosystem, name, purl } = fieldsOf(fields['package'])
  const shown = typeof ecosystem === 'string' ? ecosystem : ''
  const key = typeof name === 'string' ? name : ''
  const short = shown.length < 500 && key.length < 500
  const cell =
    shown !== '' && key !== '' && short
      ? link(key, ui('package', { ecosystem: shown, name: key }))
      : plain(name)
  const note = typeof purl === 'string' ? { note: clip(purl, 120) } : {}
  const ranges = rangesOf(fields)
  return [plain(ecosystem), { ...cell, ...note }, ranges.affected, ranges.fixed]
}

function rangesOf(affected: Fields): { readonly affected: Cell[]; readonly fixed: Cell[] } {
  const ranges = [...eachObject(affected['ranges'])].slice(0, MOST_RANGES)
  const events = ranges.flatMap(({ type, events }) => eventsOf(type, events))
  const fixed = ranges.flatMap((range) =>
    [...eachObject(range['events'])].flatMap(({ fixed }) =>
      fixed === undefined ? [] : [plain(fixed, 100)],
    ),
  )
  const versions: unknown[] = Array.isArray(affected['versions']) ? affected['versions'] : []
  const listed = versions.slice(0, MOST_VERSIONS).map((one) => clip(String(one), 60))
  const more =
    versions.length > MOST_VERSIONS ? ` and ${grouped(versions.length - MOST_VERSIONS)} more` : ''
  const named = listed.length === 0 ? [] : [plain(`versions ${listed.join(', ')}${more}`)]
  return {
    affected: [...events, ...named].slice(0, MOST_RANGES),
    fixed: fixed.length === 0 ? [plain('no fix is named')] : fixed.slice(0, MOST_RANGES),
  }
}

/** Returns a range in words: `from 1.0 before 1.2.3`. */
function eventsOf(type: unknown, value: unknown): Cell[] {
  const words = [...eachObject(value)].slice(0, MOST_RANGES).flatMap((event) =>
    Object.entries(event).flatMap(([name, version]) => {
      const word = WORDS[name]
      return word === undefined ? [] : [`${word} ${clip(String(version), 100)}`]
    }),
  )
  if (words.length === 0) return []
  return [plain(`${type === 'GIT' ? 'commits ' : ''}${words.join(' ')}`, 400)]
}

const WORDS: Readonly<Partial<Record<string, string>>> = {
  introduced: 'from',
  fixed: 'before',
  last_affected: 'up to',
  limit: 'limit',
}

/** Returns the severities that a record names, also in the place where the vendor writes its own. */
export function severityCells(record: Fields): Cell[] {
  const own = [...eachObject(record['severity'])].slice(0, 10).map(({ type, score }) => {
    return plain(`${clip(String(type), 40)} ${clip(String(score), 120)}`)
  })
  const { severity } = fieldsOf(record['database_specific'])
  return typeof severity === 'string' ? [plain(severity, 60), ...own] : own
}
