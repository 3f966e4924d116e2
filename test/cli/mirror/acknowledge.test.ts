import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import type { Status } from '../../../src/base/reports/status.ts'
import { operatorName } from '../../../src/base/domain/run-facts.ts'
import { scratch } from '../../config/loading.ts'
import { commandHost } from '../../support/hosted.ts'
import type { Finished } from '../../support/command.ts'
import { attack } from '../../sync/osv/attacks.ts'
import { synced } from '../../sync/fixtures.ts'

const run = commandHost()
const WARNING = 'changes were published that should not be believed'

/** A mirror whose last run but one published lowered fixes, and its commands. */
async function doubtful() {
  const made = await synced({ env: { PATCHMIRROR_GUARD_MODE: 'warn' } })
  attack(made)
  const { id, snapshot, message, facts } = await made.run('osv')
  await made.run('osv')
  const command = (...args: string[]): Promise<Finished> => run(args, { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  const osv = async () => {
    const { sources } = JSON.parse((await command('status', '--json')).out) as Status
    return sources.find(({ name }) => name === 'osv')
  }
  const listed = facts['doubtfulIds'] as string[]
  return { made, command, osv, id, snapshot, message, doubts: Number(facts['doubts']), listed }
}

longTest('a doubtful run is in the status, with the records that it names, until it is approved', async () => {
  const { made, command, osv, id, snapshot, message, doubts, listed } = await doubtful()
  const { doubtful: shown } = (await osv()) ?? {}
  expect(shown).toMatchObject({ run: id, snapshot, message })
  const [kind, ...more] = shown?.kinds ?? []
  expect(more).toEqual([])
  expect(kind).toMatchObject({ kind: 'affectedLost', records: doubts })
  expect(kind?.ids).toEqual(listed.map((line) => line.replace(/: .*/s, '')))
  expect((await command('status')).out).toContain(`patchmirror runs ${id} | patchmirror approve ${id}`)
  const done = await command('approve', String(id))
  expect(done).toMatchObject({
    code: 0,
    out: expect.stringContaining(`run ${id} approved, its warning ends`) as string,
  })
  expect((await osv())?.doubtful).toBe(null)
  expect((await command('status')).out).not.toContain(WARNING)
  const by = operatorName({})
  expect(JSON.parse((await command('runs', String(id), '--json')).out)).toMatchObject({
    facts: { decision: 'acknowledged', decidedBy: by, doubts },
  })
  expect((await command('approve', String(id))).out).toContain('approved already: its warning has ended')
  const json = await command('approve', String(id), '--json')
  expect(JSON.parse(json.out)).toEqual({ run: id, decision: 'acknowledged', message })
  const { out } = await command('changes', '--since', '1')
  expect(out).toContain(`(affectedLost, run ${id})`) // what was published stays doubtful
  await made.close()
})

test('an approval of a run that waits for none says so, and creates no database', async () => {
  const made = await synced()
  const command = (...args: string[]): Promise<Finished> =>
    run(
      ['approve', ...args],
      { PATCHMIRROR_DATA_DIR: made.dir, PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1' },
      '/',
    )
  for (const [given, exit, why] of [
    ['1', 1, 'run 1 is complete: nothing of it waits for a decision; nothing else waits either\n'],
    ['999', 1, 'there is no run 999: "patchmirror runs" lists them'],
    ['x', 2, 'x is not a run number'],
    ['1e0', 2, '1e0 is not a run number'],
  ] as const)
    expect([given, await command(given)]).toMatchObject([
      given,
      { code: exit, err: expect.stringContaining(why) as string },
    ])
  const dir = scratch()
  const { code, err } = await run(
    ['approve', '1'],
    { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1' },
    '/',
  )
  expect([code, err]).toEqual([1, expect.stringContaining('there is no run 1: nothing has run')])
  expect(existsSync(join(dir, 'mirror.db'))).toBe(false)
})
