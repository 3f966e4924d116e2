import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { commandHost } from '../../support/hosted.ts'

const run = commandHost()
let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-relay-'))
})

afterEach(() => rmSync(dir, { recursive: true }))

function addTarget(id: number, state: string, givenUp = 0): void {
  const db = openInbox(dir)
  db.prepare(
    'INSERT INTO relay_target (id, url, state, since, failures, due_at, given_up) VALUES (?, ?, ?, 1, 0, 0, ?)',
  ).run(id, `https://example.com/${id}`, state, givenUp)
  db.close()
}

test.each([
  ['disabled', 'is enabled: it gets the events from now on'],
  ['failing', 'was not disabled: what waits for it is sent again at once'],
  ['ok', 'was not disabled: nothing was changed'],
])('relay --enable says of a target that is %s what it did', async (state, said) => {
  addTarget(4, state)
  const enable = (...more: string[]) => run(['relay', '--enable', '4', ...more], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(await enable()).toMatchObject({ code: 0, out: `target 4 ${said}\n` })
  const { out } = await enable('--json')
  expect(JSON.parse(out)).toMatchObject({ id: 4, enabled: true })
  const [{ target }] = JSON.parse((await run(['relay', '--json'], { PATCHMIRROR_DATA_DIR: dir }, dir)).out) as [
    { target: string },
  ]
  const named = await run(['relay', '--enable', target], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect([named.code, named.out]).toEqual([0, expect.stringMatching(/^target 4 was not disabled/)])
})

longTest('relay --enable and status say how many events a disabled target did not get', async () => {
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}' })
  store.close()
  addTarget(4, 'disabled', 3)
  const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:9' }
  expect((await run(['status'], env, dir)).out).toContain('0 events wait, 3 events were given up')
  const { out } = await run(['relay', '--enable', '4'], env, dir)
  expect(out).toBe('target 4 is enabled: it gets the events from now on; given up: 3 events\n')
})

test('relay --enable names the command that lists the targets where there is none', async () => {
  const { code, err } = await run(['relay', '--enable', '9'], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(code).toBe(1)
  expect(err).toContain('patchmirror relay')
})

test('relay without any target says whether the settings have one', async () => {
  const env = { PATCHMIRROR_DATA_DIR: dir }
  const relay = (targets: object) => run(['relay'], { ...env, ...targets }, dir)
  expect((await relay({})).out).toContain('set relay.targets')
  const { out } = await relay({ PATCHMIRROR_RELAY_TARGETS: 'ci=https://example.com/token' })
  expect(out).toContain('the daemon has not run with relay.targets')
  expect(out).not.toContain('token')
})

test('a target is listed and enabled by its name, or by a host that is its alone, and no token is shown', async () => {
  for (const id of [1, 2, 3]) addTarget(id, 'failing')
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_RELAY_TARGETS: 'ci=https://example.com/1,chat+https://example.com/2',
  }
  const rows = JSON.parse((await run(['relay', '--json'], env, dir)).out) as object[]
  expect(rows).toMatchObject([
    { id: 1, name: 'ci', kind: 'standard' },
    { id: 2, name: null, kind: 'chat' },
    { id: 3, name: null, kind: null },
  ])
  const { out } = await run(['relay'], env, dir)
  expect(out).toMatch(/^1 +ci +https:\/\/example\.com +standard +failing/m)
  expect(out).toMatch(/^2 +example\.com +https:\/\/example\.com +chat +failing/m)
  expect(out).not.toMatch(/example\.com\/\d/)
  expect(await run(['relay', '--enable', 'ci'], env, dir)).toMatchObject({
    code: 0,
    out: 'target ci was not disabled: what waits for it is sent again at once\n',
  })
  const several = await run(['relay', '--enable', 'example.com'], env, dir)
  expect([several.code, several.err]).toEqual([2, expect.stringContaining('give the id of one: 2, 3')])
  const alone = { ...env, PATCHMIRROR_RELAY_TARGETS: 'ci=https://example.com/1,b=https://example.com/2' }
  expect((await run(['relay', '--enable', 'example.com'], alone, dir)).out).toMatch(/^target 3 /)
})
