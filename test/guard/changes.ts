import fc from 'fast-check'
import { isHarmless } from '../../src/guard/harmless.ts'
import { type RecordDoubt, doubtsAbout } from '../../src/guard/kinds.ts'

interface Entry {
  package: { ecosystem: string; name: string }
  ranges?: { type: string; repo?: string; events: Record<string, unknown>[] }[]
  versions?: string[]
  database_specific?: unknown
}
interface Doc {
  summary: string
  severity?: unknown
  withdrawn?: string
  affected: Entry[]
}

const version = fc.constantFrom('1', '2', '3', '10', '1.2', '0', 'no version')
const fixed = fc.array(version, { maxLength: 3 }).map((all) => all.map((one) => ({ fixed: one })))
const events = fc.oneof(
  { weight: 4, arbitrary: fixed.map((fixes) => [{ introduced: '0' }, ...fixes]) },
  fc.array(
    fc.oneof(
      version.map((one) => ({ introduced: one })),
      version.map((one) => ({ fixed: one })),
      version.map((one) => ({ last_affected: one })),
      fc.constantFrom({ limit: '2' }, { fixed: 2 }, { fixed: '' }, { introduced: '0', fixed: '3' }),
    ),
    { maxLength: 4 },
  ),
)
const range = fc.record({ type: fc.constantFrom('ECOSYSTEM', 'SEMVER', 'GIT'), events })
const versions = fc.array(version, { maxLength: 4 })
const named = fc.record({
  ecosystem: fc.constantFrom('npm', 'npm', 'PyPI', 'Debian:12', 'Android'),
  name: fc.constantFrom('one', 'one', 'One', 'two'),
})
const own = fc.constantFrom({ severity: 'LOW' }, { severity: 'HIGH' }, { note: 1 })
const entry = fc.record(
  { package: named, ranges: fc.array(range, { maxLength: 2 }), versions, database_specific: own },
  { requiredKeys: ['package'] },
)
const doc: fc.Arbitrary<Doc> = fc.record(
  {
    summary: fc.constantFrom('', 'a', 'b'.repeat(500)),
    affected: fc.array(entry, { maxLength: 3 }),
    severity: fc.constantFrom([{ type: 'CVSS_V3', score: 'A' }], [{ type: 'CVSS_V3', score: 'B' }], 'C'),
    withdrawn: fc.constant('2026-06-01T00:00:00Z'),
  },
  { requiredKeys: ['summary', 'affected'] },
)

type Edit = (of: Doc) => void
const ofEntry = (at: number, edit: (one: Entry) => void): Edit => {
  return ({ affected }) => {
    const one = affected[at % Math.max(affected.length, 1)]
    if (one !== undefined) edit(one)
  }
}
const ofEvents = (at: number, edit: (events: Record<string, unknown>[]) => void): Edit =>
  ofEntry(at, ({ ranges }) => {
    const one = ranges?.[at % Math.max(ranges.length, 1)]
    if (one !== undefined) edit(one.events)
  })
const edit: fc.Arbitrary<Edit> = fc
  .tuple(fc.nat(8), fc.nat(5), version, entry, range, events, doc)
  .map(([kind, at, one, other, another, list, whole]): Edit => {
    const edits: Edit[] = [
      ofEvents(at, (all) => all.push({ fixed: one })),
      ofEvents(at, (all) => all.splice(-1, 1, { fixed: one })),
      ofEvents(at, (all) => all.splice(0, all.length, ...list)),
      ofEntry(at, (all) => (all.versions = [...(all.versions ?? []), one])),
      ofEntry(at, (all) => all.versions?.splice(at % 2, 1)),
      ofEntry(at, (all) => all.ranges?.splice(at % 2, at % 3, another)),
      ofEntry(at, (all) => Object.assign(all, other)),
      (all) => all.affected.splice(at % 2, at % 3, other),
      (all) => Object.assign(all, whole),
    ]
    return edits[kind] ?? (() => undefined)
  })

const copyOf = (of: Doc): Doc => JSON.parse(JSON.stringify(of)) as Doc

/** Two versions of a record, of which the second comes from the first by at most three changes. */
const change: fc.Arbitrary<[Doc, Doc]> = fc.tuple(doc, fc.array(edit, { maxLength: 3 })).map(([before, edits]) => {
  const old = copyOf(before)
  const now = copyOf(before)
  for (const one of edits) one(now)
  return [old, copyOf(now)]
})

const parsed = (json: unknown) => ({ json, length: JSON.stringify(json).length })

/** What both ways to judge say of a change. */
export function judgements(before: unknown, after: unknown): { harmless: boolean; doubts: RecordDoubt[] } {
  const old = parsed(before)
  const now = parsed(after)
  return { harmless: isHarmless(old, now), doubts: doubtsAbout(old, now) }
}

/** Generates changes; fails for one that is said to be harmless and raises a doubt. Returns how many there are of each. */
export function judgeGenerated(seed: number, numRuns: number): { harmless: number; doubtful: number } {
  const counts = { harmless: 0, doubtful: 0 }
  const property = fc.property(change, ([before, after]) => {
    const { harmless, doubts } = judgements(before, after)
    if (harmless) counts.harmless++
    if (doubts.length > 0) counts.doubtful++
    return !harmless || doubts.length === 0
  })
  fc.assert(property, { seed, numRuns })
  return counts
}
