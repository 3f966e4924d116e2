import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { FLEET, type FleetStatus } from '../../../src/base/reports/fleet.ts'
import { catalogEnv } from '../catalog/mirror.ts'
import { type World, openWorld } from '../daemons.ts'
import { TEST_KEY, bearer } from '../keys.ts'
import { faultsBy } from '../openapi.ts'

/** What a test asks of a mirror of a fleet. */
export interface Node {
  readonly url: string
}

/** A service, an object store in a folder, and the mirrors of a fleet. */
export interface Fleet {
  readonly world: World
  /** The folder of the object store. */
  readonly store: string
  /** Settings of a mirror with this name and role. */
  readonly env: (name: string, role: FleetStatus['role']) => Record<string, string>
}

/** Opens a fleet without mirrors, until the test ends. */
export async function openFleet(leaseSeconds: number): Promise<Fleet> {
  const service = { images: 2, tags: 4, packages: 2, tickets: 5 }
  const world = await openWorld({ records: 40, service })
  onTestFinished(() => world.close())
  const made = await world.patchmirror('bundle', 'keygen', join(world.dir, 'key'))
  if (made.code !== 0) throw new Error(made.err)
  const store = join(world.dir, 'store')
  mkdirSync(store)
  const env: Fleet['env'] = (name, role) => ({
    ...(role === 'reader'
      ? { PATCHMIRROR_BUNDLE_TRUSTED_KEYS: join(world.dir, 'key.pub') }
      : { ...catalogEnv(world.sandbox), PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(world.dir, 'key') }),
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_DATA_DIR: join(world.dir, name),
    PATCHMIRROR_FLEET_URL: `file://${store}`,
    PATCHMIRROR_FLEET_ROLE: role,
    PATCHMIRROR_FLEET_NAME: name,
    LIMIT_FLEET_POLL_SECONDS: '1',
    PATCHMIRROR_FLEET_LEASE_SECONDS: String(leaseSeconds),
    LIMIT_FLEET_MAX_LAG_SECONDS: '3',
    PATCHMIRROR_SERVER_KEYS: TEST_KEY,
    PATCHMIRROR_WEBHOOKS_SECRETS: `whsec_${randomBytes(24).toString('base64')}`,
    PATCHMIRROR_SERVER_PUBLIC_URL: 'http://mirror.example',
  })
  return { world, store, env }
}

/** The fleet's section of a mirror's status; throws where it is not as described. */
export async function fleetStatus({ url }: Node): Promise<FleetStatus> {
  const body = (await (await fetch(`${url}/-/status`)).json()) as { fleet: FleetStatus }
  const faults = faultsBy(FLEET, body.fleet)
  if (faults.length > 0) throw new Error(faults.join('; '))
  return body.fleet
}

/** Resolves once the fleet's section of a mirror's status fits. */
export async function untilFleet(node: Node, fits: (fleet: FleetStatus) => boolean): Promise<FleetStatus> {
  for (;;) {
    const fleet = await fleetStatus(node)
    if (fits(fleet)) return fleet
    await setTimeout(50)
  }
}

/** Answers of a mirror, with all by which clients tell them apart. */
export async function answersOf({ url }: Node): Promise<Record<string, unknown>> {
  const index = (await (await fetch(`${url}/external/osv/all.json`)).json()) as { id: string }[]
  const query = { package: { name: 'x', ecosystem: 'npm' }, version: '1.0.0' }
  const asked: [string, RequestInit?][] = [
    ['/external/osv/all.json'],
    ['/external/osv/all.zip'],
    [`/external/osv/${index[0]?.id ?? ''}.json`],
    [`/external/osv/${index.at(-1)?.id ?? ''}.json`],
    ['/external/patch_feed'],
    ['/v1/patches?limit=3'],
    ['/v1/patches?limit=1&sort=-id'],
    ['/v1/images'],
    ['/v1/tags'],
    ['/osv/v1/query', { method: 'POST', body: JSON.stringify(query) }],
    ['/.well-known/vex-repository.json'],
  ]
  const answers: Record<string, unknown> = {}
  for (const [path, init = {}] of asked) {
    const answer = await fetch(url + path, {
      ...init,
      headers: { ...bearer(), 'content-type': 'application/json' },
    })
    const { status, headers } = answer
    const of = (name: string): string | null => headers.get(name)
    const bytes = Buffer.from(await answer.arrayBuffer())
    const body = bytes.toString('latin1')
    answers[path] = {
      status,
      etag: of('etag'),
      changed: of('last-modified'),
      snapshot: of('x-mirror-snapshot'),
      asOf: of('x-mirror-as-of'),
      body,
    }
  }
  return answers
}
