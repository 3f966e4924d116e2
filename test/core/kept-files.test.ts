import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { keepFiles, readKeptFile } from '../../src/core/kept-files.ts'

/** What a thread reads that is started now. */
async function readInThread(path: string): Promise<string> {
  const url = new URL('../../src/core/kept-files.ts', import.meta.url).href
  const source = `
    import { parentPort, workerData } from 'node:worker_threads'
    import { readKeptFile } from ${JSON.stringify(url)}
    try {
      parentPort.postMessage(readKeptFile(workerData).toString())
    } catch (error) {
      parentPort.postMessage(error.code)
    }`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), { workerData: path }) // prettier-ignore
  const answer = await new Promise<string>((resolve) => worker.once('message', resolve))
  await worker.terminate()
  return answer
}

test('a thread reads what a file had when it was kept, the main thread what it has', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-kept-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const [kept, other, missing] = ['kept', 'other', 'missing'].map((name) => join(dir, name))
  if (kept === undefined || other === undefined || missing === undefined) throw new Error('no path')
  writeFileSync(kept, 'before')
  writeFileSync(other, 'before')
  keepFiles([kept, missing])
  for (const path of [kept, other, missing]) writeFileSync(path, 'after')
  expect(readKeptFile(kept).toString()).toBe('after')
  expect(await readInThread(kept)).toBe('before')
  expect(await readInThread(other)).toBe('after')
  expect(await readInThread(missing)).toBe('after')
  rmSync(kept)
  rmSync(other)
  expect(await readInThread(kept)).toBe('before')
  expect(await readInThread(other)).toBe('ENOENT')
})
