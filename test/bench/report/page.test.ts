import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Options, atLeast, atMost, defineGroup, neverOver, ratio } from './group.ts'
import { GROUPS } from '../groups.ts'
import { seconds } from './figures.ts'
import { sectionText, writePage } from './page.ts'
import { isMet, markdown } from './table.ts'

const OPTIONS: Options = { runs: 3, size: (full) => full / 10, seconds: (full) => full }
const TAKEN = { runs: 3, machine: 'a machine' }

/** A group whose runs take 300, 100 and 200 ms against 100 ms. */
function groupOf(name: string, factor = 1) {
  const times = [300, 100, 200]
  return defineGroup({
    name,
    about: ({ size }) => `${size(100)} of ${name}.`,
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
      {
        work: `${size(100)} of it`,
        against: 'nothing',
        unit: 'ms',
        goal: neverOver(200),
        measure: ({ ms }: { ms: number }) => ms,
      },
      { work: 'what only another machine can do', unit: 'MB', goal: neverOver(1e6), measure: () => null },
    ],
  })
}

function page(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-page-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return join(dir, 'page.md')
}

test('a line has the median of its runs, the least and the most of them, and what the median was made of', async () => {
  const { lines } = await groupOf('one').measure(OPTIONS)
  expect(markdown(lines).split('\n').slice(2)).toEqual([
    '| 10 of it | a loop | 2.00× (1.00–3.00) | ≤ 2× | 0.20/0.10 s |',
    '|  | nothing | 200 ms (100–300) | ≤ 200 ms, **missed** |  |',
    '| what only another machine can do |  | not measured | ≤ 1 MB |  |',
  ])
})

test('one run gives one value', async () => {
  const { lines } = await groupOf('one').measure({ ...OPTIONS, runs: 1 })
  expect(markdown(lines)).toContain('| a loop | 3.00× | ≤ 2×, **missed** |')
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
  writePage(file, await again.measure(OPTIONS), { runs: 5, machine: 'another' }, ['one', 'two'])
  const after = readFileSync(file, 'utf8')
  expect(before).toContain('| one | 3 | a machine |\n| two | 3 |  |\n')
  expect(after).toContain('| one | 3 | a machine |\n| two | 5 | another |\n')
  expect(after).toContain('\n### one\n\n10 of one.\n\n| work |')
  expect(after).toContain(sectionText(await one.measure(OPTIONS)))
  expect(after).toContain('| 4.00× (2.00–6.00) |')
  expect(after.split('### ').length).toBe(before.split('### ').length)
  expect(after.endsWith('\n## Notes\n\nBy hand.\n')).toBe(true)
  expect(after.indexOf('### one')).toBeLessThan(after.indexOf('### two'))
})

test('the page has the lines of the bench under their names, with their goals', () => {
  const text = readFileSync('docs/benchmarks.md', 'utf8')
  const full: Options = { runs: 3, size: (all) => all, seconds: (all) => all }
  const named = (table: string): string[] =>
    [...table.matchAll(/^\| .*\|$/gm)].map(([line]) => {
      const [, work = '', against = '', , goal = ''] = line.split('|')
      return [work, against, goal.replace(', **missed**', '')].join('|')
    })
  for (const group of GROUPS) {
    const section = group.list(full)
    const [, own = ''] = text.split(`\n### ${section.name}\n`)
    const [first = ''] = own.slice(own.indexOf('\n|')).trim().split('\n\n')
    expect(named(first), section.name).toEqual(named(markdown(section.lines)))
    expect(own.startsWith(`\n${section.about}\n\n`), section.name).toBe(true)
  }
})
