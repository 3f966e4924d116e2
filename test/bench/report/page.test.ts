import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Options, atLeast, atMost, defineGroup, neverOver, ratio } from './group.ts'
import { seconds } from './figures.ts'
import { sectionText, writePage } from './page.ts'
import { isMet, markdown } from './table.ts'

const OPTIONS: Options = { runs: 3, size: (full) => full / 10, seconds: (full) => full }
const TAKEN = { date: '2026-11-22', commit: 'abc1234', runs: 3, machine: 'a machine' }

/** A group whose runs take 300, 100 and 200 ms against 100 ms. */
function groupOf(name: string, factor = 1) {
  const times = [300, 100, 200]
  return defineGroup({
    name,
    about: `what ${name} is`,
    prepare: () => Promise.resolve({ close: () => Promise.resolve() }),
    run: (_, __, number) => Promise.resolve({ ms: factor * (times[number] ?? 0) }),
    lines: ({ size }) => [
      {
        work: `${size(100)} of it`,
        against: 'a loop',
        unit: '×',
        goal: atMost(2),
        measure: ({ ms }: { ms: number }) => ratio(ms, 100, seconds),
      },
      { work: 'what only another machine can do', unit: 'MB', measure: () => null },
    ],
  })
}

function page(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-page-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return join(dir, 'page.md')
}

test('a line has minimum, median and maximum of its runs, and what the median was made of', async () => {
  const { lines } = await groupOf('one').measure(OPTIONS)
  expect(markdown(lines).split('\n').slice(2)).toEqual([
    '| 10 of it | a loop | 1.00× | 2.00× | 3.00× | ≤ 2× | met | 0.20 s to 0.10 s |',
    '| what only another machine can do |  |  | not measured |  | figure |  |  |',
  ])
})

test('one run gives one value', async () => {
  const { lines } = await groupOf('one').measure({ ...OPTIONS, runs: 1 })
  expect(markdown(lines)).toContain('|  | 3.00× |  | ≤ 2× | **missed** |')
})

test('a goal is judged by the median or by the worst run, and by the limit of the run', () => {
  const values = [1, 2, 9].map((value) => ({ value }))
  expect(isMet(atMost(2), values)).toBe(true)
  expect(isMet(neverOver(2), values)).toBe(false)
  expect(isMet(atLeast(3), values)).toBe(false)
  expect(isMet(atMost(1), [{ value: 7, limit: 8 }])).toBe(true)
})

test('a group that is measured by itself replaces its own lines, and nothing else on the page', async () => {
  const file = page()
  writeFileSync(file, '## Notes\n\nBy hand.\n')
  const one = groupOf('one')
  const two = groupOf('two')
  const again = groupOf('two', 2)
  for (const group of [two, one]) writePage(file, await group.measure(OPTIONS), TAKEN, ['one', 'two'])
  const before = readFileSync(file, 'utf8')
  writePage(file, await again.measure(OPTIONS), { ...TAKEN, date: '2026-12-01' }, ['one', 'two'])
  const after = readFileSync(file, 'utf8')
  expect(after).toContain('| one | 2026-11-22 | abc1234 | 3 | a machine |')
  expect(after).toContain('| two | 2026-12-01 | abc1234 | 3 | a machine |')
  expect(after).toContain(sectionText(await one.measure(OPTIONS)))
  expect(after).toContain('| 2.00× | 4.00× | 6.00× |')
  expect(after.split('### ').length).toBe(before.split('### ').length)
  expect(after.endsWith('\n## Notes\n\nBy hand.\n')).toBe(true)
  expect(after.indexOf('### one')).toBeLessThan(after.indexOf('### two'))
})
