import { counted } from '../../../base/text.ts'
import { RESOURCES } from '../../../base/domain/resources.ts'
import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import type { Fields } from '../../../base/json/objects.ts'
import type { Block, FormField } from '../blocks.ts'
import type { Tone } from '../../../answers/answer.ts'
import { type Cell, code, plain, state, time } from '../../../answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'
import type { ListPage } from '../../../server/reading/list-page.ts'
import { readListPage } from './list-page.ts'
import { selectOf } from './runs/list.ts'

const PATH = '/v1/patches'
const FACETS = RESOURCES.flatMap(({ list }) => (list?.path === PATH ? list.facets : []))

/** Loads the page of patches: the filters of `/v1/patches` as a form. */
export function loadPatches(call: PageCall): PageView {
  const { query, ui } = call
  const given = FACETS.flatMap(({ param }): [string, string][] =>
    param === null ? [] : [[param, parameter(query, param)]],
  )
  const wanted = new URLSearchParams(given.filter(([, value]) => value !== ''))
  const after = parameter(query, 'after')
  const page = readListPage(call, PATH, {}, wanted, after)
  const filter = Object.fromEntries(given)
  const table = patchTable(call, page, {
    title: 'Patches',
    empty: 'No patch fits this filter.',
    first: after === '' ? null : ui('patches', filter),
    next: page.next === null ? null : ui('patches', { ...filter, after: page.next }),
  })
  const fields = FACETS.flatMap((facet) => fieldOf(facet, filter))
  const form = { kind: 'form', label: 'Filter of patches', action: ui('patches') } as const
  return { title: 'Patches', blocks: [{ ...form, fields, button: 'Filter' }, table] }
}

/** What a table of patches is about, and where its other pages are. */
interface PatchTable {
  readonly title: string
  readonly empty: string
  readonly first?: string | null
  readonly next: string | null
}

/** Makes the table of a page of the list of patches. */
export function patchTable(call: PageCall, { items, total }: ListPage, about: PatchTable): Block {
  return {
    kind: 'table',
    ...(total !== null && { note: `${counted(total, 'fits', 'fit')} this filter.` }),
    columns: ['CVE', 'Package', 'Ecosystem', 'Severity', 'Ticket', 'Patch', 'Updated'],
    rows: items.map((item) => rowOf(call, item)),
    ...about,
  }
}

function fieldOf({ param, values }: (typeof FACETS)[number], filter: Record<string, string>): FormField[] {
  if (param === null) return []
  const label = LABELS[param] ?? param
  const value = filter[param] ?? ''
  return [values === undefined ? { name: param, label, value } : selectOf(param, label, values, value)]
}

const LABELS: Readonly<Partial<Record<string, string>>> = {
  cve_id: 'CVE',
  package_src_name: 'Source package',
  ecosystem: 'Ecosystem',
  severities: 'Severity',
  ticket_statuses: 'Ticket',
}

const TONES: ReadonlyMap<string, Tone> = new Map([
  ['critical', 'bad'],
  ['high', 'warn'],
])

function rowOf({ ui, now }: PageCall, listed: Fields): (Cell | Cell[])[] {
  const item = fieldsOfItem(listed, 'patches')
  const cve = item['cve_id']
  const severity = item['severity']
  const updated = item['updated_at']
  return [
    typeof cve === 'string' ? code(cve, ui('cve', { id: cve.slice(0, 500) })) : plain(cve),
    [plain(item['package_src_name']), code(plain(item['version']).text)],
    [plain(item['ecosystem']), plain(item['os_distro_major'])],
    typeof severity === 'string' ? state(plain(severity).text, TONES.get(severity) ?? 'plain') : plain(severity),
    plain(item['ticket_status']),
    plain(item['patch_status']),
    typeof updated === 'string' ? time(updated, now) : plain(updated),
  ]
}
