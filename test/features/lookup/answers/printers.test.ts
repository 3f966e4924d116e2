import { expect, test } from 'vitest'
import {
  type Answer,
  type Table,
  bytesValue,
  codeValue,
  digestValue,
  linkValue,
  textValue,
  timeValue,
} from '../../../../src/features/lookup/answers/answer.ts'
import { type AnswerBlock, htmlBlocks } from '../../../../src/features/lookup/answers/html.ts'
import { terminalLines } from '../../../../src/features/lookup/answers/terminal.ts'

const NOW = Date.UTC(2026, 6, 1, 1)
const HOSTILE = '<b>\u001b[2J\u202e\nSHA-256 forged'

const TABLE: Table = {
  kind: 'table',
  title: 'some rows',
  notes: ['two rows of five'],
  columns: ['name', 'size', 'found at'],
  rows: [
    [linkValue('one', { kind: 'tag', name: 't 1' }), bytesValue(1234), timeValue(NOW - 3_600_000, 'at the latest')],
    [[textValue('a, b'), textValue('c')], textValue(null), timeValue('no date')],
  ],
  at: 0,
  of: 5,
  empty: 'there are none',
}

function blocksOf(...parts: Answer['parts']): AnswerBlock[] {
  const hrefOf = (link: object): string => `to ${Object.values(link).join(' ')}`
  return htmlBlocks({ parts }, { now: NOW, hrefOf, pageAt: (at) => `from ${at}`, pageAfter: (id) => `after ${id}` })
}

test('the terminal prints a value with its unit and note, several values in a line, and how to see more rows', () => {
  expect(terminalLines({ title: 'An answer', parts: [TABLE] })).toEqual([
    'An answer',
    '',
    'two rows of five',
    [
      'name     size        found at',
      'one      1234 bytes  2026-07-01 00:00:00Z, at the latest',
      'a, b; c  -           no date',
    ].join('\n'),
    '… and 3 more: --limit 5, or --json',
  ])
})

test('a page has links, distances of times, units that people read, and links to further rows', () => {
  expect(blocksOf(TABLE)).toEqual([
    {
      kind: 'table',
      title: 'Some rows',
      note: '1 to 2 of 5. Two rows of five.',
      columns: ['Name', 'Size', 'Found at'],
      rows: [
        [
          [{ text: 'one', href: 'to tag t 1' }],
          [{ text: '1.23 kB', look: 'number' }],
          [
            {
              text: '2026-07-01 00:00 UTC',
              look: 'time',
              instant: '2026-07-01T00:00:00.000Z',
              note: '1 h ago, at the latest',
            },
          ],
        ],
        [[{ text: 'a, b' }, { text: 'c' }], [{ text: '–' }], [{ text: 'no date' }]],
      ],
      empty: 'There are none.',
      first: null,
      next: 'from 2',
    },
  ])
  const [last] = blocksOf({ ...TABLE, at: 3 })
  expect(last).toMatchObject({ note: '4 to 5 of 5. Two rows of five.', first: 'from 0', next: null })
})

test('a table without rows says so, and a table that does not begin at any row says how many it shows', () => {
  const none: Table = { ...TABLE, rows: [], of: 0 }
  expect(terminalLines({ title: 'x', parts: [none] })).toEqual(['x', '', 'there are none', 'two rows of five'])
  expect(blocksOf(none)).toMatchObject([{ note: 'Two rows of five.', rows: [], empty: 'There are none.', next: null }])
  const { at: _, ...whole } = TABLE
  expect(blocksOf(whole)).toMatchObject([{ note: 'The first 2 of 5. Two rows of five.', first: null, next: null }])
  expect(blocksOf({ ...whole, next: 't 2' })).toMatchObject([{ next: 'after t 2' }])
})

test('a warning stands below the title, and facts and tables between blank lines', () => {
  const parts: Answer['parts'] = [
    { kind: 'notice', level: 'warning', title: 'this is old', text: 'since May' },
    { kind: 'text', text: 'A summary' },
    {
      kind: 'facts',
      title: 'some facts',
      rows: [
        ['a', textValue(1)],
        ['size', bytesValue(2)],
      ],
    },
    { kind: 'notice', level: 'note', title: 'more is not known' },
  ]
  const lines = terminalLines({ title: 'x', parts })
  expect(lines).toEqual([
    'x',
    'warning: this is old: since May',
    'A summary',
    '',
    'a     1',
    'size  2 bytes',
    '',
    'more is not known',
  ])
  expect(blocksOf(...parts)).toMatchObject([
    { kind: 'notice', tone: 'warn', title: 'This is old', text: 'Since May.' },
    { kind: 'text', text: 'A summary' },
    {
      kind: 'facts',
      title: 'Some facts',
      rows: [
        ['a', [{ text: '1' }]],
        ['size', [{ text: '2 B' }]],
      ],
    },
    { kind: 'notice', tone: 'plain', title: 'More is not known' },
  ])
})

test('text of upstream moves no cursor and begins no line of the terminal, wherever it stands', () => {
  const value = textValue(HOSTILE)
  const parts: Answer['parts'] = [
    { kind: 'notice', level: 'warning', title: HOSTILE, text: HOSTILE },
    { kind: 'text', text: HOSTILE },
    { kind: 'facts', rows: [[HOSTILE, [value, codeValue(HOSTILE)]]] },
    { ...TABLE, notes: [HOSTILE], columns: ['name'], rows: [[value], [timeValue(HOSTILE, HOSTILE)]] },
    { ...TABLE, rows: [], empty: HOSTILE },
  ]
  const lines = terminalLines({ title: HOSTILE, parts }).join('\n').split('\n')
  expect(lines.filter((line) => /[\p{Cc}\p{Cf}]/u.test(line) || line.startsWith('SHA-256'))).toEqual([])
})

test('an address of upstream is a link of a page only where it is one of the web', () => {
  const linked = (url: string) =>
    blocksOf({ ...TABLE, rows: [[{ kind: 'text', text: url, link: { kind: 'web', url } }]] })
  expect(linked('https://example.com/a')).toMatchObject([
    { rows: [[[{ text: 'https://example.com/a', href: 'https://example.com/a', outside: true }]]] },
  ])
  expect(linked('javascript:alert(1)')).toMatchObject([{ rows: [[[{ text: 'javascript:alert(1)' }]]] }])
  expect(JSON.stringify(linked('javascript:alert(1)'))).not.toContain('href')
})

const LIST: Table = {
  kind: 'table',
  title: 'things',
  columns: [{ name: 'package', isPhrase: true }, { name: 'digest' }, { name: 'day' }, { name: 'id', isDetail: true }],
  rows: [
    [
      [textValue('curl'), textValue('1.2.3')],
      digestValue(`sha256:${'ab'.repeat(32)}`),
      { ...timeValue(NOW), isDay: true },
      codeValue('x'),
    ],
    [[textValue('bash'), textValue(null)], textValue(null), textValue(null), codeValue('y')],
  ],
  next: 'cursor',
  total: 7,
  about: ['7 things'],
  empty: 'no things',
}

test('the terminal prints a list without its details, with all that a cell has, and names the next page', () => {
  const lines = terminalLines({ parts: [LIST] })
  expect(lines.join('\n').split('\n')).toEqual([
    'package     digest        day',
    'curl 1.2.3  abababababab  2026-07-01',
    'bash        -             -',
    '',
    '2 of 7; the next page: the same command with',
    '--after cursor',
  ])
  expect(terminalLines({ parts: [{ ...LIST, total: null }] })).toContain(
    '2 shown; the next page: the same command with',
  )
})

test('a page shows all columns of a list, how many rows it has, and links to its first and its next page', () => {
  const place = { now: NOW, hrefOf: () => '', pageAt: () => '', pageAfter: (id: string) => `after ${id}` }
  const [block] = htmlBlocks({ parts: [LIST] }, { ...place, first: 'first' })
  expect(block).toMatchObject({
    note: '7 things.',
    columns: ['Package', 'Digest', 'Day', 'Id'],
    first: 'first',
    next: 'after cursor',
  })
  expect(JSON.stringify(block)).toContain(`sha256:${'ab'.repeat(32)}`)
  expect(htmlBlocks({ parts: [LIST] }, place)[0]).toMatchObject({ first: null })
})

const OUTLINE: Table = {
  kind: 'table',
  title: 'changes',
  about: ['for a page'],
  columns: [
    { name: 'when' },
    { name: 'tag' },
    { name: 'change' },
    { name: 'first', isBelow: true },
    { name: 'then', isDetail: true },
  ],
  rows: [
    [timeValue(NOW), textValue('a:1'), textValue('1 new'), [textValue('x, y'), textValue('z')], textValue('7')],
    [timeValue(NOW), textValue('b:1'), textValue('1 gone'), [], textValue('6')],
  ],
  more: 'more exist than these 2',
  empty: 'nothing changed',
}

test('the terminal prints a change as a line, with its details below it, and a page as a row', () => {
  expect(terminalLines({ parts: [OUTLINE] })).toEqual([
    '2026-07-01 01:00:00Z  a:1: 1 new',
    '  x, y',
    '  z',
    '2026-07-01 01:00:00Z  b:1: 1 gone',
    '',
    'more exist than these 2',
  ])
  expect(terminalLines({ parts: [{ ...OUTLINE, rows: [] }] })[0]).toBe('nothing changed')
  const [block] = blocksOf(OUTLINE)
  expect(block).toMatchObject({ note: 'For a page.', columns: ['When', 'Tag', 'Change', 'First', 'Then'] })
  expect(JSON.stringify(block)).not.toContain('more exist')
})
