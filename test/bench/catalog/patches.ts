import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { Agent, request } from 'undici'
import { madeFor, readCursor } from '../../../src/server/catalog/list-cursor.ts'
import { readOrder, readWhere } from '../../../src/server/catalog/list-query.ts'
import { RESOURCES } from '../../../src/base/domain/resources.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import type { EntryQuery } from '../../../src/store/catalog/list-query.ts'
import { startDaemon, took } from '../world/daemon.ts'
import { ROOT, type SandboxProcess, ended, messageFrom, startSandbox } from '../world/processes.ts'
import { count, megabytes, milliseconds, percentile } from '../report/figures.ts'
import { type Value, atMost, defineGroup, ratio } from '../report/group.ts'
import type { Read, Reading } from './bare-child.ts'
import { catalogSettings } from './sync.ts'
import { localKey } from '../../support/keys.ts'

const TICKETS = 200_000
const LIMIT = 100
/** Pages that each combination is asked for: by cursor, from the start again after the last one or the twentieth. */
const PAGES = 300
const WALK = 20

/** Filters and orders as people combine them; `{name}` and `{cve}` are a ticket's own. */
const COMBINATIONS = [
  '',
  'severities=critical&ticket_statuses=open',
  'ecosystem=debian&severities=critical,high',
  'package_src_name={name}',
  'cve_id={cve}',
  'order=created_at:desc',
  'order=severity:asc',
  'ecosystem=npm&order=updated_at:asc',
  'ticket_statuses=deferred&order=cve_id:desc',
  'ecosystem=debian&severities=critical,high&ticket_statuses=open,in_progress&order=created_at:desc',
]

interface Run {
  readonly asked: readonly Asked[]
  readonly first: Value
  readonly beside: Value
}

/** `/v1/patches` over many tickets, pages by filter, order and cursor, against the bare statement of the same pages. */
export const patches = defineGroup<{ sandbox: SandboxProcess; close(): Promise<void> }, Run>({
  name: 'patches',
  about: ({ size }) =>
    `\`GET /v1/patches\` of ${count(size(TICKETS))} tickets, by ${COMBINATIONS.length} filters and orders.`,
  async prepare({ size }) {
    const sandbox = await startSandbox(1, ['--tickets', String(size(TICKETS))])
    return { sandbox, close: () => sandbox.stop() }
  },
  async run({ sandbox }, { seconds: length }) {
    const dir = mkdtempSync(join(tmpdir(), 'patchmirror-patches-'))
    const daemon = await startDaemon(sandbox.url, dir, catalogSettings(sandbox))
    try {
      const first = await daemon.run('catalog')
      const detail = `peak ${megabytes(daemon.usage()?.peak ?? 0)}`
      await daemon.run('osv')
      const asked = await askAll(daemon.url, dir)
      const beside = await recordsBesideLists(daemon.url, dir, length(5))
      return { asked, first: { value: took(first), detail }, beside }
    } finally {
      await daemon.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  },
  lines: () => [
    {
      work: 'pages by cursor, p99',
      against: 'the bare SQL',
      unit: '×',
      goal: atMost(1.5),
      measure: ({ asked }) => compare(asked),
    },
    {
      work: 'first sync',
      unit: 's',
      measure: ({ first }) => first,
    },
    {
      work: 'GET {id}.json beside four clients with the worst lists, p99',
      unit: 'ms',
      goal: atMost(10),
      measure: ({ beside }) => beside,
    },
  ],
})

/** The requests for lists that cost most: an order without an index, and a filter beside one. */
const WORST = ['order=version:desc&limit=1000', 'ecosystem=debian&order=patch_status:asc&limit=1000']

/** How long a plain GET of a record takes while four clients ask for the worst pages of a list, one after the other. */
async function recordsBesideLists(url: string, dir: string, length: number): Promise<Value> {
  const dispatcher = new Agent({ connections: 5, pipelining: 1 })
  const headers = localKey(dir)
  const get = async (path: string): Promise<string> => {
    const { statusCode, body } = await request(url + path, { dispatcher, headers })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`)
    return text
  }
  const [record] = JSON.parse(await get('/external/osv/all.json')) as { id: string }[]
  const path = `/external/osv/${encodeURIComponent(record?.id ?? '')}.json`
  const end = performance.now() + length * 1000
  let lists = 0
  const clients = [0, 1, 2, 3].map(async (client) => {
    for (; performance.now() < end; lists++) await get(`/v1/patches?${WORST[(client + lists) % WORST.length] ?? ''}`)
  })
  const times: number[] = []
  while (performance.now() < end) {
    const started = performance.now()
    await get(path)
    times.push(performance.now() - started)
  }
  await Promise.all(clients)
  await dispatcher.close()
  const sorted = times.sort((a, b) => a - b)
  return { value: percentile(sorted, 0.99), detail: `${times.length} records, ${lists} pages` }
}

/** How long a page took over HTTP, and by the statement that reads it, milliseconds. */
interface Asked {
  combination: string
  ms: number
  bareMs: number
}

/** Each page is asked for both ways in turn, so that a slow moment of the machine hits both. */
async function askAll(url: string, dir: string): Promise<Asked[]> {
  const dispatcher = new Agent({ connections: 1, pipelining: 1 })
  const headers = localKey(dir)
  const child = fork(`${ROOT}test/bench/catalog/bare-child.ts`, [databasePath(dir)], { cwd: ROOT })
  await messageFrom(child, (message) => message === 'ready')
  const page = async (query: string): Promise<{ page: Page; ms: number }> => {
    const started = performance.now()
    const { statusCode, body } = await request(`${url}/v1/patches?${query}`, {
      dispatcher,
      headers,
    })
    const bytes = await body.bytes()
    const ms = performance.now() - started
    if (statusCode !== 200) throw new Error(`${query}: ${statusCode}`)
    return { page: JSON.parse(Buffer.from(bytes).toString()) as Page, ms }
  }
  const bare = async (query: EntryQuery): Promise<Read> => {
    const told = messageFrom<Read>(child, () => true)
    child.send(query satisfies Reading)
    return told
  }
  const list = listNumber(dir)
  const [ticket] = (await page('limit=1')).page.tickets
  const asked: Asked[] = []
  for (const pattern of COMBINATIONS) {
    const combination = pattern.replace('{name}', ticket?.package_src_name ?? '').replace('{cve}', ticket?.cve_id ?? '')
    let after: string | null = null
    for (let at = -WALK; at < PAGES; at++) {
      const query = new URLSearchParams(`${combination}&limit=${LIMIT}`)
      if (after !== null) query.set('after', after)
      const answer = await page(query.toString())
      const read = await bare(statementOf(list, query))
      if (read.rows !== answer.page.tickets.length) throw new Error(`${combination}: not the same`)
      if (at >= 0) asked.push({ combination, ms: answer.ms, bareMs: read.ms }) // the first walk warms both
      const more: string | null = answer.page.cursor.after ?? ''
      after = (at + 1) % WALK === 0 || more === '' ? null : more
    }
  }
  child.disconnect()
  await Promise.all([ended(child), dispatcher.close()])
  return asked
}

interface Page {
  tickets: { package_src_name: string; cve_id: string }[]
  cursor: { after?: string | null }
}

function listNumber(dir: string): number {
  const db = new Database(databasePath(dir), { readonly: true })
  try {
    const sql = "SELECT id FROM catalog_list WHERE resource = 'patches'"
    return Number(db.prepare(sql).pluck().get())
  } finally {
    db.close()
  }
}

function statementOf(list: number, query: URLSearchParams): EntryQuery {
  const facets = RESOURCES.find(({ name }) => name === 'patches')?.list?.facets ?? []
  const order = readOrder(query, facets, () => ['version', 'cve_id'])
  const after = query.get('after')
  const where = readWhere(query, facets)
  const place = after === null ? null : readCursor(after, madeFor('/v1/patches', order, where))
  return { list, where, order, after: place, limit: LIMIT }
}

/** Compares the slowest pages of all combinations; says on standard error what each of them takes. */
function compare(asked: readonly Asked[]): Value {
  for (const [combination, own] of Map.groupBy(asked, (one) => one.combination))
    process.stderr.write(`  ${combination || 'no filter'}: ${shares(own).detail ?? ''}\n`)
  return shares(asked)
}

function shares(asked: readonly Asked[]): Value {
  const [ours, theirs] = [asked.map(({ ms }) => ms), asked.map(({ bareMs }) => bareMs)].map((times) =>
    times.sort((a, b) => a - b),
  )
  const compared = (share: number): Value =>
    ratio(percentile(ours ?? [], share), percentile(theirs ?? [], share), milliseconds)
  const { value, detail = '' } = compared(0.99)
  return { value, detail: `p99 ${detail}, medians ${compared(0.5).detail ?? ''}` }
}
