import { readFileSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import { longTest, test } from './support/tables.ts'
import { FEATURES } from '../src/features.ts'
import { countHouse } from './support/house.ts'
import { type Import, type Source, findCycle, importsOf, loadedWith, readSources } from './support/sources.ts'

const SOURCES = readSources()
const OWN = SOURCES.flatMap(({ imports }) => imports).filter(({ kind }) => kind === 'own')
/** The tests and what they use. */
const TESTS = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path, text: readFileSync(join('test', path), 'utf8') }))
/** Their imports; paths begin with `test/` or `src/`. */
const OF_TESTS = TESTS.flatMap(({ path, text }) => importsOf(join('test', path), text))

/** A folder of the core, or a file that lies in src/ itself, by its name. */
type Folder =
  | 'archive'
  | 'base'
  | 'build'
  | 'cli'
  | 'config'
  | 'daemon'
  | 'documents'
  | 'guard'
  | 'main'
  | 'server'
  | 'store'
  | 'sync'
  | 'upstream'
  | 'webhooks'

/**
 * What each folder of the core may import besides itself: whole folders, or single files of one. Every folder may import types of
 * config/schema. Data flows one way, upstream → sync → store → server, and imports follow it.
 */
const MAY_IMPORT: Record<Folder, readonly string[]> = {
  base: [],
  config: ['base'],
  upstream: ['base', 'config/proxies.ts', 'config/secret-files.ts'],
  store: ['base'],
  archive: ['base', 'store'],
  documents: ['base', 'store'],
  guard: ['base', 'documents', 'store'],
  sync: ['archive', 'base', 'documents', 'guard', 'store', 'upstream'],
  server: ['archive/zip/crc32c.ts', 'base', 'documents', 'store'],
  webhooks: ['base', 'config', 'store'],
  daemon: ['base', 'cli/verbs/verb.ts', 'config', 'server', 'store', 'sync', 'upstream', 'webhooks'],
  cli: ['archive', 'base', 'config', 'daemon', 'documents', 'server', 'store', 'sync', 'upstream', 'webhooks'],
  main: ['base', 'cli', 'features.ts'],
  build: ['config'],
}

/** The worker entry files that get the table of features, as main.ts does. */
const WITH_FEATURES = ['main.ts', 'daemon/verification/scrub.worker.ts']

/** Its types are in the signature of every route. */
const FRAMEWORK = 'fastify'

/** Each library, and the one file that imports it; more than one only with a reason. */
const LIBRARIES: Record<string, readonly string[]> = {
  '@aws-sdk/client-s3': ['features/fleet/objects/s3.ts'],
  '@renovatebot/pep440': ['base/versions/ecosystems.ts'],
  '@sigstore/bundle': ['documents/signatures/sigstore.ts'],
  '@sigstore/protobuf-specs': ['documents/signatures/sigstore.ts'],
  '@sigstore/verify': ['documents/signatures/sigstore.ts'],
  '@sinclair/typebox': ['base/schema.ts'],
  'adm-zip': ['features/scanners/small-archive.ts'],
  'better-sqlite3': ['store/database/sqlite.ts'],
  'cli-progress': ['cli/progress.ts'],
  commander: ['cli/program.ts'],
  eta: ['features/pages/render.ts'],
  'fastest-levenshtein': ['config/nearest.ts'],
  fastify: ['server/app.ts'],
  'lru-cache': ['server/followers/details.ts'],
  'node-cron': ['sync/planning/cron.ts'],
  'packageurl-js': ['base/identity/purl.ts'],
  pino: ['base/log.ts'],
  'pino-pretty': ['base/log.ts'],
  'prom-client': ['daemon/metrics/metrics.ts'],
  semver: ['base/versions/semver.ts'],
  standardwebhooks: ['webhooks/receive/signature.ts'],
  undici: ['upstream/http/transport.ts'],
  yaml: ['config/file.ts'],
}

/** Libraries that are installed for another reason than being imported by src/. */
const NOT_IMPORTED: readonly string[] = []

/** The folder of a file, as `store`, or its feature, as `features/guard`. */
function partOf(path: string): string {
  const [folder = '', name = ''] = path.split('/')
  return folder === 'features' ? `features/${name}` : folder.replace(/\.ts$/, '')
}

function isAllowed({ from, to, typeOnly }: Import): boolean {
  const part = partOf(from)
  if (part === partOf(to) || (to === 'config/schema.ts' && typeOnly)) return true
  if (from === 'features.ts') return to.endsWith('/feature.ts')
  if (to === 'features.ts') return WITH_FEATURES.includes(from)
  const feature = FEATURES.find(({ name }) => part === `features/${name}`)
  if (feature !== undefined) {
    const needed = feature.needs?.map((name) => `features/${name}`) ?? []
    return partOf(to) in MAY_IMPORT || needed.includes(partOf(to))
  }
  const allowed: readonly string[] = MAY_IMPORT[part as Folder]
  return allowed.some((one) => one === to || one === partOf(to))
}

const tell = ({ from, to }: Import): string => `${from} imports ${to}`

describe('the imports of source files', () => {
  test('are found in every form of the syntax', () => {
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

  test('lead to files that exist', () => {
    const paths = new Set(SOURCES.map(({ path }) => path))
    expect(OWN.filter(({ to }) => !paths.has(to)).map(tell)).toEqual([])
    expect(OWN.length).toBeGreaterThan(200)
  })

  test('of the built program in the benchmark lead to files that exist', () => {
    const paths = new Set(SOURCES.map(({ path }) => path))
    const named = readdirSync('test/bench', { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .flatMap((path) => [...readFileSync(join('test/bench', path), 'utf8').matchAll(/built\('([^']+)\.js'\)/g)])
      .map(([, name = '']) => `${name}.ts`)
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter((path) => !paths.has(path))).toEqual([])
  })

  test('follow the direction of the data', () => {
    const parts = [...new Set(SOURCES.map(({ path }) => partOf(path)))]
    const features = ['features', ...FEATURES.map(({ name }) => `features/${name}`)]
    expect(parts.filter((part) => !(part in MAY_IMPORT) && !features.includes(part))).toEqual([])
    expect(OWN.filter((one) => !isAllowed(one)).map(tell)).toEqual([])
  })

  test('of a feature are of the core, and of features that it needs', () => {
    for (const { name, needs = [] } of FEATURES) {
      const part = `features/${name}`
      const others = OWN.filter(({ from, to }) => partOf(from) === part && partOf(to) !== part)
      const used = others.map(({ to }) => /^features\/(\w+)\//.exec(to)?.[1]).filter((one) => one !== undefined)
      expect([name, [...new Set(used)].sort()]).toEqual([name, [...needs].sort()])
    }
  })

  test('have no cycle, types and tests included', () => {
    expect(findCycle(OWN)).toBeNull()
    const ofTests = OF_TESTS.filter(({ kind, to }) => kind === 'own' && to.startsWith('test/'))
    expect(ofTests.length).toBeGreaterThan(1000)
    expect(findCycle(ofTests)).toBeNull()
    const circle = importsOf('a.ts', "import './b.ts'").concat(importsOf('b.ts', "import './a.ts'"))
    expect(findCycle(circle)).toEqual(['a.ts', 'b.ts', 'a.ts'])
  })
})

longTest('the core imports no feature, and there is one of each', () => {
  const counts = countHouse({ sources: SOURCES, own: OWN, tests: TESTS.map(({ text }) => text) })
  const apart = ['files that one file of their folder imports', filesApart(Infinity).length] as const
  process.stdout.write(`${[...counts, apart].map(([what, count]) => `${what}: ${count}`).join('\n')}\n`)
  expect(Object.fromEntries(counts)).toMatchObject({
    'core imports of features': 0,
    'kinds of protocols between threads': 3,
    'readers of SBOMs': 1,
    'readers of VEX and CSAF': 1,
    'models of an answer for people': 1,
    'printers of it': 3,
    'folders that judge what is wrong with the mirror': 1,
    'descriptions of the status': 1,
    'lines that prettier skips, source': 0,
    'lines that prettier skips, tests': 0,
    'tests that are skipped without a reason': 0,
    'tuple declarations': 0,
    'groups of spread objects': 0,
  })
})

describe('a library', () => {
  const imported = SOURCES.flatMap(({ imports }) => imports).filter(({ kind }) => kind === 'library')

  test('is imported in one file', () => {
    const users: Record<string, string[]> = {}
    for (const { from, to, typeOnly } of imported)
      if (!typeOnly || to !== FRAMEWORK) users[to] = [...new Set([...(users[to] ?? []), from])]
    expect(users).toEqual(LIBRARIES)
  })

  test('is installed if and only if it is imported', () => {
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>
      optionalDependencies: Record<string, string>
    }
    const { dependencies, optionalDependencies } = manifest
    const installed = Object.keys({ ...dependencies, ...optionalDependencies }).filter(
      (name) => !NOT_IMPORTED.includes(name),
    )
    expect(installed.sort()).toEqual(Object.keys(LIBRARIES).sort())
  })
})

test('a test file with tests of the long suite names the suite of each test', () => {
  const mixed = TESTS.filter(({ path, text }) => !path.startsWith('long/') && /from '.*support\/tables\.ts'/.test(text))
  expect(mixed.length).toBeGreaterThan(0)
  expect(mixed.filter(({ text }) => /\{[^}]*\btest\b[^}]*\} from 'vitest'/.test(text)).map(({ path }) => path)).toEqual(
    [],
  )
})

describe('a source file', () => {
  /** Files and lines where the text matches. */
  const places = (pattern: RegExp): string[] =>
    SOURCES.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}`] : [])),
    )

  test('has at most 400 lines', () => {
    const long = SOURCES.filter(({ text }) => text.split('\n').length - 1 > 400)
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1}`)).toEqual([])
  })

  test('is one with the only file that imports it, if that is in its folder and both fit into 400 lines', () => {
    const apart = filesApart()
    expect(apart.length, apart.join('\n')).toBeLessThanOrEqual(MOST_APART)
    expect(apart.length).toBeGreaterThan(0)
  })

  test('exports only what another file names', () => {
    const users = [...SOURCES, ...TESTS].map(({ text }) => {
      const files = [...text.matchAll(/([\w.-]+\.ts)'/g)].map(([, file]) => file)
      return { files: new Set(files), words: new Set(text.match(/\w+/g)) }
    })
    const passedOn = new Set(
      SOURCES.flatMap(({ text }) => [...text.matchAll(/export type \* from '\.\/([^']+)'/g)].map(([, file]) => file)),
    )
    const unused = SOURCES.flatMap(({ path, text }) => {
      if (passedOn.has(basename(path))) return []
      const importers = users.filter(({ files }) => files.has(basename(path)))
      return [...text.matchAll(EXPORTS)]
        .map(([, name = '']) => name)
        .filter((name) => !importers.some(({ words }) => words.has(name)))
        .map((name) => `${path}: ${name}`)
    })
    expect(unused).toEqual([])
  })

  test('exports nothing under a name that another file of its folder exports', () => {
    const names = SOURCES.flatMap(({ path, text }) =>
      [...text.matchAll(EXPORTS)].map(([, name = '']) => ({ path, name })),
    )
    const twice = [...Map.groupBy(names, ({ path, name }) => `${partOf(path)} ${name}`)].filter(
      ([, ones]) => ones.length > 1,
    )
    expect(twice.map(([name, ones]) => [name, ...ones.map(({ path }) => path)])).toEqual([])
  })

  test('loads at the start of a thread no library that only some of its work needs', () => {
    const all = SOURCES.flatMap(({ imports }) => imports)
    const starts = all.filter(({ from, later }) => later && from.endsWith('/feature.ts')).map(({ to }) => to)
    expect(starts.length).toBeGreaterThan(5)
    const main = new Set(['main.ts', 'cli/mirror/serve.ts', ...starts].flatMap((file) => [...loadedWith(file, all)]))
    const libraryNames = [
      'undici',
      'pino-pretty',
      'yaml',
      '@aws-sdk/client-s3',
      '@sigstore/verify',
      '@sinclair/typebox',
    ]
    for (const late of [...libraryNames, 'sync/runner.ts', 'sync/verify/verify.ts'])
      expect(main, `cli/mirror/serve.ts loads ${late}`).not.toContain(late)
    const libraries = (file: string): string[] => [...loadedWith(file, all)].filter((path) => !path.endsWith('.ts'))
    expect(libraries('sync/sync.worker.ts')).toEqual(['better-sqlite3'])
    expect(libraries('webhooks/inbox/inbox.worker.ts')).toEqual(['better-sqlite3'])
    expect(libraries('features/relay/relay.worker.ts')).toEqual(['better-sqlite3'])
  })

  test('loads with a command that only reads no code that writes or asks upstream', () => {
    const all = SOURCES.flatMap(({ imports }) => imports)
    const loaded = loadedWith('features/match/cli/match.ts', all)
    expect(loaded).toContain('store/reads.ts')
    for (const late of ['store/writes.ts', 'sync/runner.ts', 'server/reading/reader.ts'])
      expect(loaded, `features/match/cli/match.ts loads ${late}`).not.toContain(late)
    expect([...loaded].filter((path) => path.startsWith('upstream/'))).toEqual([])
  })

  test('is in a folder of at most 16 files', () => {
    const folders = Map.groupBy(SOURCES, ({ path }) => path.slice(0, path.lastIndexOf('/') + 1))
    const crowded = [...folders].filter(([, files]) => files.length > 16)
    expect(crowded.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([])
  })

  test('contains no TODO and no console call', () => {
    expect(places(/TODO|FIXME|XXX/)).toEqual([])
    expect(places(/\bconsole\./)).toEqual([])
  })

  test('formats times and digests by the functions of core', () => {
    const elsewhere = places(
      /new Date\([^)]*\)\.toISOString\(\)(?!\.)|toUTCString|\('sha256'\)\.update\([^)]*\)\.digest|hash\('sha256'/,
    )
    expect(elsewhere.filter((place) => !/^base\//.test(place))).toEqual([])
  })

  test('documents each function, interface and constant that it exports', () => {
    expect(SOURCES.flatMap(undocumented)).toEqual([])
  })
})

/**
 * Files that are left apart from their only importer: both would be two ideas. Such are a check of the doctor, an order of versions, a rule
 * of settings, the verbs of a feature, a format of documents, a step of a run that docs/architecture.md names. A helper is joined.
 */
const MOST_APART = 42

/** Files with one importer, in the same folder, that fit into 400 lines with it. Not: workers, what is loaded late, what a test imports. */
function filesApart(most = 400): string[] {
  const tested = new Set(OF_TESTS.map(({ to }) => to.replace(/^src\//, '')))
  const lines = new Map(SOURCES.map(({ path, text }) => [path, text.split('\n').length - 1]))
  const linesOf = (path: string): number => lines.get(path) ?? 0
  return [...Map.groupBy(OWN, ({ to }) => to)].flatMap(([file, imports]) => {
    const [importer = '', ...others] = new Set(imports.map(({ from }) => from))
    if (others.length > 0 || dirname(importer) !== dirname(file) || linesOf(file) + linesOf(importer) > most) return []
    if (file.endsWith('.worker.ts') || imports.some(({ later }) => later) || tested.has(file)) return []
    return [`${file}, imported by ${importer}`]
  })
}

const EXPORTS = /^export (?:async )?(?:function\*?|interface|const|class|type) (\w+)/gm
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
