import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openInbox } from '../../../src/store/database/open.ts'
import { commandHost } from '../../support/hosted.ts'

const run = commandHost()
let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-relay-'))
})

afterEach(() => rmSync(dir, { recursive: true }))

function addTarget(id: number, state: string): void {
  const db = openInbox(dir)
  db.prepare(
    'INSERT INTO relay_target (id, url, state, since, failures, due_at, given_up) VALUES (?, ?, ?, 1, 0, 0, 0)',
  ).run(id, `https://example.com/${id}`, state)
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

test('relay --enable names the command that lists the targets where there is none', async () => {
  const { code, err } = await run(['relay', '--enable', '9'], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(code).toBe(1)
  expect(err).toContain('patchmirror relay')
})
