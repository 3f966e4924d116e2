import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { whyNot } from './copy.ts'
import { MUTATIONS } from './list.ts'

test('each seeded defect replaces a text that its file has exactly once', () => {
  expect(MUTATIONS.flatMap((one) => whyNot(one) ?? [])).toEqual([])
  expect(MUTATIONS.length).toBeGreaterThanOrEqual(30)
})

test('each seeded defect has a name of its own, and tests that exist', () => {
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(MUTATIONS.length)
  const tests = MUTATIONS.flatMap((one) => one.tests)
  expect(tests.filter((path) => !existsSync(path))).toEqual([])
})
