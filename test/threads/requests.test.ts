import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createRequestThread } from '../../src/threads/requests.ts'

test('requests whose clients are gone leave their places in the queue to others', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-requests-'))
  const file = join(dir, 'silent.mjs')
  writeFileSync(
    file,
    "import { parentPort } from 'node:worker_threads'\nparentPort.on('message', () => {})\n",
  )
  const options = { file: pathToFileURL(file), data: {}, maxWaiting: 2, what: 'SBOMs' }
  const thread = createRequestThread<number, number>(options)
  onTestFinished(async () => {
    await thread.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const here = (): boolean => false
  const state = { isGone: false }
  const closed = [thread.ask(0, here), thread.ask(1, here)] // the first is worked on, for ever
  const gone = thread.ask(2, () => state.isGone)
  await expect(thread.ask(3, here)).rejects.toMatchObject({ code: 'not_ready' })
  state.isGone = true
  closed.push(thread.ask(4, here))
  expect(await gone).toBeNull()
  const ends = Promise.allSettled(closed)
  await thread.close()
  const aborted = { status: 'rejected', reason: { code: 'aborted' } }
  expect(await ends).toMatchObject([aborted, aborted, aborted])
})
