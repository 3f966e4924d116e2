import { MALFORMED_IDS, seconds } from '../../feed/generate.ts'
import type { Random } from '../../feed/random.ts'
import { type Topic, pickUnfixed, topicOf } from '../../feed/topic.ts'
import { PACKAGES, TARGETS, patchedVersion } from '../../feed/vocabulary.ts'
import { type Entry, type Origin, idFor, randomFor } from './collection.ts'
import { exactly } from '../replies.ts'

/** The filter vocabulary (service API, section 2). */
export const TICKET_ECOSYSTEMS = ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven'] as const
export const SEVERITIES = ['critical', 'high', 'medium', 'low'] as const
export const TICKET_STATUSES = ['open', 'in_progress', 'done', 'deferred'] as const

/** A patch as its list shows it (wire facts, patch ticket). */
export interface Ticket {
  ticket_id: string
  cve_id: string
  ecosystem: (typeof TICKET_ECOSYSTEMS)[number]
  os_distro_major: string
  package_src_name: string
  version: string
  severity: (typeof SEVERITIES)[number]
  ticket_status: (typeof TICKET_STATUSES)[number]
  patch_status: 'found' | 'not_found' | 'running'
  patch_found: boolean
  patch_found_at: string | null
  created_at: string
  updated_at: string
  note?: string
  upstream_reference?: object
}

/** The newest generated stamp; nothing that is generated depends on the clock. */
export const NEWEST = Date.UTC(2025, 11, 1)

const DAY = 86_400_000
const NOTHING = {}
const PATCH_STATUSES = ['found', 'found', 'not_found', 'running'] as const

/** The first tickets of a seed, in the order in which they were opened. */
export function generateTickets(origin: Origin, count: number): Entry<Ticket>[] {
  return Array.from({ length: count }, (_, i) => generateTicket(origin, i))
}

/** The i-th ticket of a seed. */
export function generateTicket(origin: Origin, i: number): Entry<Ticket> {
  const random = randomFor(origin.seed, 'ticket', i)
  const drawn = random.pick(TARGETS)
  const created = NEWEST - random.int(800) * DAY + random.int(DAY / 1000) * 1000 - DAY
  const updated = Math.min(NEWEST, created + random.int(90) * DAY)
  const status = random.pick(PATCH_STATUSES)
  const upstream = `${random.between(1, 9)}.${random.int(30)}.${random.int(10)}`
  const cve = `CVE-${random.between(2016, 2025)}-${1000 + random.int(48_000)}`
  const alone = { vulnerability: cve, target: drawn, name: random.pick(PACKAGES[drawn.feed]) }
  const { vulnerability, target, name } = pickRecorded(random, origin) ?? alone
  const listed: Ticket = {
    ticket_id: idFor(origin, 'ticket', i),
    cve_id: vulnerability,
    ecosystem: target.feed,
    os_distro_major: target.distroVersion,
    package_src_name: name,
    version: patchedVersion(target, upstream, random.between(1, 4)),
    severity: random.pick(SEVERITIES),
    ticket_status: random.pick(TICKET_STATUSES),
    patch_status: status,
    patch_found: status === 'found',
    patch_found_at: status === 'found' ? seconds(updated) : null,
    created_at: seconds(created),
    updated_at: seconds(updated),
  }
  if (i % 50 === 7) listed.note = 'zurückgestellt – 漏洞を確認中 🛡 \u2028 "naïve"'
  if (i % 50 === 8) listed.upstream_reference = exactly(`90071992547409${random.between(930, 999)}`)
  return { id: listed.ticket_id, seq: i, lastModified: updated, listed, detail: NOTHING }
}

/** Returns what a record of the feed is about, most often one without a fix, for two tickets in five; null for the others. */
function pickRecorded(random: Random, { seed, records }: Origin): Topic | null {
  if (records <= MALFORMED_IDS.length || !random.chance(0.4)) return null
  const unfixed = random.chance(0.7) ? pickUnfixed(random, records) : null
  const topic = topicOf(seed, unfixed ?? random.between(MALFORMED_IDS.length, records - 1))
  return topic.vulnerability.startsWith('CVE-') ? topic : null
}
