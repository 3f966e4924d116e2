import { expect, test } from 'vitest'
import { createOsvScope, leavesOut, takesAllOf } from '../../../src/base/domain/osv-scope.ts'

const scope = (...entries: readonly string[]) => ({
  include: entries.filter((one) => !one.startsWith('!')),
  exclude: entries.filter((one) => one.startsWith('!')).map((one) => one.slice(1)),
  vendors: ['Root'],
})

test.each([
  [['npm'], 'npm', 'all'],
  [['npm'], 'Root:npm', 'all'],
  [['npm'], 'PyPI', 'none'],
  [['Ubuntu'], 'Ubuntu:22.04', 'all'],
  [['Ubuntu:22.04'], 'Ubuntu', 'part'],
  [['Ubuntu:22.04'], 'Ubuntu:24.04', 'none'],
  [['GHSA-'], 'npm', 'part'],
  [['GHSA-', 'PyPI'], 'npm', 'part'],
  [['!npm'], 'npm', 'none'],
  [['!npm'], 'PyPI', 'all'],
  [['!Ubuntu:22.04'], 'Ubuntu', 'part'],
  [['!MAL-'], 'npm', 'part'],
  [['npm', '!npm'], 'npm', 'none'],
  [['npm', '!PyPI'], 'npm', 'all'],
] as const)('the scope %j takes of %s: %s', (entries, ecosystem, taken) => {
  const given = scope(...entries)
  expect([takesAllOf(given, ecosystem), leavesOut(given, ecosystem)]).toEqual([taken === 'all', taken === 'none'])
})

test.each([
  [{ purl: 'pkg:npm/a' }, true],
  [{ ecosystem: 'Root:NPM', name: 'a' }, true],
  [{ purl: 'pkg:pypi/a' }, false],
])('the scope npm takes a record of %j: %s', (named, expected) => {
  expect(createOsvScope(scope('npm'))?.includes('A-1', { affected: [{ package: named }] })).toBe(expected)
})
