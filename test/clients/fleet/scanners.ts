import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Feed } from '../../sandbox/feed/types.ts'

const INDEX = '/external/osv/all.json'
const PAUSE_MS = 60
const HANGS_MS = 20_000

const sha = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

/** What the service ever published. */
export interface Publications {
  /** Notes what the service shows now; returns its number. Call it after each change. */
  note(): number
  /** The publication that has this index; undefined: none. */
  indexAt(body: string): number | undefined
  /** The publication that first had this record; undefined: none. */
  recordAt(id: string, body: string): number | undefined
  /** The publication of a record that the index of a publication is about; undefined: it is not in that index. */
  promised(id: string, publication: number): number | undefined
  ids(publication: number): readonly string[]
}

/** Remembers every state of a feed by its digests. */
export function rememberPublications(feed: Feed): Publications {
  const indexes = new Map<string, number>()
  const records = new Map<string, number>()
  const states: Map<string, number>[] = [new Map<string, number>()]
  const note = (): number => {
    const publication = states.length
    const state = new Map<string, number>()
    for (const id of feed.ids()) {
      const key = `${id} ${sha(feed.record(id))}`
      if (!records.has(key)) records.set(key, publication)
      state.set(id, records.get(key) ?? publication)
    }
    states.push(state)
    indexes.set(sha(feed.index()), publication)
    return publication
  }
  note()
  return {
    note,
    indexAt: (body) => indexes.get(sha(body)),
    recordAt: (id, body) => records.get(`${id} ${sha(body)}`),
    promised: (id, publication) => states[publication]?.get(id),
    ids: (publication) => [...(states[publication]?.keys() ?? [])],
  }
}

/** What the scanners of one address saw. */
export interface Seen {
  readonly name: string
  scans: number
  /** Unix milliseconds at which the index of a publication was seen first. */
  readonly firstAt: Map<number, number>
  /** Answers that were not 200, with their times. */
  readonly failures: string[]
  /** Pairs of an index and an older record, and answers that went backwards. */
  readonly mixed: string[]
}

/** Scanners that ask all the time, one for each address. */
export interface Scanners {
  readonly seen: readonly Seen[]
  /** Resolves once all of these addresses showed a publication. */
  shown(publication: number, names: readonly string[]): Promise<void>
  stop(): Promise<void>
}

/** Starts a scanner for each address. */
export function startScanners(targets: Readonly<Record<string, string>>, publications: Publications): Scanners {
  const ending = { now: false }
  const seen = Object.keys(targets).map((name): Seen => ({
    name,
    scans: 0,
    firstAt: new Map(),
    failures: [],
    mixed: [],
  }))
  const running = seen.map((one) => scanOften(one, targets[one.name] ?? '', publications, () => ending.now))
  return {
    seen,
    async shown(publication, names) {
      const asked = seen.filter(({ name }) => names.includes(name))
      while (!asked.every(({ firstAt }) => firstAt.has(publication))) await sleep(20)
    },
    async stop() {
      ending.now = true
      await Promise.all(running)
    },
  }
}

async function scanOften(seen: Seen, url: string, publications: Publications, isEnding: () => boolean): Promise<void> {
  const last: Last = { index: 0, records: new Map() }
  for (; !isEnding(); seen.scans++) {
    try {
      await scan(seen, url, publications, last)
    } catch (error) {
      seen.failures.push(`${new Date().toISOString()} ${String(error)}`)
    }
    await sleep(PAUSE_MS)
  }
}

interface Last {
  index: number
  readonly records: Map<string, number>
}

async function scan(seen: Seen, url: string, publications: Publications, last: Last): Promise<void> {
  const found = publications.indexAt(await textOf(url + INDEX))
  const complain = (text: string): void => void seen.mixed.push(`${seen.scans}: ${text}`)
  if (found === undefined) return complain('an index that the service never had')
  if (found < last.index) complain(`index ${found} after ${last.index}`)
  last.index = found
  if (!seen.firstAt.has(found)) seen.firstAt.set(found, Date.now())
  for (const id of chosen(publications, found, seen.scans)) {
    const body = await textOf(`${url}/external/osv/${encodeURIComponent(id)}.json`)
    const record = publications.recordAt(id, body)
    if (record === undefined) complain(`${id} as the service never had it`)
    else if (record < (publications.promised(id, found) ?? 0)) complain(`${id} of ${record} beside index ${found}`)
    else if (record < (last.records.get(id) ?? 0)) complain(`${id} went back to ${record}`)
    else last.records.set(id, record)
  }
}

/** Some that the publication changed, and one of all the others in turn. */
function chosen(publications: Publications, index: number, turn: number): string[] {
  const ids = publications.ids(index)
  const changed = ids.filter((id) => publications.promised(id, index) === index).slice(0, 2)
  return [...new Set([...changed, ids[turn % ids.length] ?? ''])]
}

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(HANGS_MS) })
  const text = await answer.text()
  if (answer.status === 200) return text
  throw new Error(`${answer.status} for ${url}: ${text.slice(0, 200)}`)
}
