import fc from 'fast-check'
import { expect } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import type { Service } from '../../sandbox/service/service.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'
import type { Run } from '../../../src/store/runs/runs.ts'
import { SMALL, differences } from './fixtures.ts'
import { announced, refresh } from '../refreshes.ts'

/** One thing that happens: to the service, on the way, or a sync. */
export type Event =
  | { what: 'edit'; edit: (typeof EDITS)[number]; pick: number }
  | { what: 'fault'; path: RegExp; fault: Fault; after: number; times: number }
  | { what: 'sync'; full: boolean }
  | { what: 'refresh'; named: readonly number[] }

/** The changes that `edit` makes. */
export const EDITS = [
  'addTag',
  'addPackage',
  'addTicket',
  'subscribe',
  'unsubscribe',
  'changeTag',
  'changeImage',
  'changePackage',
  'changeTicket',
  'removeTag',
  'removePackage',
  'removeTicket',
  'rotateSbom',
  'rotateVex',
  'rotatePatches',
] as const

const PATHS = [
  /^\/v1\//,
  /^\/v1\/tags/,
  /^\/v1\/images\/.*\/tags$/,
  /^\/v1\/packages/,
  /sbom$/,
  /^\/artifacts\//,
  /versions/,
]
/** No 404: that an artifact is gone is believed, until its owner moves. */
const FAULTS: Fault[] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 401 },
  { kind: 'status', status: 429, headers: { 'Retry-After': '0' } },
  { kind: 'html' },
  { kind: 'empty' },
  { kind: 'reset' },
  { kind: 'truncate' },
  { kind: 'endlessCursor', items: 'repeated' },
  { kind: 'artifactUrl', url: 'file:///etc/passwd' },
]

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant('edit' as const),
      edit: fc.constantFrom(...EDITS),
      pick: fc.nat(99),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('fault' as const),
      path: fc.constantFrom(...PATHS),
      fault: fc.constantFrom(...FAULTS),
      after: fc.nat(12),
      times: fc.integer({ min: 1, max: 8 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('sync' as const), full: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('refresh' as const),
      named: fc.array(fc.nat(99), { maxLength: 3 }),
    }),
  },
)

/** Changes one thing of the service. */
export function edit(service: Service, name: (typeof EDITS)[number], pick: number): void {
  const one = (kind: Parameters<Service['ids']>[0]): string | null => {
    const ids = service.ids(kind)
    return ids.length < 2 ? null : (ids[pick % ids.length] ?? null) // the guard never sees a kind vanish
  }
  const tag = one('tags')
  const pkg = one('packages')
  const ticket = one('tickets')
  if (name === 'addTag') service.addTag()
  if (name === 'addPackage') service.addPackage()
  if (name === 'addTicket') service.addTicket()
  if (name === 'changeImage') service.change('images', one('images') ?? '')
  if (name === 'unsubscribe') {
    const subscription = one('subscriptions')
    if (subscription !== null) service.remove('subscriptions', subscription)
  }
  if (tag !== null) {
    if (name === 'subscribe') service.addSubscription({ tag })
    if (name === 'changeTag') service.change('tags', tag)
    if (name === 'removeTag') service.remove('tags', tag)
    if (name === 'rotateSbom') service.rotateArtifact('tag', tag, 'sbom')
    if (name === 'rotateVex') service.rotateArtifact('tag', tag, 'vex')
  }
  if (pkg !== null) {
    if (name === 'changePackage') service.change('packages', pkg)
    if (name === 'removePackage') service.remove('packages', pkg)
    if (name === 'rotatePatches') service.rotateArtifact('package', pkg, 'patches')
  }
  if (ticket !== null) {
    if (name === 'changeTicket') service.change('tickets', ticket, { ticket_status: 'done' })
    if (name === 'removeTicket') service.remove('tickets', ticket)
  }
}

/** What every run must leave behind, however it ended: whatever is served hangs together. */
function expectSound(made: CatalogBench): void {
  for (const { path } of made.store.catalog.eachStoredAnswer()) {
    for (const { digest } of made.store.catalog.readAnswer(path)?.links ?? [])
      expect([path, made.store.catalog.readDocument(digest)?.digest]).toEqual([path, digest])
  }
}

/** A refresh for some of the tags; when it ends well, every tag that upstream lists is there, as upstream has it. */
async function refreshed(made: CatalogBench, named: readonly number[]): Promise<Run> {
  const { service } = made.sandbox
  const ids = service.ids('tags')
  const targets = named.map((pick) => announced(service, ids[pick % ids.length] ?? ''))
  const asOf = made.store.snapshots.readSnapshot('catalog')?.asOf
  const report = await refresh(made, ...targets)
  if (report.kind === 'refresh') {
    expect(report.asOf).toBeNull()
    expect(made.store.snapshots.readSnapshot('catalog')?.asOf).toBe(asOf)
  }
  if (report.state !== 'complete') return report
  for (const id of ids) {
    const { listed, digestMatches, artifacts } = made.store.catalog.findAnnounced(announced(service, id))
    expect([id, listed, digestMatches, artifacts === 'lacking']).toEqual([id, true, true, false])
  }
  return report
}

/** After any history, one run without faults makes the mirror answer as the service does. */
export async function checkHistories(numRuns: number, maxLength: number, seed?: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 3, maxLength }),
      fc.constantFrom('all', 'subscribed'),
      fc.constantFrom('wire' as const, 'other' as const),
      async (history, scope, shape) => {
        const made = await catalogBench({ ...SMALL, shape }, { env: { PATCHMIRROR_CATALOG_SCOPE: scope } })
        for (const step of history) {
          if (step.what === 'edit') edit(made.sandbox.service, step.edit, step.pick)
          else if (step.what === 'fault') made.sandbox.faults.set(step.path, step.fault, step)
          else {
            const report =
              step.what === 'refresh'
                ? await refreshed(made, step.named)
                : await made.run('catalog', { full: step.full })
            expect(report.code).not.toBe('internal')
            expectSound(made)
          }
        }
        made.sandbox.faults.clear()
        const last = await made.run('catalog')
        // A subscription to what upstream removed names nothing: the run is partial for that, and for nothing else.
        const state = last.facts['subscriptionsUnderstood'] === undefined ? 'complete' : 'partial'
        expect(last).toMatchObject({ state, code: null })
        expect(await differences(made)).toEqual([])
        expectSound(made)
        expect((await made.run('catalog')).message).toContain('nothing changed')
        const { id } = made.store.snapshots.readSnapshot('catalog') ?? { id: '' }
        const full = await made.run('catalog', { full: true })
        expect([full.state, full.snapshot]).toEqual([state, id])
      },
    ),
    { numRuns, ...(seed !== undefined && { seed }) },
  )
}
