import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openInbox } from '../../../src/store/database/open.ts'
import { removeFindings } from '../../../src/store/findings/database.ts'
import { NOW } from '../../store/fixtures.ts'
import { beginFindings, logFindings } from './findings-log.ts'
import { type RelayBench, type Target, bench, target } from './targets.ts'

const EVENTS = ['findings', 'snapshot']

/** The tags have been judged again. */
async function judged(made: RelayBench): Promise<void> {
  made.relay.judged()
  made.relay.tick()
  await made.relay.idle()
}

/** A relay of changed findings that has begun with a first judgement. */
async function begun(to: Target): Promise<RelayBench & { log: string }> {
  const made = bench({ targets: [to.url], events: EVENTS })
  const log = beginFindings(made.dir)
  await judged(made)
  return { ...made, log }
}

const dataOf = ({ got }: Target) =>
  got.map(({ body }) => (JSON.parse(String(body)) as { data: { snapshot: string } }).data)
const snapshotsOf = (to: Target): string[] => dataOf(to).map(({ snapshot }) => snapshot)

describe('changed findings of tags', () => {
  test('are sent as one signed event for each snapshot that caused them, with tags and numbers', async () => {
    const to = await target()
    const made = await begun(to)
    logFindings(made.dir, 's1', ['library/python:3.12', 'library/node:22'])
    logFindings(made.dir, 's2', ['library/node:22'])
    logFindings(made.dir, 'c1', ['library/go:1'], { cause: 'sbom', found: 2, fixes: 0 })
    await judged(made)
    await judged(made)
    expect(to.got.map(({ signed }) => signed)).toEqual([true, true, true])
    expect(new Set(snapshotsOf(to))).toEqual(new Set(['s1', 's2', 'c1']))
    const first = to.got.find(({ id }) => id.endsWith('_1-2'))
    expect(first?.id).toMatch(new RegExp(`^pm_[0-9a-f]{16}_tags_${made.log}_1-2$`))
    expect(JSON.parse(String(first?.body))).toMatchObject({
      specversion: '1.0',
      id: first?.id,
      subject: 'tags',
      type: 'io.patchmirror.findings.changed.v1',
      time: new Date(NOW).toISOString(),
      data: {
        cause: 'records',
        snapshot: 's1',
        tags: 2,
        newFixes: 2,
        newFindings: 0,
        more: false,
        after: `${made.log}-0`,
        position: `${made.log}-2`,
        changes: [{ tag: { id: 'tag-library/python:3.12', name: 'library/python:3.12' } }, {}],
      },
    })
    const last = to.got.find(({ id }) => id.endsWith('_4-4'))
    expect(JSON.parse(String(last?.body))).toMatchObject({
      data: { cause: 'sbom', snapshot: 'c1', tags: 1, newFindings: 2 },
    })
  })

  test('of hundreds of tags are one event of a bounded size that names the first', async () => {
    const to = await target()
    const made = await begun(to)
    logFindings(
      made.dir,
      's1',
      Array.from({ length: 450 }, (_, at) => `library/python:${at}`),
    )
    await judged(made)
    const [data] = dataOf(to)
    expect(data).toMatchObject({ tags: 450, newFixes: 450, more: true })
    expect(data).toMatchObject({ changes: { length: 50 }, position: `${made.log}-450` })
    const long = ['fix', 'CVE-2026-1', 'n'.repeat(30_000), '1', 1, ''] as const
    logFindings(made.dir, 's2', ['a', 'b', 'c'], { details: [long] })
    await judged(made)
    expect(dataOf(to)[1]).toMatchObject({ tags: 3, changes: { length: 2 }, more: true })
  })

  test('are not sent unless the settings name them, and nothing from before is sent once they do', async () => {
    const to = await target()
    const made = bench({ targets: [to.url] })
    beginFindings(made.dir)
    await judged(made)
    logFindings(made.dir, 's1', ['a'])
    await judged(made)
    const named = await made.restart({ events: EVENTS })
    logFindings(made.dir, 's3', ['c'])
    await named.round()
    expect(to.got).toHaveLength(0)
    logFindings(made.dir, 's4', ['d'])
    await judged(named)
    expect(snapshotsOf(to)).toEqual(['s4'])
    const without = await named.restart({ events: ['snapshot'] })
    await without.round()
    logFindings(made.dir, 's5', ['e'])
    const again = await without.restart({ events: EVENTS })
    await judged(again)
    expect(snapshotsOf(to)).toEqual(['s4'])
  })

  test('from before a target was added are sent to the earlier targets alone', async () => {
    const [there, comes] = await Promise.all([target(), target()])
    const made = await begun(there)
    logFindings(made.dir, 's1', ['a'])
    const again = await made.restart({ targets: [there.url, comes.url] })
    await again.round()
    logFindings(made.dir, 's2', ['a'])
    await judged(again)
    expect([snapshotsOf(there), snapshotsOf(comes)]).toEqual([['s1', 's2'], ['s2']])
  })

  test('that were logged while the relay was stopped are sent after its start, under the same id each time', async () => {
    const to = await target(500)
    const made = await begun(to)
    logFindings(made.dir, 's1', ['a'])
    const again = await made.restart()
    await again.round()
    const last = await again.restart()
    to.manner = 204
    last.pass(60_000)
    await last.round()
    await judged(last)
    expect([to.got.length, new Set(to.ids()).size]).toEqual([2, 1])
  })

  test('are sent once they are served, none of them lost, also to a target that was added meanwhile', async () => {
    const [there, comes] = await Promise.all([target(), target()])
    const made = await begun(there)
    made.serveFindings(false)
    logFindings(made.dir, 's1', ['a'])
    await judged(made)
    const again = await made.restart({ targets: [there.url, comes.url] })
    again.serveFindings(false)
    await judged(again)
    const opened = again.looks()
    logFindings(made.dir, 's2', ['b'])
    again.relay.tick()
    await again.relay.idle()
    expect([snapshotsOf(there), snapshotsOf(comes), again.looks()]).toEqual([[], [], opened])
    again.serveFindings(true)
    again.relay.tick()
    await again.relay.idle()
    expect([snapshotsOf(there).sort(), snapshotsOf(comes)]).toEqual([['s1', 's2'], ['s2']])
  })

  test('are announced neither twice nor from before where their database is made again', async () => {
    const to = await target()
    const made = await begun(to)
    logFindings(made.dir, 's1', ['a', 'b', 'c'])
    await judged(made)
    const log = beginFindings(made.dir)
    logFindings(made.dir, 's2', ['a'])
    await judged(made)
    logFindings(made.dir, 's3', ['a'])
    await judged(made)
    expect(snapshotsOf(to)).toEqual(['s1', 's3'])
    expect(to.ids()[1]).toContain(`_tags_${log}_2-2`)
  })

  test('are in the outbox together with the position, or not at all', async () => {
    const to = await target()
    const made = await begun(to)
    const db = openInbox(made.dir)
    db.exec(`CREATE TRIGGER fails BEFORE INSERT ON relay_findings BEGIN
      SELECT RAISE(ABORT, 'no position'); END`)
    logFindings(made.dir, 's1', ['a'])
    await judged(made)
    expect([to.got.length, made.outbox.lastEvent()]).toEqual([0, 0])
    expect(made.faults.join()).toContain('no position')
    db.exec('DROP TRIGGER fails')
    db.close()
    made.pass(30_000)
    await made.round()
    expect(snapshotsOf(to)).toEqual(['s1'])
  })
})

describe('a relay whose findings', () => {
  test('are not there, or are damaged, sends all else', async () => {
    const to = await target()
    const made = await begun(to)
    const path = join(made.dir, 'derived', 'findings.db')
    for (const spoil of [() => undefined, () => writeFileSync(path, 'damaged'.repeat(999))]) {
      removeFindings(made.dir)
      spoil()
      await judged(made)
    }
    await made.publish('s1', ['a'])
    await made.round()
    expect([snapshotsOf(to), made.faults]).toEqual([['s1'], []])
  })

  test('cannot be read says so, sends all else, and tries again', async () => {
    const to = await target()
    const made = await begun(to)
    const path = join(made.dir, 'derived', 'findings.db')
    removeFindings(made.dir)
    mkdirSync(path)
    await judged(made)
    expect(made.faults.join()).toMatch(/findings of tags/)
    await made.publish('s1', ['a'])
    await made.round()
    expect(snapshotsOf(to)).toEqual(['s1'])
  })

  test('do not change does not open them', async () => {
    const to = await target()
    const made = await begun(to)
    const before = made.looks()
    made.pass(120_000)
    await made.round()
    await made.publish('s1', ['a'])
    await made.round()
    expect([to.got.length, made.looks()]).toEqual([1, before])
  })
})
