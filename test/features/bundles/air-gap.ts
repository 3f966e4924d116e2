import { rmSync, mkdtempSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { catalogRoutes } from '../../../src/server/catalog/routes.ts'
import { createServer } from '../../../src/server/server.ts'
import { createVexRoutes } from '../../../src/features/scanners/routes/vex.ts'
import { applyBundle } from '../../../src/features/bundles/import/apply.ts'
import { type ExportOptions, exportBundle } from '../../../src/features/bundles/export/export.ts'
import type { ImportOptions, ImportReport } from '../../../src/features/bundles/import/types.ts'
import type { Manifest } from '../../../src/features/bundles/format/manifest.ts'
import { openBundle } from '../../../src/features/bundles/import/open.ts'
import { loadQuick } from '../../support/limits.ts'
import type { Config } from '../../../src/config/schema.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { type Writes, openWrites } from '../../../src/store/writes.ts'
import { keyPair, trust } from './fixtures.ts'
import { readHere } from '../../support/read-here.ts'
import { TEST_KEY, bearer } from '../../support/keys.ts'
import { scannerRoutes } from '../../../src/features/scanners/routes/public-paths.ts'

/** A folder that is gone when the test ends. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'patchmirror-gap-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

type KeyPair = ReturnType<typeof keyPair>

let keys: KeyPair | null = null
let made = 0

/** The key that signs in these tests. */
export function signer(): KeyPair {
  return (keys ??= keyPair(mkdtempSync(join(tmpdir(), 'patchmirror-key-')), 'key'))
}

/** Exports what a data folder holds; signed, to a file of its own. */
export async function carry(
  dir: string,
  to: string,
  more: Partial<ExportOptions> = {},
): Promise<{ files: string[]; manifest: Manifest }> {
  return exportBundle({
    dataDir: dir,
    path: join(to, `${++made}.zip`),
    sources: null,
    trustRoot: [],
    since: null,
    need: null,
    split: null,
    force: false,
    keys: [signer()],
    expireDays: 0,
    keep: 30,
    spared: [],
    program: 'patchmirror/test',
    now: Date.now,
    onProgress: () => undefined,
    ...more,
  })
}

/** A mirror below the gap: a folder with no upstream. */
export interface Below {
  dir: string
  config: Config
  store: Writes
  take(files: readonly string[], more?: Partial<ImportOptions>): Promise<ImportReport>
  /** Why a bundle is refused; null when it is not. */
  refuses(files: readonly string[], more?: Partial<ImportOptions>): Promise<string | null>
  digest(): string
}

/** Opens a mirror below the gap, closed when the test ends. */
export function below(dir = folder()): Below {
  const opened = openBelow(dir)
  onTestFinished(() => opened.store.close())
  return opened
}

/** The same; its store is the caller's to close. */
export function openBelow(dir: string): Below {
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: process.cwd() })
  const store = openWrites(dir)
  const take: Below['take'] = async (files, more = {}) => {
    const bundle = await openBundle(files, trust([signer()], { now: Date.now }))
    try {
      const file = files[0] ?? ''
      const base = { config, store, bundle, file, trigger: 'command', now: Date.now } as const
      return await applyBundle({ ...base, ...more })
    } finally {
      await bundle.close()
    }
  }
  return {
    dir,
    config,
    store,
    take,
    async refuses(files, more) {
      try {
        await take(files, more)
        return null
      } catch (error) {
        if (error instanceof Error && error.name === 'MirrorError') return error.message
        throw error
      }
    },
    digest: () => store.carried.digestSources().digest,
  }
}

/** An answer as it came, not decoded. */
export interface Reply {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

const vexRoutes = (config: Config) =>
  createVexRoutes({
    config,
    expectsCatalog: false,
    maker: { wanted: () => undefined, damaged: () => undefined },
  })

/** Serves a data folder on a free port; the function asks it, and sees the newest snapshot. */
export async function serveFolder(
  dir: string,
  config: Config,
): Promise<((path: string, headers?: Record<string, string>) => Promise<Reply>) & { look(): void }> {
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('no database')
  const server = createServer({
    reads,
    dataDir: dir,
    version: 'test',
    startedAt: 0,
    now: Date.now,
    log: null,
    config: {
      ...config,
      server: { ...config.server, host: '127.0.0.1', port: 0, keys: [TEST_KEY] },
    },
    nextRunAt: () => null,
    startReading: readHere,
    plugins: [scannerRoutes(null), vexRoutes(config), catalogRoutes],
  })
  const { port } = await server.listen()
  const agent = new Agent({ keepAlive: true })
  onTestFinished(async () => {
    agent.destroy()
    await server.close()
    reads.close()
  })
  const ask = (path: string, more: Record<string, string> = {}): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const headers = { ...bearer(), ...more }
      const asked = request({ host: '127.0.0.1', port, path, headers, agent }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const { statusCode: status = 0, headers: given } = answer
          resolve({ status, headers: given, body: Buffer.concat(chunks) })
        })
      })
      asked.on('error', reject).end()
    })
  return Object.assign(ask, { look: () => server.snapshotChanged() })
}

/** Every path that a mirror answers with something of its own: public ones, records, lists, answers. */
export function pathsOf(store: Writes): string[] {
  const lists = store.catalog.listLists().map(({ path }) => path)
  return [
    ...['/external/osv/all.json', '/external/osv/all.zip'],
    ...store.feeds.listDocuments('feeds').map(({ path }) => path),
    ...[...store.osv.eachPair()].map(([id]) => `/external/osv/${encodeURIComponent(id)}.json`),
    ...[...store.carried.eachRow('osv', 'osv-tombstone')].map(
      ({ key }) => `/external/osv/${encodeURIComponent(key)}.json`,
    ),
    ...lists.flatMap((path) => [path, `${path}?limit=2`]),
    ...[...store.catalog.eachStoredAnswer()].map(({ path }) => path),
    ...store.catalog.listMissingPaths().map(({ path }) => path),
  ]
}

const LINK = /http:\/\/127\.0\.0\.1:\d+(\/[^"?\\]*)(\?[^"\\]*)/g

function textOf({ headers, body }: Reply): string {
  const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
  return plain.toString('latin1')
}

/** The local links in an answer, without the address. */
export function linksIn(reply: Reply): string[] {
  return [...textOf(reply).matchAll(LINK)].map(([, path = '', query = '']) => path + query)
}

const OWN = [
  ...['etag', 'last-modified', 'x-mirror-snapshot', 'x-mirror-as-of', 'x-goog-hash', 'vary'],
  ...['content-type', 'content-encoding', 'cache-control', 'accept-ranges', 'content-range'],
]

/** An answer as both sides of the gap must give it: only the address and signature of local links are their own. */
export function comparable(reply: Reply): object {
  const { status, headers, body } = reply
  const linked = linksIn(reply).length > 0
  const text = linked ? textOf(reply).replace(LINK, 'local:$1') : body.toString('latin1')
  const told = Object.fromEntries(OWN.map((name) => [name, headers[name]]))
  return { status, text, headers: told }
}
