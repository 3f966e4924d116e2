import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { type Finished, type Started, start } from '../../support/command.ts'
import { type World, openWorld } from '../../support/daemons.ts'
import { TEST_KEY } from '../../support/keys.ts'
import { QUICK } from '../../support/mirror.ts'
import { findTool, startTool } from '../../support/tools.ts'
import { startSeaweed, useCredentials } from '../object-stores.ts'
import { type Site, type Sites, openSites, whyNoSites } from './sites.ts'

/** The line between the sites. */
export const LINE = { delayMs: 80, loss: 0.01 }

/** Names of the mirrors, by their sites: those that may lead, and the readers. */
export const LEADERS = ['a1', 'a2'] as const
export const READERS = ['b1', 'b2', 'b3'] as const
/** The readers with a cache in front of them. */
export const EDGES = ['b1', 'b2'] as const
type Name = (typeof LEADERS)[number] | (typeof READERS)[number]

/** A mirror of the fleet, in a process of its own. */
export interface SiteNode {
  readonly url: string
  readonly data: string
  /** Starts it, until it serves. */
  start(): Promise<void>
  /** Resolves once such a line is in its log. */
  said(pattern: RegExp): Promise<string>
  signal(signal: NodeJS.Signals): void
  finished(): Promise<Finished | undefined>
}

/** A fleet at two sites. */
export interface SiteFleet {
  readonly world: World
  readonly sites: Sites
  readonly nodes: Readonly<Record<Name, SiteNode>>
  /** Addresses of the caches, by the readers behind them. */
  readonly edges: Readonly<Record<string, string>>
  readonly store: {
    readonly name: string
    /** Whether it is reached over the line. */
    readonly isFar: boolean
    pause(): Promise<void>
    resume(): Promise<void>
  }
  close(): Promise<void>
}

const xkey = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib'].some((lib) =>
  existsSync(join(lib, 'varnish/vmods/libvmod_xkey.so')),
)
const varnishd = findTool('varnishd')
const mount = findTool('mount')

/** Why there can be no such fleet here; null: there can. */
export function whyNoFleet(): string | null {
  if (varnishd === null || !xkey) return 'no Varnish with xkey'
  return mount === null ? 'mount is not installed' : whyNoSites()
}

/** What differs between fleets. */
interface FleetOptions {
  /** Settings of all mirrors. */
  readonly env: Record<string, string>
  /** Size of the file system of b3, megabytes. */
  readonly roomMb: number
}

/** Opens a fleet whose mirrors do not run yet. */
export async function openSiteFleet({ env: more, roomMb }: FleetOptions): Promise<SiteFleet> {
  const ends: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end()
  }
  try {
    const sites = openSites()
    ends.push(() => sites.close())
    const world = await openWorld({
      host: sites.a.outside,
      records: 60,
      service: { images: 3, tags: 8, packages: 3, tickets: 5 },
    })
    ends.push(() => world.close())
    for (const name of LEADERS) {
      const made = await world.patchmirror('bundle', 'keygen', join(world.dir, `${name}.key`))
      if (made.code !== 0) throw new Error(made.err)
    }
    const { store, urls, end } = await openStore(world, sites)
    ends.push(end)
    const trusted = LEADERS.map((name) => join(world.dir, `${name}.key.pub`)).join(',')
    const shared = {
      ...QUICK,
      ...more,
      ...credentials(),
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: trusted,
      PATCHMIRROR_SERVER_KEYS: TEST_KEY,
      PATCHMIRROR_SERVER_PUBLIC_URL: 'http://mirror.example',
      LIMIT_SYNC_JITTER_SECONDS: '0',
    }
    const leading = {
      ...shared,
      ...catalogEnv(world.sandbox),
      ...urls.a,
      PATCHMIRROR_UPSTREAM_API_ROOT: world.sandbox.url,
      PATCHMIRROR_NETWORK_TRUSTED: '*',
      PATCHMIRROR_CATALOG_SCOPE: 'all',
      PATCHMIRROR_OSV_SCHEDULE: '*/2 * * * * *',
    }
    const node = (name: Name, port: number, site: Site, env: Record<string, string>): SiteNode => {
      const made = createNode({ name, port, site, world, env })
      ends.push(() => {
        made.signal('SIGCONT')
        made.signal('SIGKILL')
        return made.finished()
      })
      return made
    }
    const leader = (name: (typeof LEADERS)[number], port: number): SiteNode =>
      node(name, port, sites.a, {
        ...leading,
        PATCHMIRROR_FLEET_ROLE: name === 'a1' ? 'auto' : 'standby',
        PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(world.dir, `${name}.key`),
      })
    const reading = { ...shared, ...urls.b, PATCHMIRROR_FLEET_ROLE: 'reader' }
    const reader = (name: (typeof READERS)[number], port: number): SiteNode =>
      node(name, port, sites.b, { ...reading, ...edgeSettings(name, sites.b) })
    const room = join(world.dir, 'b3')
    mkdirSync(room)
    execFileSync(mount ?? '', ['-t', 'tmpfs', '-o', `size=${roomMb}m`, 'tmpfs', room])
    ends.push(() => execFileSync(findTool('umount') ?? 'umount', ['--lazy', room]))
    const nodes = {
      a1: leader('a1', 8081),
      a2: leader('a2', 8082),
      b1: reader('b1', 8081),
      b2: reader('b2', 8082),
      b3: reader('b3', 8083),
    }
    const edges: Record<string, string> = {}
    for (const name of EDGES) edges[name] = startEdge(name, sites.b, nodes[name], world.dir, ends)
    return { world, sites, nodes, edges, store, close }
  } catch (error) {
    await close()
    throw error
  }
}

function credentials(): Record<string, string> {
  useCredentials()
  const { AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '' } = process.env
  return { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY }
}

/** Starts the object store in site A, or makes a folder where the store is missing. */
async function openStore(world: World, { a, join: joinSites }: Sites) {
  const real = await startSeaweed(a)
  if (!('missing' in real)) {
    const far = await joinSites(Number(new URL(real.endpoint).port), LINE)
    const url = { PATCHMIRROR_FLEET_URL: `${real.bucket}/prod` }
    const urls = {
      a: { ...url, PATCHMIRROR_FLEET_ENDPOINT: real.endpoint },
      b: { ...url, PATCHMIRROR_FLEET_ENDPOINT: `http://${far}` },
    }
    const { pause, resume, stop } = real
    return { urls, end: stop, store: { name: 'SeaweedFS', isFar: true, pause, resume } }
  }
  const folder = join(world.dir, 'store')
  mkdirSync(folder)
  const url = { PATCHMIRROR_FLEET_URL: `file://${folder}` }
  const move = (from: string, to: string): Promise<void> => Promise.resolve(renameSync(from, to))
  const store = {
    name: `a folder (${real.missing})`,
    isFar: false,
    pause: () => move(folder, `${folder}-away`),
    resume: () => move(`${folder}-away`, folder),
  }
  return { urls: { a: url, b: url }, end: () => Promise.resolve(), store }
}

interface NodeParts {
  readonly name: Name
  readonly port: number
  readonly site: Site
  readonly world: World
  readonly env: Record<string, string>
}

function createNode({ name, port, site, world, env }: NodeParts): SiteNode {
  const data = join(world.dir, name)
  let running: Started | null = null
  return {
    url: `http://${site.address}:${port}`,
    data,
    async start() {
      const own = {
        ...env,
        PATCHMIRROR_DATA_DIR: data,
        PATCHMIRROR_FLEET_NAME: name,
        PATCHMIRROR_SERVER_LISTEN: `${site.address}:${port}`,
      }
      running = start(['serve'], own, world.dir, site.within)
      await running.said(/"msg":"serving http[^"]+"/)
    },
    said: (pattern) => running?.said(pattern) ?? Promise.reject(new Error(`${name} does not run`)),
    signal: (signal) => void running?.child.kill(signal),
    finished: () => running?.finished ?? Promise.resolve(undefined),
  }
}

const EDGE_PORTS: Readonly<Record<string, number>> = { b1: 6081, b2: 6082 }

function edgeSettings(name: Name, { address }: Site): Record<string, string> {
  const port = EDGE_PORTS[name]
  if (port === undefined) return {}
  return {
    PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '3600',
    PATCHMIRROR_EDGE_TAG_HEADER: 'xkey',
    PATCHMIRROR_EDGE_PURGE: `http://${address}:${port}/`,
  }
}

/** Starts Varnish in front of a reader, as the guide configures it. */
function startEdge(name: Name, site: Site, { url }: SiteNode, dir: string, ends: (() => unknown)[]): string {
  const page = readFileSync(new URL('../../../docs/guides/caches.md', import.meta.url), 'utf8')
  const [, recipe = ''] = /```vcl\n([^]*?)```/.exec(page) ?? []
  const { hostname, port } = new URL(url)
  const file = join(dir, `${name}.vcl`)
  writeFileSync(file, recipe.replace('"127.0.0.1"', `"${hostname}"`).replace('"8080"', `"${port}"`))
  const listen = `${site.address}:${EDGE_PORTS[name]}`
  const args = ['-j', 'none', '-F', '-n', join(dir, `${name}-varnish`), '-s', 'malloc,32m']
  const [ip, ...within] = site.within
  const edge = startTool(ip, [...within, varnishd ?? '', ...args, '-a', listen, '-f', file])
  ends.push(() => edge.stop())
  return `http://${listen}`
}
