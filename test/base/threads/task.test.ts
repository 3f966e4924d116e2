import { expect, test } from 'vitest'
import { startTask } from '../../../src/base/threads/task.ts'

const TASK = new URL('../../../src/base/threads/task.ts', import.meta.url).href
const ERRORS = new URL('../../../src/base/errors.ts', import.meta.url).href

/** The entry of a worker whose task ends with what this expression makes. */
const failing = (error: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { readFileSync } from 'node:fs'
      import { answerTask } from ${JSON.stringify(TASK)}
      import { MirrorError } from ${JSON.stringify(ERRORS)}
      answerTask(async () => { throw ${error} })`)}`,
  )

test.each([
  [`Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })`, 'EIO', 'EIO: i/o error, read'],
  [`Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })`, 'SQLITE_IOERR', 'disk I/O error'],
  [`new MirrorError('storage', 'it is full')`, 'storage', 'it is full'],
  [`new Error('a defect')`, undefined, 'a defect'],
])('an error of a task keeps its name and its words: %s', async (error, code, message) => {
  const { result } = startTask({ file: failing(error), data: null })
  const thrown: unknown = await result.catch((reason: unknown) => reason)
  expect(thrown).toMatchObject({ message })
  expect((thrown as { code?: string }).code).toBe(code)
})
