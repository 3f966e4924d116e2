import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { localKey } from '../support/keys.ts'
import { catalogSettings } from './catalog/sync.ts'
import { startDaemon } from './daemon.ts'
import { startSandbox } from './processes.ts'
import { type Line, median, percentile, ratioLine } from './table.ts'

const CHANGED = 100
/** Requests for each kind of page, after some that start the thread and fill its caches. */
const REQUESTS = 300
const WARMING = 10
const GOAL_MS = 50
/** Record GETs without and beside pages in turn, so that a slow phase of the machine meets both. */
const TURNS = 10
const TURN_MS = 1000

interface Asker {
  readonly get: (path: string) => Promise<string>
  readonly close: () => Promise<void>
}

/** Pages for people over a whole mirror: how long each takes, and plain GETs of records beside them. */
export async function benchPages(records: number, tickets: number): Promise<Line[]> {
  const sandbox = await startSandbox(records, ['--tickets', String(tickets)])
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-pages-'))
  try {
    const daemon = await startDaemon(sandbox.url, dir, catalogSettings(sandbox))
    await daemon.run('feeds')
    await daemon.run('osv')
    await daemon.run('catalog')
    await sandbox.command('change', CHANGED)
    await daemon.run('osv')
    const asker = createAsker(daemon.url, localKey(dir))
    const paths = await pathsOf(asker)
    const lines: Line[] = []
    for (const [name, own] of Object.entries(paths))
      lines.push(await pageLine(asker, `${name}, ${records} records, ${tickets} tickets`, own))
    lines.push(await besideLine(asker, Object.values(paths).flat()))
    await asker.close()
    await daemon.stop()
    return lines
  } finally {
    await sandbox.stop()
    rmSync(dir, { recursive: true, force: true })
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
async function pathsOf({ get }: Asker): Promise<Record<string, string[]>> {
  const linksOf = async (page: string, to: string): Promise<string[]> =>
    [...(await get(page)).matchAll(new RegExp(`href="(/-/ui/${to}\\?[^"]*)"`, 'g'))].map(
      ([, href = '']) => href.replaceAll('&amp;', '&'),
    )
  let packages = await linksOf('/-/ui/ecosystems', 'packages')
  for (; packages.length === 0; await delay(500))
    packages = await linksOf('/-/ui/ecosystems', 'packages')
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

async function pageLine({ get }: Asker, name: string, paths: readonly string[]): Promise<Line> {
  const times: number[] = []
  for (let at = -WARMING; at < REQUESTS; at++) {
    const started = performance.now()
    await get(paths[Math.abs(at) % paths.length] ?? '')
    if (at >= 0) times.push(performance.now() - started)
  }
  const sorted = times.sort((a, b) => a - b)
  const p99 = percentile(sorted, 0.99)
  const figure = `p99 ${p99.toFixed(2)} ms, median ${median(sorted).toFixed(2)} ms`
  return {
    work: `page: ${name}`,
    against: '',
    figure,
    goal: `≤ ${GOAL_MS} ms`,
    met: p99 <= GOAL_MS,
  }
}

/** One client asks for records, alone and beside another that asks for pages, one after the other. */
async function besideLine(asker: Asker, pages: readonly string[]): Promise<Line> {
  const [record] = JSON.parse(await asker.get('/external/osv/all.json')) as { id: string }[]
  const path = `/external/osv/${encodeURIComponent(record?.id ?? '')}.json`
  const taken = { alone: [] as number[], beside: [] as number[] }
  let made = 0
  const turn = async (times: number[], isBeside: boolean): Promise<void> => {
    const end = performance.now() + TURN_MS
    const people = async (): Promise<void> => {
      for (; performance.now() < end; made++) await asker.get(pages[made % pages.length] ?? '')
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
  const [[idle, idle99], [busy, busy99]] = [of(alone), of(beside)]
  const detail = `medians ${busy.toFixed(2)} to ${idle.toFixed(2)} ms, p99 ${busy99.toFixed(2)} to ${idle99.toFixed(2)} ms, ${made} pages`
  const work = 'GET {id}.json beside a client that asks for pages, one after the other, median'
  return ratioLine(work, 'the same without pages', busy / idle, 1.2, detail)
}
