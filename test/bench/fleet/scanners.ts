import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { percentile } from '../report/figures.ts'

/** What the scanners do, in compressed time. */
export interface ScannerPlan {
  /** Where each answers: `route` says which one a scanner always asks. */
  readonly readers: readonly string[]
  readonly scanners: number
  /** Milliseconds over which every scanner asks once, at random. */
  readonly spreadMs: number
  /** Share of the scanners that ask once more, all in one second, and when, milliseconds. */
  readonly spike: { readonly share: number; readonly atMs: number }
  /** Clients that take `all.zip`, and when, milliseconds. */
  readonly herd: { readonly clients: number; readonly atMs: number }
  readonly connections: number
  /** Records that a scanner fetches after it has seen a new index. */
  readonly fetches: number
}

/** What was counted. A correct fleet has no fault. */
export interface ScannerReport {
  readonly requests: number
  readonly seconds: number
  /** Milliseconds from sending a request to the end of its answer. */
  readonly p50: number
  readonly p99: number
  readonly bytes: number
  /** Bytes by kind of file. */
  readonly bytesOf: Readonly<Record<Kind, number>>
  readonly unchanged: number
  readonly faults: Readonly<Record<Fault, number>>
}

type Kind = 'index' | 'record' | 'archive'
/**
 * `backwards`: a scanner saw an older generation than before. `mixed`: a record older than its index says. `different`: one
 * generation with two contents. `repeated`: a 200 with the content that the request had named. `failed`: another status.
 */
type Fault = 'backwards' | 'mixed' | 'different' | 'repeated' | 'failed'

interface Scanner {
  readonly reader: string
  etag: string | null
  asOf: string
  busy: boolean
}

interface Index {
  readonly sha: string
  readonly modified: ReadonlyMap<string, string>
  /** Ids of the records that the index before it did not have in this form. */
  readonly changed: readonly string[]
}

const INDEX = '/external/osv/all.json'

/** Simulates many scanners as states in one process, with a bounded number of connections, and checks each answer. */
export async function runScanners(plan: ScannerPlan): Promise<ScannerReport> {
  const agent = new Agent({ connections: plan.connections, pipelining: 1 })
  const run = createRun(plan, agent)
  const started = performance.now()
  try {
    await inOrder(wakesOf(plan), plan.connections, started, (wake) => run.wake(wake))
  } finally {
    await agent.close()
  }
  return run.report((performance.now() - started) / 1000)
}

interface Wake {
  readonly at: number
  /** Null: a client of the herd. */
  readonly scanner: number | null
}

function wakesOf({ scanners, spreadMs, spike, herd }: ScannerPlan): Wake[] {
  const all: Wake[] = []
  for (let scanner = 0; scanner < scanners; scanner++) {
    all.push({ at: Math.random() * spreadMs, scanner })
    if (Math.random() < spike.share) all.push({ at: spike.atMs + Math.random() * 1000, scanner })
  }
  for (let client = 0; client < herd.clients; client++)
    all.push({ at: herd.atMs + Math.random() * 1000, scanner: null })
  return all.sort((a, b) => a.at - b.at)
}

/** Runs each wake at its time or, when all connections are in use, as soon as one is free. */
async function inOrder(
  wakes: readonly Wake[],
  connections: number,
  started: number,
  work: (wake: Wake) => Promise<void>,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let wake = wakes[next++]; wake !== undefined; wake = wakes[next++]) {
      const early = wake.at - (performance.now() - started)
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
      await work(wake)
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

function createRun({ readers, scanners, fetches }: ScannerPlan, agent: Agent) {
  const states = Array.from({ length: scanners }, (_, number): Scanner => {
    return { reader: readers[number % readers.length] ?? '', etag: null, asOf: '', busy: false }
  })
  const indexes = new Map<string, Index>()
  const contents = new Map<string, string>()
  const times: number[] = []
  const bytesOf = { index: 0, record: 0, archive: 0 }
  const faults = { backwards: 0, mixed: 0, different: 0, repeated: 0, failed: 0 }
  let unchanged = 0
  let last = new Map<string, string>() as ReadonlyMap<string, string>

  const ask = async (kind: Kind, url: string, headers: Record<string, string> = {}) => {
    const sent = performance.now()
    const all = { 'accept-encoding': 'gzip', ...headers }
    const answer = await request(url, { dispatcher: agent, headers: all })
    const hash = createHash('sha256')
    const chunks: Buffer[] = []
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      bytesOf[kind] += chunk.length
      hash.update(chunk)
      if (kind !== 'archive') chunks.push(chunk)
    }
    times.push(performance.now() - sent)
    const { statusCode, headers: head } = answer
    if (statusCode !== 200 && statusCode !== 304) faults.failed++
    const body = Buffer.concat(chunks)
    const text = (): string => (head['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
    return { statusCode, head, text, sha: hash.digest('hex') }
  }

  /** Returns the index with this ETag, read once; its content must be the same from every reader. */
  const indexOf = (etag: string, text: () => string, sha: string): Index => {
    const known = indexes.get(etag)
    if (known !== undefined) {
      if (known.sha !== sha) faults.different++
      return known
    }
    const rows = JSON.parse(text()) as { id: string; modified: string }[]
    const modified = new Map(rows.map((row) => [row.id, row.modified]))
    const changed = rows.filter((row) => last.get(row.id) !== row.modified).map(({ id }) => id)
    const index = { sha, modified, changed }
    indexes.set(etag, index)
    last = modified
    return index
  }

  const fetchRecord = async (reader: string, id: string, promised: string): Promise<void> => {
    const { text, sha, statusCode } = await ask('record', `${reader}/external/osv/${encodeURIComponent(id)}.json`)
    if (statusCode !== 200) return
    const { modified } = JSON.parse(text()) as { modified: string }
    if (Date.parse(modified) < Date.parse(promised)) faults.mixed++
    const name = `${id} ${modified}`
    if ((contents.get(name) ?? sha) !== sha) faults.different++
    contents.set(name, sha)
  }

  const poll = async (scanner: Scanner): Promise<void> => {
    const headers = scanner.etag === null ? {} : { 'if-none-match': scanner.etag }
    const { statusCode, head, text, sha } = await ask('index', scanner.reader + INDEX, headers)
    const asOf = String(head['x-mirror-as-of'] ?? '')
    if (asOf < scanner.asOf) faults.backwards++
    scanner.asOf = asOf
    if (statusCode === 304) unchanged++
    if (statusCode !== 200) return
    const etag = String(head['etag'] ?? '')
    if (etag === scanner.etag) faults.repeated++
    scanner.etag = etag
    const { modified, changed } = indexOf(etag, text, sha)
    for (let fetched = 0; fetched < fetches && changed.length > 0; fetched++) {
      const id = changed[Math.floor(Math.random() * changed.length)] ?? ''
      await fetchRecord(scanner.reader, id, modified.get(id) ?? '')
    }
  }

  return {
    async wake({ scanner }: Wake): Promise<void> {
      const state = scanner === null ? undefined : states[scanner]
      const reader = readers[Math.floor(Math.random() * readers.length)] ?? ''
      if (state === undefined) await ask('archive', `${reader}/external/osv/all.zip`)
      else if (!state.busy) {
        state.busy = true
        await poll(state)
        state.busy = false
      }
    },
    report(seconds: number): ScannerReport {
      const sorted = times.toSorted((a, b) => a - b)
      const bytes = bytesOf.index + bytesOf.record + bytesOf.archive
      const p50 = percentile(sorted, 0.5)
      const p99 = percentile(sorted, 0.99)
      return { requests: times.length, seconds, p50, p99, bytes, bytesOf, unchanged, faults }
    },
  }
}
