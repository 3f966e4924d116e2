import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { localKey } from '../../support/keys.ts'
import { catalogSettings } from '../catalog/sync.ts'
import { count, median, milliseconds, pair, percentile } from '../report/figures.ts'
import { type Value, atMost, defineGroup, ratio } from '../report/group.ts'
import { startDaemon } from '../world/daemon.ts'
import { startSandbox } from '../world/processes.ts'

const CHANGED = 100
/** Requests for each kind of page, after some that start the thread and fill its caches. */
const REQUESTS = 300
const WARMING = 10
const GOAL_MS = 50
/** Record GETs without and beside pages in turn, so that a slow phase of the machine meets both. */
const TURNS = 10

interface Asker {
  readonly get: (path: string) => Promise<string>
  readonly close: () => Promise<void>
}

interface World {
  readonly asker: Asker
  /** Addresses of pages by their kind. */
  readonly paths: Readonly<Record<Kind, string[]>>
  close(): Promise<void>
}

type Kind = (typeof KINDS)[number]
const KINDS = ['overview', 'search', 'packages', 'patches', 'changes'] as const
const SIZE = { records: 100_000, tickets: 200_000 }

interface Run {
  readonly pages: Readonly<Record<Kind, Value>>
  readonly beside: Value
}

/** Pages for people over a whole mirror: how long each takes, and plain GETs of records beside them. */
export const pages = defineGroup<World, Run>({
  name: 'pages',
  about: ({ size }) => `Pages over ${count(size(SIZE.records))} records and ${count(size(SIZE.tickets))} tickets.`,
  prepare: ({ size }) => startWorld(size(SIZE.records), size(SIZE.tickets)),
  async run({ asker, paths }, { seconds: length }) {
    const taken: [Kind, Value][] = []
    for (const kind of KINDS) taken.push([kind, await timePages(asker, paths[kind])])
    const beside = await recordsBeside(asker, Object.values(paths).flat(), length(1))
    return { pages: Object.fromEntries(taken) as Run['pages'], beside }
  },
  lines: () => [
    ...KINDS.map((kind) => ({
      work: `${kind}, p99`,
      unit: 'ms' as const,
      goal: atMost(GOAL_MS),
      measure: (run: Run) => run.pages[kind],
    })),
    {
      work: 'GET {id}.json beside a reader of pages, median',
      against: 'alone',
      unit: '×',
      goal: atMost(1.2),
      measure: (run) => run.beside,
    },
  ],
})

async function startWorld(records: number, tickets: number): Promise<World> {
  const sandbox = await startSandbox(records, ['--tickets', String(tickets)])
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-pages-'))
  const daemon = await startDaemon(sandbox.url, dir, catalogSettings(sandbox))
  const asker = createAsker(daemon.url, localKey(dir))
  const close = async (): Promise<void> => {
    await asker.close()
    await daemon.stop()
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    for (const source of ['feeds', 'osv', 'catalog'] as const) await daemon.run(source)
    await sandbox.command('change', Math.min(CHANGED, records))
    await daemon.run('osv')
    return { asker, paths: await pathsOf(asker), close }
  } catch (error) {
    await close()
    throw error
  }
}

function createAsker(url: string, key: Record<string, string>): Asker {
  const dispatcher = new Agent({ connections: 4, pipelining: 1 })
  return {
    async get(path) {
      const headers = { ...key, ...(path.startsWith('/-/ui/') && { accept: 'text/html' }) }
      const { statusCode, body } = await request(url + path, { dispatcher, headers })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`)
      return text
    },
    close: () => dispatcher.close(),
  }
}

/** Waits until the index of the views is there and finds what the pages are asked for. */
async function pathsOf({ get }: Asker): Promise<World['paths']> {
  const linksOf = async (page: string, to: string): Promise<string[]> =>
    [...(await get(page)).matchAll(new RegExp(`href="(/-/ui/${to}\\?[^"]*)"`, 'g'))].map(([, href = '']) =>
      href.replaceAll('&amp;', '&'),
    )
  let packages = await linksOf('/-/ui/ecosystems', 'packages')
  for (; packages.length === 0; await delay(500)) packages = await linksOf('/-/ui/ecosystems', 'packages')
  const named = await linksOf(packages[0] ?? '', 'package')
  const name = new URLSearchParams(named[0]?.split('?')[1]).get('name') ?? ''
  const changes = await linksOf('/-/ui/changes?source=osv', 'changes')
  const searches = ['CVE-2024', name, 'pkg:npm/lodash', 'none'].map(
    (query) => `/-/ui/search?${new URLSearchParams({ q: query }).toString()}`,
  )
  const patches = ['', '?severities=critical', '?ecosystem=debian&ticket_statuses=open']
  return {
    overview: ['/-/ui/'],
    search: searches,
    packages: [...packages.slice(0, 3), ...named.slice(0, 3)],
    patches: patches.map((query) => `/-/ui/patches${query}`),
    changes: ['/-/ui/changes', ...changes.filter((one) => /entry=|since=/.test(one)).slice(0, 4)],
  }
}

async function timePages({ get }: Asker, paths: readonly string[]): Promise<Value> {
  const times: number[] = []
  for (let at = -WARMING; at < REQUESTS; at++) {
    const started = performance.now()
    await get(paths[Math.abs(at) % paths.length] ?? '')
    if (at >= 0) times.push(performance.now() - started)
  }
  const sorted = times.sort((a, b) => a - b)
  return { value: percentile(sorted, 0.99), detail: `median ${milliseconds(median(sorted))}` }
}

/** One client asks for records, alone and beside another that asks for pages, one after the other. */
async function recordsBeside(asker: Asker, all: readonly string[], turnSeconds: number): Promise<Value> {
  const [record] = JSON.parse(await asker.get('/external/osv/all.json')) as { id: string }[]
  const path = `/external/osv/${encodeURIComponent(record?.id ?? '')}.json`
  const taken = { alone: [] as number[], beside: [] as number[] }
  let made = 0
  const turn = async (times: number[], isBeside: boolean): Promise<void> => {
    const end = performance.now() + turnSeconds * 1000
    const people = async (): Promise<void> => {
      for (; performance.now() < end; made++) await asker.get(all[made % all.length] ?? '')
    }
    const other = isBeside ? people() : Promise.resolve()
    while (performance.now() < end) {
      const started = performance.now()
      await asker.get(path)
      times.push(performance.now() - started)
    }
    await other
  }
  for (let at = 0; at < TURNS; at++) {
    await turn(taken.alone, false)
    await turn(taken.beside, true)
  }
  const [alone, beside] = [taken.alone, taken.beside].map((times) => times.sort((a, b) => a - b))
  const of = (times: readonly number[] = []) => [median(times), percentile(times, 0.99)] as const
  const [idle, idle99] = of(alone)
  const [busy, busy99] = of(beside)
  const { value, detail = '' } = ratio(busy, idle, milliseconds)
  const tails = `p99 ${pair(busy99, idle99, milliseconds)}`
  return { value, detail: `medians ${detail}, ${tails}, ${made} pages` }
}
