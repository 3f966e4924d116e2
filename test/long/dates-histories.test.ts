import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type RecordDates, isOnMirror } from '../../src/store/dates/reads.ts'
import { type Below, carry, openBelow } from '../features/bundles/air-gap.ts'
import { type Bench, createBench } from '../support/mirror.ts'

type Step =
  | { do: 'put'; which: number; fix: boolean; version: number }
  | { do: 'delete'; which: number }
  | { do: 'restamp'; which: number }
  | { do: 'delete all' }
  | { do: 'run'; kind: 'sync' | 'reconcile' }
  | { do: 'carry'; full: boolean; since: number }

const which = fc.nat({ max: 5 })
const history: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('put' as const), which, fix: fc.boolean(), version: fc.nat({ max: 2 }) }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), which }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restamp' as const), which }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete all' as const) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('run' as const),
        kind: fc.constantFrom('sync' as const, 'reconcile' as const),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('carry' as const), full: fc.boolean(), since: fc.nat({ max: 9 }) }),
    },
  ),
  { minLength: 10, maxLength: 30, size: 'max' },
)

const idOf = (which: number): string => `TEST-${which}`
const HOUR = 3_600_000

/** What a plain program notes that looks at the records after each run. */
function createModel({ store, content }: Bench) {
  const dates = new Map<string, RecordDates>()
  const contents = new Map<string, string>()
  return {
    dates,
    look(): void {
      const at = store.snapshots.readSnapshot('osv')?.publishedAt ?? 0
      for (const [id] of store.osv.eachPair()) {
        const text = String(content(id))
        const old = dates.get(id)
        const fix = /"(fixed|last_affected)":"/.test(text) ? at : null
        if (old === undefined)
          dates.set(id, { id, firstSeen: at, changedAt: at, fixSeen: fix, removedAt: null, returnedAt: null, flags: 0 })
        else
          dates.set(id, {
            ...old,
            changedAt: contents.get(id) === text ? old.changedAt : at,
            fixSeen: old.fixSeen ?? fix,
            returnedAt: isOnMirror(old) ? old.returnedAt : at,
          })
        contents.set(id, text)
      }
      for (const [id, old] of dates)
        if (store.osv.readEntry(id) === null && isOnMirror(old))
          dates.set(id, { ...old, removedAt: at, returnedAt: null })
    },
  }
}

const inOrder = (dates: Iterable<RecordDates>): RecordDates[] => [...dates].sort((a, b) => (a.id < b.id ? -1 : 1))

/** Dates that were known never become later, and nothing is newer than what the source mirror had. */
function moved(before: readonly RecordDates[], now: readonly RecordDates[]): string[] {
  const after = new Map(now.map((one) => [one.id, one]))
  return before.flatMap(({ id, firstSeen, fixSeen }) => {
    const is = after.get(id)
    if (is === undefined) return [`${id} was forgotten`]
    const isLater = is.firstSeen > firstSeen || (fixSeen !== null && (is.fixSeen ?? Infinity) > fixSeen)
    return isLater ? [`${id} moved`] : []
  })
}

async function play(steps: readonly Step[], to: string): Promise<void> {
  const clock = { at: Date.UTC(2026, 4, 1) }
  const bench = await createBench({ sandbox: { records: 3 }, now: () => clock.at })
  const there = openBelow(join(to, 'below'))
  const { feed } = bench.sandbox
  try {
    const model = createModel(bench)
    const run = async (kind: 'sync' | 'reconcile'): Promise<void> => {
      clock.at += HOUR
      const report = await bench.run('osv', { kind })
      const open = bench.store.quarantine.listOpenQuarantines().at(-1)
      const approved = open && bench.store.quarantine.readQuarantine(open.runId)
      if (report.state === 'quarantined' && approved) {
        expect(inOrder(bench.store.dates.eachDates())).toEqual(inOrder(model.dates.values()))
        clock.at += HOUR
        await bench.run('osv', { kind: 'approve', approved })
      }
      model.look()
      expect(inOrder(bench.store.dates.eachDates())).toEqual(inOrder(model.dates.values()))
    }
    await run('sync')
    const sequences: number[] = []
    for (const [i, step] of steps.entries()) {
      const id = 'which' in step ? idOf(step.which) : ''
      const fixes = { affected: [{ ranges: [{ events: [{ fixed: '1' }] }] }] }
      if (step.do === 'put')
        feed.put(
          id,
          JSON.stringify({ id, version: step.version, ...(step.fix && fixes) }),
          `2026-05-01T00:00:00.${String(i).padStart(3, '0')}Z`,
        )
      else if (step.do === 'delete') feed.delete(id)
      else if (step.do === 'restamp' && feed.ids().includes(id))
        feed.put(id, feed.record(id), `2026-05-02T00:00:00.${String(i).padStart(3, '0')}Z`)
      else if (step.do === 'delete all')
        feed
          .ids()
          .slice(1)
          .forEach((one) => feed.delete(one))
      else if (step.do === 'run') await run(step.kind)
      else if (step.do === 'carry') await carryOver(bench, there, to, sequences, step, clock)
    }
  } finally {
    there.store.close()
    await bench.close()
  }
}

async function carryOver(
  bench: Bench,
  there: Below,
  to: string,
  sequences: number[],
  { full, since }: Step & { do: 'carry' },
  clock: { at: number },
): Promise<void> {
  const base = full ? undefined : sequences[since % Math.max(1, sequences.length)]
  const { files, manifest } = await carry(bench.dir, to, {
    ...(base !== undefined && { since: String(base) }),
    now: () => clock.at,
  })
  sequences.push(manifest.sequence)
  const before = [...there.store.dates.eachDates()]
  const refused = await there.refuses(files, { now: () => clock.at + 1000 * HOUR })
  if (refused !== null) return expect(refused).toMatch(/is missing here/)
  const source = new Map([...bench.store.dates.eachDates()].map((one) => [one.id, one]))
  const now = [...there.store.dates.eachDates()]
  expect(moved(before, now)).toEqual([])
  for (const one of now) {
    const from = source.get(one.id)
    expect([one.id, one.firstSeen, isOnMirror(one)]).toEqual([
      one.id,
      from?.firstSeen,
      there.store.osv.readEntry(one.id) !== null,
    ])
    // Less where it changed and changed back between two imports: that is not in a delta.
    expect(one.changedAt).toBeLessThanOrEqual(from?.changedAt ?? 0)
  }
}

test('over random histories the dates are those of a simple model, and never move in bundles', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const to = mkdtempSync(join(tmpdir(), 'patchmirror-dates-'))
      try {
        await play(steps, to)
      } finally {
        rmSync(to, { recursive: true, force: true })
      }
    }),
    { numRuns: 60, endOnFailure: true },
  )
})
