import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Import, type Source, findCycle, importsOf, readSources } from './support/sources.ts'

const SOURCES = readSources()
const OWN = SOURCES.flatMap(({ imports }) => imports).filter(({ kind }) => kind === 'own')

/** A folder of src/, or a file that lies in src/ itself, by its name. */
type Part =
  | 'agent'
  | 'api'
  | 'archive'
  | 'bundle'
  | 'commands'
  | 'config'
  | 'crossing'
  | 'demo'
  | 'errors'
  | 'event-target'
  | 'jobs'
  | 'json'
  | 'log'
  | 'main'
  | 'media-type'
  | 'metrics'
  | 'offline'
  | 'passing'
  | 'paths'
  | 'connections'
  | 'patterns'
  | 'query'
  | 'record-id'
  | 'relay'
  | 'resources'
  | 'sandbox'
  | 'sources'
  | 'store'
  | 'sync'
  | 'upstream'
  | 'version'
  | 'viewing'
  | 'views'
  | 'webhooks'
  | 'zip'

/**
 * What each part may import besides itself: whole parts, or single files of one. Types of config/schema are
 * everybody's. Data flows one way, upstream → sync → store → api, and imports follow it.
 */
const MAY_IMPORT: Record<Part, readonly string[]> = {
  errors: [],
  'event-target': [],
  json: [],
  'media-type': [],
  paths: [],
  'record-id': [],
  resources: [],
  sources: ['store/runs.ts'],
  version: [],
  connections: [],
  patterns: [],
  zip: ['errors'],
  archive: ['errors', 'store', 'zip'],
  bundle: [
    'archive',
    'config',
    'errors',
    'log',
    'media-type',
    'offline',
    'paths',
    'record-id',
    'resources',
    'sources',
    'store',
    'version',
    'zip',
  ],
  views: ['config', 'errors', 'json', 'log', 'query', 'store', 'zip'],
  query: ['errors', 'json'],
  webhooks: ['config', 'connections', 'errors', 'event-target', 'log', 'patterns', 'store'],
  store: ['errors', 'event-target', 'record-id'],
  upstream: ['config/proxies.ts', 'config/secret-files.ts', 'errors', 'json'],
  config: ['errors', 'patterns'],
  log: ['errors'],
  metrics: [],
  offline: ['errors'],
  sync: [
    'archive',
    'errors',
    'event-target',
    'json',
    'media-type',
    'offline',
    'paths',
    'patterns',
    'record-id',
    'resources',
    'sources',
    'store',
    'upstream',
    'zip',
  ],
  relay: [
    'config',
    'errors',
    'event-target',
    'store',
    'upstream/transport.ts',
    'webhooks/event.ts',
    'webhooks/verify.ts',
  ],
  jobs: ['config', 'sources', 'store', 'sync'],
  passing: ['api', 'errors', 'config', 'log', 'relay', 'store'],
  crossing: ['api', 'bundle', 'config', 'log'],
  viewing: ['api', 'config', 'log', 'sources', 'store', 'views'],
  api: [
    'connections',
    'errors',
    'json',
    'paths',
    'query',
    'record-id',
    'resources',
    'sources',
    'store',
    'zip/crc32c.ts',
  ],
  agent: [
    'api',
    'bundle',
    'config',
    'crossing',
    'errors',
    'event-target',
    'jobs',
    'log',
    'metrics',
    'passing',
    'sources',
    'store',
    'sync',
    'upstream',
    'version',
    'viewing',
    'webhooks',
    'zip',
  ],
  commands: [
    'agent',
    'api',
    'archive',
    'bundle',
    'config',
    'errors',
    'log',
    'offline',
    'relay',
    'sources',
    'store',
    'sync',
    'upstream',
    'version',
    'views',
    'webhooks',
    'zip',
  ],
  main: ['commands', 'errors', 'version'],
  sandbox: ['zip'],
  demo: ['agent', 'commands', 'config', 'errors', 'log', 'sandbox', 'sources', 'sync', 'version'],
}

/** Each library, and the one file that knows it; more than one only with a reason. */
const LIBRARIES: Record<string, readonly string[]> = {
  '@renovatebot/pep440': ['query/pep440.ts'],
  'better-sqlite3': [
    'store/database.ts',
    'store/lock.ts', // a lock is a database of its own, empty and never migrated
  ],
  'cli-progress': ['commands/progress.ts'],
  // The command line is built in six files: the start, the frame, how verbs are added, bundles, those that ask the service, its events.
  commander: [
    'commands/bundle-verbs.ts',
    'commands/program.ts',
    'commands/service-verbs.ts',
    'commands/verbs.ts',
    'commands/webhook-verbs.ts',
    'main.ts',
  ],
  'fastest-levenshtein': [
    'api/closest.ts',
    'config/suggest.ts', // neither of the two may import the other, and a file around one call would say nothing
  ],
  fastify: ['api/pages.ts'],
  'node-cron': ['sync/schedule.ts'],
  'packageurl-js': ['query/purl.ts'],
  pino: ['log.ts'],
  'pino-pretty': ['log.ts'],
  'prom-client': ['metrics.ts'],
  semver: ['query/semver.ts'],
  standardwebhooks: ['webhooks/verify.ts'],
  undici: ['upstream/transport.ts'],
  yaml: ['config/file.ts'],
}

/** Libraries that are installed for another reason than being imported by src/. */
const NOT_IMPORTED: readonly string[] = []

function partOf(path: string): string {
  return path.split('/')[0]?.replace(/\.ts$/, '') ?? ''
}

function isAllowed({ from, to, typeOnly }: Import): boolean {
  if (partOf(from) === partOf(to)) return true
  if (to === 'config/schema.ts' && typeOnly) return true
  const allowed: readonly string[] = MAY_IMPORT[partOf(from) as Part]
  return allowed.some((one) => one === to || one === partOf(to))
}

const tell = ({ from, to }: Import): string => `${from} imports ${to}`

describe('imports', () => {
  test('are found in every form that there is', () => {
    const text = [
      "import { a } from './a.ts'",
      "import type { B } from '../zip/b.ts'",
      "import {\n  type C,\n  c,\n} from './c.ts'",
      "export { d } from './d.ts'",
      "export * from './e.ts'",
      "import './f.ts'",
      "const g = await import('./g.ts')",
      "const h = new URL('./h.ts', import.meta.url)",
      "import fs from 'node:fs/promises'",
      "import X, { y } from '@scope/library/deep'",
      "// import { no } from './no.ts'",
      "/* import './no.ts' */",
    ].join('\n')
    const found = importsOf('sync/x.ts', text)
    expect(found.filter(({ kind }) => kind === 'own').map(({ to }) => to)).toEqual([
      'sync/a.ts',
      'zip/b.ts',
      ...['c', 'd', 'e', 'f', 'g', 'h'].map((name) => `sync/${name}.ts`),
    ])
    expect(found.filter(({ typeOnly }) => typeOnly).map(({ to }) => to)).toEqual(['zip/b.ts'])
    expect(found.find(({ kind }) => kind === 'library')?.to).toBe('@scope/library')
    expect(found.find(({ kind }) => kind === 'node')?.to).toBe('node:fs/promises')
  })

  test('lead to files that are there', () => {
    const paths = new Set(SOURCES.map(({ path }) => path))
    expect(OWN.filter(({ to }) => !paths.has(to)).map(tell)).toEqual([])
    expect(OWN.length).toBeGreaterThan(200)
  })

  test('follow the direction of the data', () => {
    const parts = new Set(SOURCES.map(({ path }) => partOf(path)))
    expect([...parts].filter((part) => !(part in MAY_IMPORT))).toEqual([])
    expect(OWN.filter((one) => !isAllowed(one)).map(tell)).toEqual([])
  })

  test('of the stand-in service are for the demo alone', () => {
    const users = OWN.filter(
      ({ from, to }) => partOf(to) === 'sandbox' && partOf(from) !== 'sandbox',
    )
    expect([...new Set(users.map(({ from }) => from))]).toEqual(['demo.ts'])
  })

  test('never go in a circle', () => {
    expect(findCycle(OWN.filter(({ typeOnly }) => !typeOnly))).toBeNull()
    expect(findCycle(OWN.filter(({ from }) => partOf(from) !== 'sandbox'))).toBeNull()
    const circle = importsOf('a.ts', "import './b.ts'").concat(importsOf('b.ts', "import './a.ts'"))
    expect(findCycle(circle)).toEqual(['a.ts', 'b.ts', 'a.ts'])
  })
})

describe('a library', () => {
  const imported = SOURCES.flatMap(({ imports }) => imports).filter(
    ({ kind }) => kind === 'library',
  )

  test('is known to one file', () => {
    const users: Record<string, string[]> = {}
    for (const { from, to } of imported) users[to] = [...new Set([...(users[to] ?? []), from])]
    expect(users).toEqual(LIBRARIES)
  })

  test('is installed for a purpose, and nothing is used that is not installed', () => {
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>
    }
    const installed = Object.keys(manifest.dependencies).filter(
      (name) => !NOT_IMPORTED.includes(name),
    )
    expect(installed.sort()).toEqual(Object.keys(LIBRARIES).sort())
  })
})

describe('a source file', () => {
  /** Files and lines where the text matches. */
  const places = (pattern: RegExp): string[] =>
    SOURCES.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}`] : [])),
    )

  test('has at most 250 lines', () => {
    const long = SOURCES.filter(({ text }) => text.split('\n').length - 1 > 250)
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1}`)).toEqual([])
  })

  test('leaves nothing for later and prints nothing by itself', () => {
    expect(places(/TODO|FIXME|XXX/)).toEqual([])
    expect(places(/\bconsole\./)).toEqual([])
  })

  test('says what each function, interface and constant it exports is', () => {
    expect(SOURCES.flatMap(undocumented)).toEqual([])
  })
})

const EXPORTED = /^export (?:async )?(?:function\*?|interface|const|class) (\w+)/

/** Exports without a comment right above; one comment does for constants that follow each other line by line. */
function undocumented({ path, text }: Source): string[] {
  const lines = text.split('\n')
  const documented = new Set<number>()
  return lines.flatMap((line, i) => {
    const name = EXPORTED.exec(line)?.[1]
    if (name === undefined) return []
    const above = lines[i - 1]?.trimEnd() ?? ''
    const grouped = line.startsWith('export const') && documented.has(i - 1)
    if (!above.endsWith('*/') && !grouped) return [`${path}: ${name}`]
    documented.add(i)
    return []
  })
}
