import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { inTurn } from '../../src/cli/own-turn.ts'
import { loadQuick } from '../support/limits.ts'
import { acquireLock, announceAddress, announceInstance } from '../../src/store/database/lock.ts'
import { createOrigin } from '../support/origin.ts'

/** Work that needs the lock of runs. */
function lockAndRelease(dir: string): Promise<void> {
  return Promise.resolve().then(() => acquireLock(dir, 'sync').release())
}

/** A data folder that this process serves, with settings of a fleet or without. */
function served(fleet: boolean) {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-turn-'))
  const lock = acquireLock(dir, 'serve')
  onTestFinished(() => {
    lock.release()
    rmSync(dir, { recursive: true, force: true })
  })
  const { config: loaded } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  const url = fleet ? `file://${dir}/store` : null
  const config = { ...loaded, fleet: { ...loaded.fleet, url } }
  const said: string[] = []
  const ending = new AbortController()
  const readSnapshot = () => ({ id: 'b' }) as never
  const wait = {
    config,
    store: { snapshots: { readSnapshot } } as never,
    signal: ending.signal,
    say: (text: string) => void said.push(text),
  }
  return { dir, wait, said, ending }
}

test('a run of a command waits while the daemon is in a run, and says so once', async () => {
  const { dir, wait, said } = served(false)
  const busy = acquireLock(dir, 'sync')
  const say = (text: string): void => {
    said.push(text)
    busy.release()
  }
  await inTurn({ ...wait, say }, false, () => lockAndRelease(dir))
  expect(said).toEqual([expect.stringContaining('the daemon of this data folder is in a run')])
})

test('a run of a command ends while it waits, when it is stopped', async () => {
  const { dir, wait, ending } = served(false)
  const busy = acquireLock(dir, 'sync')
  onTestFinished(() => busy.release())
  const say = (): void => ending.abort()
  const run = inTurn({ ...wait, say }, false, () => lockAndRelease(dir))
  await expect(run).rejects.toMatchObject({ code: 'aborted' })
})

longTest.each([
  ['what is held back', { holdingBackSince: '2026-01-01T00:00:00Z' }, 'b'],
  ['what the daemon has not seen', { holdingBackSince: null }, 'a'],
])('a run of a command beside the leader of a fleet waits until the fleet serves %s', async (_what, held, before) => {
  const { dir, wait, said } = served(true)
  const instance = announceInstance(dir)
  let isActive = false
  const { url, requests } = await createOrigin((_request, response) => {
    if (requests.length > 2) isActive = true
    const fleet = { leads: true, ...(isActive ? { holdingBackSince: null } : held) }
    const sources = [{ name: 'osv', served: isActive ? 'b' : before }]
    response.end(JSON.stringify({ version: '1', instance, fleet, sources }))
  })
  announceAddress(dir, instance, { port: Number(new URL(url).port) })
  expect(await inTurn(wait, true, () => Promise.resolve(isActive))).toBe(true)
  expect(said).toEqual([expect.stringContaining('waits for the activation')])
  await inTurn(wait, false, () => Promise.resolve(expect(said).toHaveLength(1))) // it publishes nothing
})
