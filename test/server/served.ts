import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { ServerLog } from '../../src/server/http/problems.ts'
import type { FollowedParts } from '../../src/server/followers/routes.ts'
import type { ShownParts } from '../../src/server/status/reports.ts'
import { type MirrorServer, type ServerOptions, createServer } from '../../src/server/server.ts'
import { loadQuick } from '../support/limits.ts'
import type { Config } from '../../src/config/schema.ts'
import { openPinnedReads } from '../../src/store/reads.ts'
import { TEST_KEY, bearer } from '../support/keys.ts'
import { readHere } from '../support/read-here.ts'
import { type FilledStore, FILLED_AT, openFilledStore } from '../support/filled-store.ts'
import type { ViewsMaker } from '../../src/features/scanners/routes/generation.ts'
import { scannerRoutes } from '../../src/features/scanners/routes/public-paths.ts'

/** An answer as it came, not decoded. */
export interface Reply {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** A server on a free port over a store that the test fills. */
export interface Served {
  store: FilledStore
  server: MirrorServer
  port: number
  /** Lines logged at error level. */
  errors: object[]
  /** Lines logged at info and warn level. */
  told: string[]
  /** Fields of the lines logged at info level. */
  fields: object[]
  /** Lines logged at debug level, where the options ask for it. */
  requests: object[]
  /** The headers that bring the key of the settings; none where the test sets other keys. */
  readonly own: Readonly<Record<string, string>>
  /** Brings the key of the settings, where the test sets no other keys. */
  readonly get: (path: string, headers?: Record<string, string>, method?: string) => Promise<Reply>
  readonly head: (path: string, headers?: Record<string, string>) => Promise<Reply>
  /** Sends these bytes and returns everything until the server closes the connection. */
  readonly raw: (text: string | Buffer) => Promise<string>
  dir: string
}

export interface ServedOptions {
  env?: Record<string, string>
  now?: () => number
  closeGraceMs?: number
  debug?: boolean
  nextRunAt?: () => number | null
  /** Add paths beside those that are always there. */
  plugins?: ServerOptions['plugins']
  webhookLog?: FollowedParts['webhookLog']
  /** Makes the log of changed findings of a data folder. */
  findingsLog?: (config: Config) => NonNullable<FollowedParts['findingsLog']>
  eventBounds?: FollowedParts['bounds']
  onServed?: FollowedParts['onServed']
  /** Makes what scanners read; none when not given: what is there is served. */
  viewsMaker?: ViewsMaker
  storage?: ShownParts['storage']
  metrics?: ServerOptions['metrics']
  people?: (config: Config) => ServerOptions['people']
  /** A data folder that is filled already; nothing is filled in then. */
  dir?: string
  /** Whether that folder stays. */
  keep?: boolean
}

type Closers = (() => Promise<void>)[]

const closers: Closers = []

function shownBy({ viewsMaker, storage }: ServedOptions): ShownParts {
  return { ...(storage && { storage }), ...(viewsMaker && { views: () => viewsMaker.report() }) }
}

/** Call after each test. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close()
}

/** `fill` runs before the server opens the store. */
export function serve(fill: (store: FilledStore) => void, options: ServedOptions = {}): Promise<Served> {
  return start(fill, options, closers)
}

/** Returns what serves one folder to all tests of a file that only read; it is closed after them. */
export function servedToAll(fill: (store: FilledStore) => void, options: ServedOptions = {}): () => Promise<Served> {
  const own: Closers = []
  let served: Promise<Served> | null = null
  afterAll(async () => {
    for (const close of own.reverse()) await close()
  })
  return () => (served ??= start(fill, options, own))
}

async function start(fill: (store: FilledStore) => void, options: ServedOptions, closers: Closers): Promise<Served> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'patchmirror-api-'))
  if (options.keep !== true) closers.push(async () => Promise.resolve(rmSync(dir, { recursive: true, force: true })))
  const store = openFilledStore(dir)
  if (options.dir === undefined) fill(store)
  const env: Record<string, string> = {
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_SERVER_KEYS: TEST_KEY,
    PATCHMIRROR_DATA_DIR: dir,
    ...options.env,
  }
  const own = env['PATCHMIRROR_SERVER_KEYS'] === TEST_KEY ? bearer() : {}
  const { config } = loadQuick({ env, cwd: dir })
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('no database')
  const errors: object[] = []
  const requests: object[] = []
  const told: string[] = []
  const fields: object[] = []
  const log: ServerLog = {
    debug: (fields) => requests.push(fields),
    info(given, message) {
      fields.push(given)
      told.push(message)
    },
    warn: (_, message) => told.push(message),
    error: (fields) => errors.push(fields),
    isLevelEnabled: (level) => level === 'debug' && options.debug === true,
  }
  const { now = () => FILLED_AT + 60_000, nextRunAt = () => null, closeGraceMs = 2000 } = options
  const server = createServer({
    reads,
    dataDir: dir,
    config,
    version: '9.9.9',
    startedAt: FILLED_AT,
    now,
    log,
    nextRunAt,
    closeGraceMs,
    startReading: readHere,
    followed: {
      ...(options.webhookLog && { webhookLog: options.webhookLog }),
      ...(options.findingsLog && { findingsLog: options.findingsLog(config) }),
      ...(options.eventBounds && { bounds: options.eventBounds }),
      ...(options.onServed && { onServed: options.onServed }),
    },
    ...(options.metrics && { metrics: options.metrics }),
    ...peopleOf(config, options),
    shown: shownBy(options),
    plugins: [scannerRoutes(options.viewsMaker ?? null), ...(options.plugins ?? [])],
  })
  const { port } = await server.listen()
  closers.push(async () => {
    await server.close()
    reads.close()
    store.close()
  })
  const get: Served['get'] = (path, headers = {}, method = 'GET') => ask(port, path, { ...own, ...headers }, method)
  return {
    store,
    server,
    port,
    errors,
    requests,
    told,
    fields,
    own,
    dir,
    get,
    head: (path, headers) => get(path, headers, 'HEAD'),
    raw: (text) => exchange(port, text),
  }
}

function peopleOf(config: Config, { people }: ServedOptions): Pick<ServerOptions, 'people'> {
  const made = people?.(config)
  return made === undefined ? {} : { people: made }
}

function ask(port: number, path: string, headers: Record<string, string>, method: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path, headers, method, agent: false })
    sent.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, headers, body: Buffer.concat(chunks) })
      })
    })
    sent.end()
  })
}

function exchange(port: number, text: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => chunks.push(chunk)).once('error', reject)
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** The JSON of a reply. */
export function jsonOf(reply: Reply): Record<string, unknown> {
  return JSON.parse(reply.body.toString()) as Record<string, unknown>
}

export { FILLED_AT }

/** A small feed of the patch feed's shape, with what a rebuild would spoil: odd spacing, escapes, large numbers. */
export const PATCH_FEED = `{"alpine": [
  {"distroversion":"3.18", "archs": ["x86_64"], "packages": [
    {"pkg": {"name": "curl", "secfixes": {"8.1-r00071": ["CVE-2024-1"]}, "n": 1.0e400}},
    {"pkg": {"name": "c\\u0061-certs", "secfixes": {}, "odd": "\\"]}\\\\"}}], "later": 12345678901234567890},
  {"distroversion":"3.19","archs":[],"packages":[{"pkg":{"name":"curl","secfixes":{}}}]}],
 "debian" : [{"distroversion":"12","packages":[{"pkg":{"name":"openssl","secfixes":{}}}]}],
 "npm": []}`

export const FEEDS = {
  '/external/patch_feed': PATCH_FEED,
  '/external/globals/sys_matrix': '{"ecosystems":{}}',
  '/external/cve_feed': null,
}
