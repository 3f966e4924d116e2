import { expect, test } from 'vitest'
import { createRecordGuard } from '../../src/guard/guard.ts'
import { isCleared } from '../../src/guard/sboms.ts'
import { createDoubtCount } from '../../src/guard/verdict.ts'
import type { Doubt } from '../../src/base/domain/doubts.ts'
import type { LedgerRow } from '../../src/store/changes/guard-ledger.ts'
import { type Doc, standardOf, versionOf } from '../guard/hostile.ts'

/** A pseudo-random sequence, the same each time. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const DAY = 86_400_000
const RUNS_A_DAY = 4
const RELEASES = ['Debian:10', 'Debian:11', 'Debian:12']

function recordOf(at: number, random: (below: number) => number): Doc {
  const fix = `${1 + random(9)}.${random(20)}.${5 + random(20)}`
  const events = at % 7 === 0 ? [{ introduced: '0' }] : [{ introduced: '0' }, { fixed: fix }]
  const isDistribution = at % 3 === 0
  const ecosystems = isDistribution ? RELEASES : ['PyPI']
  const affected = ecosystems.map((ecosystem) => ({
    package: { ecosystem, name: `p${at % 700}` },
    ranges: [{ type: 'ECOSYSTEM', events: events.map((event) => ({ ...event })) }],
    ...(isDistribution ? {} : { versions: ['0.1.0', '0.2.0', '1.0.0'] }),
  }))
  return {
    id: `H-${at}`,
    modified: '2026-01-01T00:00:00Z',
    aliases: [`CVE-2025-${10_000 + at}`],
    severity: [{ type: 'CVSS_V3', score: `CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:${'HL'.charAt(random(2))}/I:H/A:N` }],
    affected,
  }
}

type Change = (doc: Doc, random: (below: number) => number) => void

const eachEvent = (doc: Doc, use: (event: Record<string, string>) => void): void => {
  for (const { ranges = [] } of doc.affected ?? []) for (const { events } of ranges) events.forEach(use)
}
const setFix = (doc: Doc, to: (fix: string) => string): void =>
  eachEvent(doc, (event) => {
    if (event['fixed'] !== undefined) event['fixed'] = to(event['fixed'])
  })
const raise: Change = (doc) => setFix(doc, (fix) => fix.replace(/\d+$/, (n) => `${Number(n) + 1}`))
const lower: Change = (doc) => setFix(doc, (fix) => fix.replace(/\d+$/, (n) => `${Number(n) - 1}`))
const firstFix: Change = (doc) => {
  for (const { ranges = [] } of doc.affected ?? [])
    for (const { events } of ranges) if (events.length === 1) events.push({ fixed: '9.9.9' })
}
const rescore: Change = (doc, random) => {
  for (const one of doc.severity ?? []) one.score = one.score.replace(/AV:\w/, `AV:${'NL'.charAt(random(2))}`)
}
const endSupport: Change = (doc) => {
  doc.affected = (doc.affected ?? []).filter((one) => one.package.ecosystem !== 'Debian:10')
}
const sortAliases: Change = (doc) => {
  doc['upstream'] = doc['aliases']
  doc['aliases'] = []
}
const rewrite: Change = (doc) => {
  for (const one of doc.affected ?? []) if (one.versions) one.versions = [...one.versions].reverse()
  doc['database_specific'] = { generator: 2 }
}
const withdraw: Change = (doc) => (doc['withdrawn'] = '2026-02-01T00:00:00Z')

/** What the days of a month bring beside the usual: the share of the records, and what happens to them. */
const EVENTS: ReadonlyMap<number, readonly [share: number, change: Change]> = new Map<
  number,
  readonly [number, Change]
>([
  [3, [1, rewrite]],
  [6, [1, endSupport]],
  [10, [0.3, rescore]],
  [14, [0.05, firstFix]],
  [18, [1, sortAliases]],
  [22, [0.6, raise]],
])

/** Plays a month of a feed, and returns how often each kind was reported, and why any run was refused. */
function play(seed: number, records: number) {
  const random = createRandom(seed)
  const docs = Array.from({ length: records }, (_, at) => recordOf(at, random))
  const reported = new Map<string, number>()
  const refused: string[] = []
  let ledger: (LedgerRow & { at: number })[] = []
  for (let run = 0; run < 28 * RUNS_A_DAY; run++) {
    const now = Date.UTC(2026, 0, 1) + (run * DAY) / RUNS_A_DAY
    const earlier = (kind: Doubt) => ledger.filter((row) => row.kind === kind && row.at > now - 7 * DAY)
    const guard = createRecordGuard(standardOf(records, {}, { earlier }), records, now)
    const before = new Map<Doc, string>()
    const change = (doc: Doc, how: Change): void => {
      if (!before.has(doc)) before.set(doc, JSON.stringify(doc))
      how(doc, random)
    }
    const some = (count: number, how: Change): void => {
      for (let i = 0; i < count; i++) change(docs[random(records)] ?? docs[0]!, how) // eslint-disable-line @typescript-eslint/no-non-null-assertion -- there are records
    }
    some(random(40), raise)
    some(random(2), lower)
    some(random(5), firstFix)
    some(random(8) === 0 ? 1 : 0, withdraw)
    const event = run % RUNS_A_DAY === 0 ? EVENTS.get(run / RUNS_A_DAY) : undefined
    if (event !== undefined) for (const doc of docs) if (random(1000) < event[0] * 1000) change(doc, event[1])
    for (const [doc, old] of before) {
      const after = versionOf(Buffer.from(JSON.stringify(doc)))
      guard.see(after, { before: versionOf(Buffer.from(old)), atStart: null }, () => doc.modified)
    }
    const verdict = guard.verdict()
    if (verdict.refusal !== null) refused.push(`run ${run}: ${verdict.refusal}`)
    for (const kind of Object.keys(verdict.doubted)) reported.set(kind, (reported.get(kind) ?? 0) + 1)
    ledger = ledger.filter(({ kind }) => !(kind in verdict.doubted))
    ledger.push(...verdict.belowRows.map((row) => ({ ...row, at: now })))
  }
  return { reported: Object.fromEntries(reported), refused }
}

test.each([1, 2, 3])('no run of an honest month is refused, and what happens in mass is reported: feed %i', (seed) => {
  const { reported, refused } = play(seed, 2500)
  expect(refused).toEqual([])
  expect(reported).toEqual({ releaseEnded: 1, severityLowered: 1 })
})

/** Plays a month of images: a tenth of the tags is built again each day, and all of them on two days. */
function playImages(seed: number, tags: number, share: number) {
  const random = createRandom(seed)
  const open = Array.from({ length: tags }, () => 10 + random(90))
  const kinds = new Set<string>()
  const refused: string[] = []
  let ledger: (LedgerRow & { at: number })[] = []
  let names = 0
  for (let day = 0; day < 28; day++) {
    const now = Date.UTC(2026, 0, 1) + day * DAY
    const total = open.reduce((sum, one) => sum + one, 0)
    const count = createDoubtCount({
      ...standardOf(0),
      totalOf: (kind) => (kind === 'tagsCleared' ? tags : total),
      earlier: (kind) => ledger.filter((row) => row.kind === kind && row.at > now - 7 * DAY),
    })
    const note = (kind: Doubt, name: string) => count.note({ kind, name, content: '', because: '', packages: [] })
    const isBase = day === 9 || day === 23
    for (const [tag, findings] of open.entries()) {
      if (!isBase && random(10) > 0) continue
      const lost = Math.floor((findings * random(isBase ? share * 100 : 20)) / 100)
      for (let at = 0; at < lost; at++) note('findingsReplaced', `${names++}`)
      if (isCleared(lost, findings)) note('tagsCleared', `${tag}`)
      open[tag] = findings - lost + random(8)
    }
    const { refusal, doubted, belowRows } = count.verdict()
    if (refusal !== null) refused.push(`day ${day}: ${refusal}`)
    for (const kind of Object.keys(doubted)) kinds.add(kind)
    ledger = ledger.filter(({ kind }) => !(kind in doubted))
    ledger.push(...belowRows.map((row) => ({ ...row, at: now })))
  }
  return { kinds: [...kinds], refused }
}

test.each([1, 2, 3])('no run of an honest month of images is refused or reported: service %i', (seed) => {
  for (const tags of [3, 60, 400]) expect(playImages(seed, tags, 0.5)).toEqual({ kinds: [], refused: [] })
})

test('images of most tags that lose nearly all findings at once are refused, of a few tags reported', () => {
  expect(playImages(1, 60, 1.6).refused).not.toEqual([])
  expect(playImages(1, 5, 3).kinds).toContain('findingsReplaced')
})
