import type { Config } from '../../config/schema.ts'
import { runPool } from '../../base/pacing.ts'
import { parseDate } from '../../base/time.ts'
import { READER_FOLDER } from './generations/format/object-names.ts'
import { FleetError, type ObjectInfo, type ObjectStore, readObject } from './objects/object-store.ts'

/** Returns a role as mirrors report it: a sole writer is a writer. */
export function reportedRole(role: Config['fleet']['role']): 'auto' | 'writer' | 'reader' | 'standby' {
  return role === 'sole-writer' ? 'writer' : role
}

/** Returns the key of the object in which a mirror says what it serves. */
function readerKey(id: string): string {
  return `${READER_FOLDER}${id}.json`
}

/**
 * What a mirror said last of itself. It is not signed: what is served never depends on it, only how soon the leader has a
 * generation activated.
 */
export interface ReaderReport {
  readonly id: string
  readonly name: string
  readonly site: string | null
  readonly role: string
  readonly leads: boolean
  /** The generation that it served; 0: none. */
  readonly generation: number
  /** Seconds for which the newest generation that it knew should have been served. */
  readonly lagSeconds: number | null
  readonly version: string
  /** Where other mirrors reach it; null: nowhere, or an earlier version wrote this. */
  readonly address: string | null
  /** How this mirror compresses (`deflaterId`): what it can make of thin bundles. Null: it needs whole ones, or an earlier version wrote this. */
  readonly deflater: string | null
  /** Whether it was stopped: it follows nothing until its next start. */
  readonly stopped: boolean
  /** When it wrote this, ISO 8601, by its own clock. */
  readonly at: string
}

/** Writes what a mirror says of itself. */
export async function writeReader(store: ObjectStore, report: ReaderReport): Promise<void> {
  await store.put(readerKey(report.id), Buffer.from(`${JSON.stringify(report)}\n`))
}

/** How long what a mirror said is left as it is while nothing changed, milliseconds. */
const UNCHANGED_MS = 600_000

/**
 * Returns what writes the reports of a mirror: at once when something changed, otherwise each ten minutes, so that a fleet at
 * rest asks the store for little else than its polls. `clock`: milliseconds that are never set. Throws `fleet`.
 */
export function createReporter(store: ObjectStore, clock: () => number): (report: ReaderReport) => Promise<void> {
  let last = { text: '', at: 0 }
  return async (report) => {
    const text = JSON.stringify({ ...report, at: '' })
    if (text === last.text && clock() - last.at < UNCHANGED_MS) return
    await writeReader(store, report)
    last = { text, at: clock() }
  }
}

const MAX_BYTES = 16_384

/** Most objects that are listed, and of these the newest that are read: every mirror of a fleet may write any number. */
const MOST_LISTED = 10_000
const MOST_READ = 500

function isReader({ key, size }: ObjectInfo): boolean {
  return /^readers\/[\da-f]{32}\.json$/.test(key) && size <= MAX_BYTES
}

/** Reads what the mirrors of a fleet said of themselves, by name; objects that are none are left out. Throws `fleet`. */
export async function listReaders(store: ObjectStore): Promise<ReaderReport[]> {
  return readReports(store, (await listNewest(store)).slice(0, MOST_READ))
}

/** How long a mirror counts as present after its last report, milliseconds: more than twice as long as one at rest is silent. */
const PRESENT_MS = 2.5 * UNCHANGED_MS

/** Reads what the mirrors said that are present, by the store's clock, and were not stopped. Throws `fleet`, also where they are too many to be read. */
export async function listPresent(store: ObjectStore): Promise<ReaderReport[]> {
  const infos = await listNewest(store)
  const since = (infos[0]?.modifiedAt ?? 0) - PRESENT_MS
  const present = infos.filter(({ modifiedAt }) => modifiedAt >= since)
  if (present.length > MOST_READ) throw new FleetError('refused', `${store.url} has more than ${MOST_READ} mirrors`)
  return (await readReports(store, present)).filter(({ stopped }) => !stopped)
}

async function listNewest(store: ObjectStore): Promise<ObjectInfo[]> {
  const infos: ObjectInfo[] = []
  for await (const info of store.list(READER_FOLDER)) {
    if (isReader(info)) infos.push(info)
    if (infos.length === MOST_LISTED) break
  }
  return infos.sort((one, other) => other.modifiedAt - one.modifiedAt)
}

/** Objects that are read at once. */
const AT_ONCE = 16

async function readReports(store: ObjectStore, infos: readonly ObjectInfo[]): Promise<ReaderReport[]> {
  const reports: ReaderReport[] = []
  await runPool(infos, AT_ONCE, async ({ key }) => {
    const found = await readObject(store, key, MAX_BYTES)
    const report = found === null ? null : parseReader(found.bytes)
    if (report !== null) reports.push(report)
  })
  return reports.sort((one, other) => (one.name < other.name ? -1 : 1))
}

function parseReader(bytes: Buffer): ReaderReport | null {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const report: Readonly<Record<string, unknown>> = { ...value }
  const { id, name, site, role, leads, generation, lagSeconds, version, address, deflater, stopped, at } = report
  const texts = [id, name, role, version, at]
  if (!texts.every((text) => typeof text === 'string' && text.length <= 500)) return null
  if (parseDate(String(at)) === null) return null
  return {
    id: String(id),
    name: String(name),
    role: String(role),
    version: String(version),
    at: String(at),
    leads: leads === true,
    stopped: stopped === true,
    site: typeof site === 'string' ? site.slice(0, 500) : null,
    generation: Number.isSafeInteger(generation) ? Number(generation) : 0,
    lagSeconds: typeof lagSeconds === 'number' ? lagSeconds : null,
    deflater: typeof deflater === 'string' ? deflater.slice(0, 500) : null,
    address: typeof address === 'string' && /^https?:\/\/[^@]{1,500}$/.test(address) ? address : null,
  }
}
