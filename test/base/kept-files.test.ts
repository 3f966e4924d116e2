import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keepFiles, readKeptFile, useKeptFiles } from '../../src/base/kept-files.ts'

test('a thread reads what a file had when it was kept, and any other as it is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-kept-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  onTestFinished(() => useKeptFiles({}))
  const kept = join(dir, 'kept')
  const other = join(dir, 'other')
  const missing = join(dir, 'missing')
  writeFileSync(kept, 'before')
  writeFileSync(other, 'before')
  const files = structuredClone(keepFiles([kept, missing, null]))
  for (const path of [kept, other, missing]) writeFileSync(path, 'after')
  expect(readKeptFile(kept).toString()).toBe('after')
  useKeptFiles(files)
  const found = [kept, other, missing].map((path) => readKeptFile(path).toString())
  expect(found).toEqual(['before', 'after', 'after'])
  rmSync(kept)
  rmSync(other)
  expect(readKeptFile(kept).toString()).toBe('before')
  expect(() => readKeptFile(other)).toThrow('ENOENT')
})
