import { describe, expect, test, vi } from 'vitest'
import { print, printJson, upstreamJson } from '../../src/cli/context.ts'
import { table, visibleLines, wrapped } from '../../src/cli/output.ts'
import { hasColor, movesCursor } from '../../src/base/terminal.ts'

test('text of upstream cannot move the cursor of a terminal', () => {
  const text = table(['what happened'], [['its keys are: \u001b]0;mine\u0007\u001b[2J\r\nnone']])
  expect(text).toBe('what happened\nits keys are:  ]0;mine [2J none')
  expect(visibleLines('one\u001b[2J\ntwo\r')).toBe('one [2J\ntwo ')
})

test('what is printed has the characters that act on a terminal escaped, and JSON stays the same value', () => {
  const value = { text: 'é\u001b[2J\u009b2J\u007f\u202e\u2028\u{e0041}\ufeff' }
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  printJson(value)
  print('one\u001b[2J\n\ttwo\r')
  const [text = '', plain] = write.mock.calls.map(([written]) => String(written))
  write.mockRestore()
  expect(/[\p{Cf}\p{Zl}\u007f-\u009f]/u.test(text)).toBe(false)
  expect(JSON.parse(text)).toEqual(value)
  expect(plain).toBe('one\\u001b[2J\n\ttwo\\u000d\n')
})

test('JSON of upstream is printed as it is among the times of the mirror, which are ISO 8601', () => {
  const text = '{"createdAt":1700000000000,\r\n"asOf":17000000000000000001,"rate":1.0,"rate":1e400,"text":"$& \u202e"}'
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  printJson({ asOf: 1_700_000_000_000, records: [upstreamJson(text), upstreamJson('[]')] })
  const printed = String(write.mock.calls[0]?.[0])
  write.mockRestore()
  const escaped = text.replace('\r', ' ').replace('\u202e', '\\u202e')
  expect(printed).toContain(`    ${escaped},\n    []\n`)
  expect(JSON.parse(printed)).toMatchObject({ asOf: '2023-11-14T22:13:20.000Z' })
})

describe('a table on a terminal of 80 columns', () => {
  const HEAD = ['source', 'state', 'as of', 'next run', 'last run']
  const time = '2026-05-01 12:00:00Z'
  const long = 'nothing was changed: upstream answered 503 for the index, four times in a row, and asked to wait'

  test('has no line that is longer, and loses nothing', () => {
    const rows = [
      ['osv', 'failed', time, time, `${long} ${'#'.repeat(200)}`],
      ['catalog', 'complete', time, '-', ''],
    ]
    for (const width of [24, 40, 60, 80, 100, 132]) {
      const text = table(HEAD, rows, width)
      expect([width, Math.max(...text.split('\n').map(({ length }) => length)) <= width]).toEqual([width, true])
      for (const word of `${long} osv failed catalog complete`.split(' ')) expect(text).toContain(word)
      expect(text.match(/#/g)?.length).toBe(200)
    }
    expect(table(HEAD, rows, 80).split('\n').slice(0, 3)).toEqual([
      'source   state     as of                 next run',
      `osv      failed    ${time}  ${time}`,
      '  last run: nothing was changed: upstream answered 503 for the index, four times',
    ])
    expect(table(HEAD, rows, 80)).toMatch(/\ncatalog +complete +\S+ \S+ +-$/)
  })

  test('breaks the last column where it has room, and is as before where everything fits', () => {
    const rows = [['url', `https://example.com/${'a'.repeat(80)}`]]
    const [, ...lines] = table(['field', 'value'], rows, 80).split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toMatch(/^ {7}a+$/)
    expect(table(['a', 'b'], [['1', '2']], 80)).toBe(table(['a', 'b'], [['1', '2']], Infinity))
  })
})

test('a table is as wide as its texts in a pipe, and as the terminal on a terminal', () => {
  const rows = [['1', 'word '.repeat(40).trim()]]
  expect(table(['id', 'text'], rows).split('\n')).toHaveLength(2)
  const { isTTY, columns } = process.stdout
  Object.assign(process.stdout, { isTTY: true, columns: 80 })
  const shown = table(['id', 'text'], rows)
  Object.assign(process.stdout, { isTTY, columns })
  expect(shown.split('\n')).toHaveLength(4)
})

test('a row whose cells are too wide continues in the rows below it', () => {
  expect(wrapped(['one two three', 'x', 'abcdefgh'], [8, 5, 4])).toEqual([
    ['one two', 'x', 'abcd'],
    ['three', '', 'efgh'],
  ])
  expect(wrapped(['short', ''], [8, 8])).toEqual([['short', '']])
})

test('colours are off with NO_COLOR, on with FORCE_COLOR, else on for terminals that are not dumb', () => {
  const terminal = { isTTY: true }
  expect(hasColor(terminal, {})).toBe(true)
  expect(hasColor({}, {})).toBe(false)
  expect(hasColor(terminal, { NO_COLOR: '1', FORCE_COLOR: '1' })).toBe(false)
  expect(hasColor(terminal, { NO_COLOR: '' })).toBe(true)
  expect(hasColor({}, { FORCE_COLOR: '1' })).toBe(true)
  expect(hasColor(terminal, { FORCE_COLOR: '0' })).toBe(false)
  expect(hasColor(terminal, { TERM: 'dumb' })).toBe(false)
  expect(movesCursor(terminal, { TERM: 'dumb' })).toBe(false)
  expect(movesCursor(terminal, { NO_COLOR: '1', TERM: 'xterm' })).toBe(true)
})
