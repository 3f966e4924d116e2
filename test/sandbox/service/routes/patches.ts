import { type Call, type Reply, ServiceError } from '../request.ts'
import { type Ticket, TICKET_ECOSYSTEMS, SEVERITIES, TICKET_STATUSES } from '../data/tickets.ts'
import { type Order, sorted } from '../paging.ts'
import type { Parts } from '../parts.ts'
import { listReply } from '../replies.ts'
import type { Route } from '../router.ts'
import { plainField } from '../shapes/record.ts'

type Filter = (ticket: Ticket) => boolean

/** `/patches` with its eight parameters (service API, section 4); 400 names the one that is wrong. */
export function patchRoutes({ state: { tickets }, shape }: Parts): Route[] {
  const serve = (call: Call): Reply => {
    const { query } = call.request
    const filters = filtersOf(query)
    const order = orderOf(query.get('order'))
    const asked = ['cve_id', 'package_src_name', 'ecosystem', 'severities', 'ticket_statuses', 'order']
    const key = JSON.stringify(asked.map((name) => query.get(name)))
    const entries = tickets.select(key, () => {
      const found =
        filters.length === 0
          ? tickets.all()
          : tickets.all().filter(({ listed }) => filters.every((filter) => filter(listed)))
      return order === undefined ? found : sorted(found, order)
    })
    const lastModified = tickets.lastModified()
    return listReply(call, shape, { noun: 'ticket', entries, order, lastModified }, shape.patches)
  }
  return [{ method: 'GET', path: '/v1/patches', kind: 'list', serve }]
}

/** An empty parameter is none. */
function filtersOf(query: URLSearchParams): Filter[] {
  const filters: Filter[] = []
  const cve = query.get('cve_id') ?? ''
  const source = query.get('package_src_name') ?? ''
  const [ecosystem] = words(query, 'ecosystem', TICKET_ECOSYSTEMS, 1)
  const severities = words(query, 'severities', SEVERITIES)
  const statuses = words(query, 'ticket_statuses', TICKET_STATUSES)
  if (cve !== '') filters.push((ticket) => ticket.cve_id === cve)
  if (source !== '') filters.push((ticket) => ticket.package_src_name === source)
  if (ecosystem !== undefined) filters.push((ticket) => ticket.ecosystem === ecosystem)
  if (severities.length > 0) filters.push((ticket) => severities.includes(ticket.severity))
  if (statuses.length > 0) filters.push((ticket) => statuses.includes(ticket.ticket_status))
  return filters
}

function words(query: URLSearchParams, name: string, allowed: readonly string[], most = Infinity): string[] {
  const given = (query.get(name) ?? '').split(',').map((word) => word.trim())
  const words = given.filter((word) => word !== '')
  if (words.every((word) => allowed.includes(word)) && words.length <= most) return words
  throw new ServiceError(400, `${name} must be of ${allowed.join(', ')}`)
}

function orderOf(text: string | null): Order<Ticket> | undefined {
  if (text === null || text === '') return undefined
  const [, shown, way] = /^(\w+):(asc|desc)$/.exec(text) ?? []
  const field = shown === undefined ? undefined : plainField('ticket', shown)
  if (field === undefined) throw new ServiceError(400, 'order must be <field>:<asc or desc>')
  if (!FIELDS.includes(field)) {
    throw new ServiceError(400, `order must name one of ${FIELDS.join(', ')}`)
  }
  const name = field as Sortable // one of FIELDS
  return { value: (ticket) => ticket[name] ?? '', descending: way === 'desc' }
}

/** The fields with text values. */
type Sortable = Exclude<keyof Ticket, 'patch_found' | 'note' | 'upstream_reference'>

const FIELDS: readonly string[] = [
  'ticket_id',
  'cve_id',
  'ecosystem',
  'os_distro_major',
  'package_src_name',
  'version',
  'severity',
  'ticket_status',
  'patch_status',
  'patch_found_at',
  'created_at',
  'updated_at',
] satisfies Sortable[]
