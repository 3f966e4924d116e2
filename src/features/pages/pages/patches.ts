import { RESOURCES } from '../../../base/domain/resources.ts'
import { patchesTable } from '../../lookup/list-answers.ts'
import type { FormField } from '../blocks.ts'
import { listBlocks } from '../links.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'
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
  const page = readListPage(call, PATH, wanted, after)
  const filter = Object.fromEntries(given)
  const table = listBlocks(call, 'patches', patchesTable(page), filter)
  const fields = FACETS.flatMap((facet) => fieldOf(facet, filter))
  const form = { kind: 'form', label: 'Filter of patches', action: ui('patches') } as const
  return { title: 'Patches', blocks: [{ ...form, fields, button: 'Filter' }, ...table] }
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
