import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import {
  type FindingsBench,
  affecting,
  componentsOf,
  openFindingsBench,
  vexAbout,
} from '../features/findings/fixtures.ts'
import { judgeKilled } from '../features/findings/killing.ts'
import { type Dice, createDice } from '../support/dice.ts'
import { withFindings } from '../../src/store/findings/database.ts'
import { createFindingsReads } from '../../src/store/findings/reads.ts'

/** Tags and their SBOMs of the service. */
const SERVICE = { images: 4, tags: 12 }
const NEVER = { statement: Infinity, running: true }
const ROUNDS = 14
const NOW = Date.UTC(2026, 4, 2)

/** What a data folder says of its tags, up to where they are judged, and all that was logged. */
function stateOf(dir: string) {
  return withFindings(dir, (db) => {
    const reads = createFindingsReads(db)
    return { state: reads.readState(), tags: reads.listTags('', '', 1000), log: reads.listLog(0, 100_000) }
  })
}

const logOf = (dir: string) => stateOf(dir)?.log ?? []

/** Judges a copy of a mirror without a kill: its log, and how many statements that takes. */
async function uninterrupted(dir: string, now: number) {
  const copy = mkdtempSync(join(tmpdir(), 'patchmirror-findings-'))
  try {
    cpSync(dir, copy, { recursive: true })
    const statements = await judgeKilled(copy, now, NEVER)
    return { log: logOf(copy), statements: statements ?? 0 }
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/**
 * Kills so many judgements, each at another place, until one ends before. The log never loses what it had, nor does it have
 * anything that one without a kill has not. Returns the log of that one, and how many of the kills left a part of the work.
 */
async function killSome({ dir }: FindingsBench, now: number, kills: number, dice: Dice) {
  const whole = await uninterrupted(dir, now)
  let before = stateOf(dir)
  let parts = 0
  for (let kill = 0; kill < kills; kill++) {
    const place = { statement: 1 + dice(whole.statements / 8), running: dice(4) === 0 }
    if ((await judgeKilled(dir, now, place)) !== null) break
    const after = stateOf(dir)
    const seen = before?.log ?? []
    const log = after?.log ?? []
    expect(log.slice(0, seen.length)).toEqual(seen)
    expect(whole.log.slice(0, log.length)).toEqual(log)
    if (!isDeepStrictEqual(after, before)) parts++
    before = after
  }
  return { log: whole.log, parts }
}

/** The packages of the tags as they are judged now. */
function packagesOf({ dir }: FindingsBench) {
  const [one, ...others] = componentsOf(dir)
  if (one === undefined) throw new Error('no component')
  return [one, ...others] as const
}

test('a first judgement that is killed again and again announces nothing and ends with all tags judged', async () => {
  const bench = await openFindingsBench(SERVICE, onTestFinished, 'warn')
  const { dir } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const { ecosystem, name } = packagesOf(bench)[0]
  await bench.publish({ 'T-0': affecting(ecosystem, name, null) })
  rmSync(join(dir, 'derived', 'findings.db'))
  const { parts } = await killSome(bench, NOW, 20, createDice(3))
  expect(parts).toBeGreaterThan(2)
  await judgeKilled(dir, NOW, NEVER)
  expect(logOf(dir)).toEqual([])
  const known = bench.known()
  expect(known).toEqual(await bench.fresh())
  expect(known.rows.some((row) => row.includes('T-0'))).toBe(true)
})

test('updates that are killed announce each change once, and end as a judgement from the beginning', async () => {
  const bench = await openFindingsBench(SERVICE, onTestFinished, 'warn')
  const { dir } = bench
  const dice = createDice(11)
  await bench.crawl()
  await bench.publish({})
  await bench.judge(NOW)
  let parts = 0
  for (let round = 1; round <= ROUNDS; round++) {
    await changeSome(bench, round, dice)
    const now = NOW + round * 1000
    const killed = await killSome(bench, now, 8, dice)
    parts += killed.parts
    if (round % 3 === 1) continue // the next changes come before it is complete
    await judgeKilled(dir, now, NEVER)
    expect(logOf(dir)).toEqual(killed.log)
    const known = bench.known()
    expect(known).toEqual(await bench.fresh())
    expect(known.unused).toBe(0)
  }
  expect(parts).toBeGreaterThan(5)
  expect(logOf(dir).length).toBeGreaterThan(10)
  const causes = new Set(logOf(dir).map(({ cause }) => cause))
  expect([...causes].sort()).toEqual(['patches', 'records', 'sbom', 'vex'])
})

const cveOf = (id: number): string => `CVE-2026-7700${id}`

/** Has VEX of some tag, and the list of patches, say something about a package of all tags. */
function stateSome(
  { dir, sandbox: { service } }: FindingsBench,
  id: number,
  { ecosystem, name }: { ecosystem: string; name: string },
  dice: Dice,
): void {
  const named = componentsOf(dir).filter((one) => one.ecosystem === ecosystem && one.name === name)
  const products = named.map(({ packages }) => ({ '@id': (JSON.parse(packages) as string[][])[0]?.[0] }))
  const tags = service.ids('tags').filter((tag) => service.documents('tag', tag, 'vex').length > 0)
  const tag = tags[dice(tags.length)] ?? ''
  const status = dice(4) === 0 ? 'affected' : 'not_affected'
  service.writeArtifact('tag', tag, 'vex', vexAbout(cveOf(id), products, status))
  const tickets = service.ids('tickets')
  const about = { cve_id: cveOf(id), ecosystem: ecosystem.split(':')[0], package_src_name: name }
  const ticket = { ...about, ticket_status: dice(3) === 0 ? 'open' : 'done' }
  service.change('tickets', tickets[dice(tickets.length)] ?? '', ticket)
}

/** Changes records about packages of the tags, SBOMs, VEX and patches, and the list of tags now and then. */
async function changeSome(bench: FindingsBench, round: number, dice: Dice): Promise<void> {
  const { service } = bench.sandbox
  const packages = packagesOf(bench)
  const records: Record<string, object> = {}
  for (let n = 0; n < 3; n++) {
    const { ecosystem, name } = packages[dice(packages.length)] ?? packages[0]
    const id = dice(6)
    const record = affecting(ecosystem, name, dice(2) === 0 ? null : '99999.0')
    records[`T-${id}`] = { ...record, aliases: [cveOf(id)] }
    stateSome(bench, id, { ecosystem, name }, dice)
  }
  await bench.publish(records)
  const tags = service.ids('tags')
  for (let n = 0; n < 3; n++) service.rotateArtifact('tag', tags[dice(tags.length)] ?? '', 'sbom')
  if (round === 4) service.remove('tags', tags[0] ?? '')
  if (round === 6) service.addTag()
  await bench.crawl()
}
