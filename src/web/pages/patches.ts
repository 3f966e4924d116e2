import { MirrorError } from '../../core/errors.ts'
import { RESOURCES } from '../../domain/resources.ts'
import type { Frame } from '../../json/envelope.ts'
import { fieldsOf } from '../../json/objects.ts'
import type { Block, FormField } from '../blocks.ts'
import { type Cell, code, plain, state, time } from '../cells.ts'
import { type Page, type PageCall, parameter } from '../page.ts'
import { selectOf } from './runs.ts'

const PATH = '/v1/patches'
/** Items on a page. */
const PAGE = 50
const FACETS = RESOURCES.flatMap(({ list }) => (list?.path === PATH ? list.facets : []))

/** The page of patches: the filters of `/v1/patches` as a form. */
export const PATCHES: Page = {
  path: 'patches',
  label: 'Patches',
  access: 'key',
  usesStatus: false,
  load(call) {
    const { query, ui } = call
    const given = FACETS.flatMap(({ param }): [string, string][] =>
      param === null ? [] : [[param, parameter(query, param)]],
    )
    const wanted = new URLSearchParams(given.filter(([, value]) => value !== ''))
    const after = parameter(query, 'after')
    const { items, next, total } = readPage(call, wanted, after)
    const filter = Object.fromEntries(given)
    const table: Block = {
      kind: 'table',
      title: 'Patches',
      ...(total !== null && { note: `${total} fit this filter.` }),
      columns: ['CVE', 'Package', 'Ecosystem', 'Severity', 'Ticket', 'Patch', 'Updated'],
      rows: items.map((item) => rowOf(call, item)),
      empty: 'No patch fits this filter.',
      first: after === '' ? null : ui('patches', filter),
      next: next === null ? null : ui('patches', { ...filter, after: next }),
    }
    const fields = FACETS.flatMap((facet) => fieldOf(facet, filter))
    const form = { kind: 'form', label: 'Filter of patches', action: ui('patches') } as const
    return { title: 'Patches', blocks: [{ ...form, fields, button: 'Filter' }, table] }
  },
}

function fieldOf(
  { param, values }: (typeof FACETS)[number],
  filter: Record<string, string>,
): FormField[] {
  if (param === null) return []
  const label = LABELS[param] ?? param
  const value = filter[param] ?? ''
  return [
    values === undefined ? { name: param, label, value } : selectOf(param, label, values, value),
  ]
}

const LABELS: Readonly<Partial<Record<string, string>>> = {
  cve_id: 'CVE',
  package_src_name: 'Source package',
  ecosystem: 'Ecosystem',
  severities: 'Severity',
  ticket_statuses: 'Ticket',
}

type Fields = ReturnType<typeof fieldsOf>

interface ListPage {
  readonly items: readonly Fields[]
  /** Cursor of the next page. */
  readonly next: string | null
  readonly total: number | null
}

/** Reads a page as the API gives it to programs, so filters and cursors mean the same here. */
function readPage({ readApi, reads }: PageCall, wanted: URLSearchParams, after: string): ListPage {
  const query = new URLSearchParams(wanted)
  query.set('limit', String(PAGE))
  if (after !== '') query.set('after', after)
  const reply = readApi(PATH, { query })
  if ('problem' in reply) {
    const { status, message } = reply.problem
    throw new MirrorError(status === 404 ? 'not_found' : 'not_ready', message)
  }
  const list = reads.catalog.readList(PATH)
  if (!('body' in reply) || reply.body === null || list === null)
    throw new MirrorError('not_ready', 'no patches are mirrored yet')
  const frame = JSON.parse(list.frame) as Frame
  const page: unknown = JSON.parse(Buffer.from(reply.body).toString('utf8'))
  const items = at(page, frame.items)
  const total = frame.total === null ? null : at(page, frame.total)
  return {
    items: Array.isArray(items) ? items.map(fieldsOf) : [],
    next: cursorOf(frame.cursor === null ? null : at(page, frame.cursor), reply.headers),
    total: typeof total === 'number' ? total : null,
  }
}

function at(value: unknown, path: NonNullable<Frame['cursor']>): unknown {
  return path.reduce<unknown>((within, key) => fieldsOf(within)[key], value)
}

/** Returns the cursor of the next page, from the page or its Link header; both may have it within a URL. */
function cursorOf(value: unknown, headers: readonly string[]): string | null {
  const linked = headers[headers.indexOf('Link') + 1] ?? ''
  const text =
    typeof value === 'string' && value !== '' ? value : headers.includes('Link') ? linked : ''
  if (text === '') return null
  const [, within] = /[?&]after=([^&>]+)/.exec(text) ?? []
  return within === undefined ? text : decodeURIComponent(within)
}

const TONES: Readonly<Partial<Record<string, 'bad' | 'warn'>>> = { critical: 'bad', high: 'warn' }

function rowOf({ ui, now }: PageCall, item: Fields): (Cell | Cell[])[] {
  const cve = item['cve_id']
  const severity = item['severity']
  const updated = item['updated_at']
  return [
    typeof cve === 'string' ? code(cve, ui('search', { q: cve.slice(0, 500) })) : plain(cve),
    [plain(item['package_src_name']), code(plain(item['version']).text)],
    [plain(item['ecosystem']), plain(item['os_distro_major'])],
    typeof severity === 'string'
      ? state(plain(severity).text, TONES[severity] ?? 'plain')
      : plain(severity),
    plain(item['ticket_status']),
    plain(item['patch_status']),
    typeof updated === 'string' ? time(updated, now) : plain(updated),
  ]
}
