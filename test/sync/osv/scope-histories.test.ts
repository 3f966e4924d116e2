import fc from 'fast-check'
import { expect } from 'vitest'
import { createOsvScope } from '../../../src/base/domain/osv-scope.ts'
import { bothTest, LONG } from '../../support/tables.ts'
import { type Bench, createBench } from '../../support/mirror.ts'
import { disagreements, verify } from '../fixtures.ts'

/** Scopes that runs have, the empty one among them. */
const SCOPES = [
  { include: [], exclude: [] },
  { include: ['npm'], exclude: [] },
  { include: [], exclude: ['npm', 'Alpine'] },
  { include: ['ROOT-APP-'], exclude: ['PyPI'] },
  { include: ['Debian', 'ROOT-APP-*'], exclude: ['ROOT-APP-NPM-'] },
  { include: ['Ubuntu:22.04', 'Maven'], exclude: [] },
  { include: ['Hex'], exclude: [] },
] as const

type Scope = (typeof SCOPES)[number]

const step = fc.record({
  edit: fc.constantFrom('add', 'change', 'changeSilently', 'remove', 'move', 'none'),
  n: fc.integer({ min: 1, max: 6 }),
  scope: fc.constantFrom(...SCOPES),
  run: fc.constantFrom('sync', 'sync', 'reconcile', 'full'),
})

/** Gives some records the ecosystem of another, under a new stamp. */
function move({ sandbox }: Bench, n: number, at: number): void {
  const ids = sandbox.feed.ids()
  for (const id of ids.slice(0, n)) {
    const text = sandbox.feed.record(id).toString()
    const moved = /"Root:npm"/.test(text)
      ? text.replaceAll('"Root:npm"', '"Root:PyPI"')
      : text.replaceAll(/"Root:[A-Za-z]+(:[^"]*)?"/g, '"Root:npm"')
    const stamp = new Date(Date.UTC(2026, 6, 1) + at * 86_400_000).toISOString()
    const record = { ...(JSON.parse(moved) as object), modified: stamp }
    sandbox.feed.put(id, Buffer.from(JSON.stringify(record)), stamp)
  }
}

/** What must be stored: upstream's records in scope, byte for byte; a silent change of others is not seen. */
function check(made: Bench, { include, exclude }: Scope): void {
  const { sandbox, store } = made
  const scope = createOsvScope({ include, exclude, vendors: ['Root'] })
  const entries = JSON.parse(sandbox.feed.index().toString()) as { id: string; modified: string }[]
  const wanted = entries.filter(({ id }) => {
    const record = JSON.parse(sandbox.feed.record(id).toString()) as object
    return scope === null || scope.includes(id, record)
  })
  const served = JSON.parse(made.index()?.toString() ?? '[]') as typeof entries
  expect(served).toEqual(wanted)
  expect(disagreements(store, made.dir)).toEqual([])
  for (const { id } of wanted) expect(made.content(id)).toEqual(sandbox.feed.record(id))
  expect(store.snapshots.readSnapshot('osv')).toMatchObject({
    whole: true,
    records: wanted.length,
    scope: scope?.text ?? null,
  })
  for (const [id, modified] of store.osv.eachOutside()) expect(entries).toContainEqual({ id, modified })
}

/**
 * Whether every stored record is lost, few as they are where the scope is narrow: the service has removed it, or its
 * changed content is out of a scope that is as before, or all are out of another one that has no other.
 */
function losesAll(made: Bench, { include, exclude }: Scope): boolean {
  const { feed } = made.sandbox
  const scope = createOsvScope({ include, exclude, vendors: ['Root'] })
  const isSame = made.store.snapshots.readSnapshot('osv')?.scope === scope?.text
  const stored = JSON.parse(made.index()?.toString() ?? '[]') as { id: string; modified: string }[]
  const listed = new Set(feed.ids())
  const leaves = ({ id, modified }: { id: string; modified: string }) =>
    isSame &&
    feed.modified(id) !== modified &&
    scope?.includes(id, JSON.parse(feed.record(id).toString()) as object) === false
  const isStored = new Set(stored.map(({ id }) => id))
  const isDropped = ({ id, modified }: { id: string; modified: string }) =>
    scope?.judgeId(id) === 'out' ||
    (feed.modified(id) === modified && scope?.includes(id, JSON.parse(feed.record(id).toString()) as object) === false)
  const isEmptied =
    stored.every((one) => listed.has(one.id) && isDropped(one)) &&
    feed.ids().every((id) => isStored.has(id) || scope?.judgeId(id) === 'out')
  return stored.length > 0 && ((!isSame && isEmptied) || stored.every((one) => !listed.has(one.id) || leaves(one)))
}

/** Approves the newest change that waits, as an operator does. */
function approveNewest(made: Bench, env: Record<string, string>) {
  const { quarantine } = made.store
  const open = quarantine.listOpenQuarantines().at(-1)
  const approved = open && quarantine.readQuarantine(open.runId)
  if (!approved) throw new Error('no change waits for a decision')
  return made.runWith(env, 'osv', { kind: 'approve', approved })
}

bothTest(
  'a mirror of a part of OSV has exactly the records in scope after any history of the feed and the scope',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), async (steps) => {
        const made = await createBench({
          sandbox: { records: 30, large: 0 },
          env: { LIMIT_OSV_ARCHIVE_THRESHOLD: '5', PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20' },
        })
        try {
          for (const [at, { edit, n, scope, run }] of steps.entries()) {
            const most = made.sandbox.feed.ids().length - 3
            if (edit === 'move') move(made, n, at)
            else if (edit !== 'none') made.sandbox.feed[edit](edit === 'remove' ? Math.min(n, most) : n)
            const env = {
              PATCHMIRROR_OSV_SCOPE: [...scope.include, ...scope.exclude.map((one) => `!${one}`)].join(','),
            }
            const kind = edit === 'changeSilently' || run === 'reconcile' ? 'reconcile' : 'sync'
            const refused = losesAll(made, scope)
            const report = await made.runWith(env, 'osv', {
              kind,
              full: run === 'full' && kind === 'sync',
            })
            expect(report).toMatchObject({ state: refused ? 'quarantined' : 'complete' })
            if (refused) expect(await approveNewest(made, env)).toMatchObject({ state: 'complete' })
            check(made, scope)
            const again = await made.runWith(env, 'osv')
            expect(again).toMatchObject({ state: 'complete', facts: { requests: 1 } })
          }
          expect((await verify(made.dir)).disagreements).toEqual([])
        } finally {
          await made.close()
        }
      }),
      { numRuns: LONG ? 40 : 1 },
    )
  },
)
