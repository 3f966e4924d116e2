import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { type RequestThread, createRequestThread } from '../../../src/base/threads/requests.ts'

/** Starts a thread that never answers, with places for so many requests. */
function startSilent(maxWaiting: number): RequestThread<number, number> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-requests-'))
  const file = join(dir, 'silent.mjs')
  writeFileSync(file, "import { parentPort } from 'node:worker_threads'\nparentPort.on('message', () => {})\n")
  const options = { file: pathToFileURL(file), data: {}, maxWaiting, what: 'SBOMs' }
  const thread = createRequestThread<number, number>(options)
  onTestFinished(async () => {
    await thread.close()
    rmSync(dir, { recursive: true, force: true })
  })
  return thread
}

test('one address does not take all places: it gives the last ones up to others', async () => {
  const thread = startSilent(4)
  const refused: string[] = []
  const ask = (name: string, address: string | null): void => {
    const here = { isGone: () => false, address }
    thread.ask(0, here).catch((error: unknown) => {
      if (error instanceof MirrorError && error.code === 'not_ready') refused.push(name)
    })
  }
  for (const name of ['a0', 'a1', 'a2', 'a3', 'a4', 'a5']) ask(name, 'a') // the first is worked on
  for (const name of ['b1', 'b2', 'b3']) ask(name, 'b')
  ask('own', null)
  ask('c1', 'c')
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toEqual(['a5', 'a4', 'a3', 'b3', 'b2'])
})

test('requests whose clients are gone leave their places in the queue to others', async () => {
  const thread = startSilent(2)
  const here = { isGone: () => false, address: 'a' }
  const state = { isGone: false }
  const closed = [thread.ask(0, here), thread.ask(1, here)] // the first is worked on, for ever
  const gone = thread.ask(2, { ...here, isGone: () => state.isGone })
  await expect(thread.ask(3, here)).rejects.toMatchObject({ code: 'not_ready' })
  state.isGone = true
  closed.push(thread.ask(4, here))
  expect(await gone).toBeNull()
  const ends = Promise.allSettled(closed)
  await thread.close()
  const aborted = { status: 'rejected', reason: { code: 'aborted' } }
  expect(await ends).toMatchObject([aborted, aborted, aborted])
})
