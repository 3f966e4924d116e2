import { expect, test } from 'vitest'
import { type Cell, count, digest, plain, time } from '../../../src/features/lookup/answers/cells.ts'
import { downloadOf } from '../../../src/features/pages/download.ts'
import type { PageView } from '../../../src/features/pages/page.ts'

/** A list of `pages` pages, a row each. */
function listOf(pages: number, row: (at: number) => (Cell | Cell[])[]): (query: string) => PageView {
  return (query) => {
    const at = Number(new URLSearchParams(query).get('after') ?? 0)
    const next = at + 1 < pages ? `/-/ui/list?q=x&after=${at + 1}` : null
    const table = { kind: 'table', title: '', columns: ['Name', 'Count', 'When'], rows: [row(at)], empty: '' } as const
    return { title: '', blocks: [{ ...table, next }] }
  }
}

function download(format: 'csv' | 'json', load: (query: string) => PageView) {
  const found = downloadOf(format, 'list', 'q=x&after=2&format=csv', load)
  return 'text' in found ? found : null
}

test('a download has the rows of all pages of a list, from its beginning', () => {
  const load = listOf(3, (at) => [plain(`row ${at}`), count(1234), time(Date.UTC(2026, 0, 2), 0)])
  const line = (at: number): string => `"row ${at}",1234,"2026-01-02T00:00:00.000Z"\r\n`
  expect(download('csv', load)).toEqual({
    type: 'text/csv',
    text: `"Name","Count","When"\r\n${line(0)}${line(1)}${line(2)}`,
    file: 'list.csv',
  })
  const json = JSON.parse(download('json', load)?.text ?? '') as { complete: boolean; rows: object[] }
  expect(json.complete).toBe(true)
  expect(json.rows[2]).toEqual({ Name: 'row 2', Count: 1234, When: '2026-01-02T00:00:00.000Z' })
})

test('a download has the whole of what a page shortens, several values, and nothing where there is nothing', () => {
  const sha = `sha256:${'ab'.repeat(32)}`
  const load = listOf(1, () => [digest(sha), [plain('a'), { ...plain('b'), note: 'why' }], plain(null)])
  expect(download('csv', load)?.text).toContain(`"${sha}","a; b (why)",\r\n`)
  const { rows } = JSON.parse(download('json', load)?.text ?? '') as { rows: object[] }
  expect(rows).toEqual([{ Name: sha, Count: ['a', 'b (why)'], When: null }])
})

test('a spreadsheet finds no formula in a download, whatever the service sends', () => {
  const hostile = ['=1+1', '+1', '-1', '@SUM(A1)', ' =1', '\t=1', '\r=1', '\uff1d1', '=1"x\r\n=2']
  for (const text of hostile) {
    const [, line = ''] =
      download(
        'csv',
        listOf(1, () => [{ text }, count(1), plain(null)]),
      )?.text.split(/\r\n(?=")/) ?? []
    expect(line).toMatch(/^"'/)
    expect(line.replaceAll('""', '')).toMatch(/^"[^"]*",1,/)
  }
})

test('a download says in its name where rows are left out', () => {
  const load = listOf(20_000, () => [plain('x'), count(1), plain(null)])
  const { file = '', text = '' } = download('json', load) ?? {}
  expect(file).toMatch(/^list-first-\d+-rows\.json$/)
  expect(JSON.parse(text)).toMatchObject({ complete: false })
})

test('a download of a list that may lack rows is not complete, and its name says so', () => {
  const table = { kind: 'table', title: '', columns: ['Name'], rows: [[plain('a')]], empty: '' } as const
  const load = (): PageView => ({ title: '', blocks: [{ ...table, incomplete: 'the walk broke off' }] })
  expect(download('csv', load)?.file).toBe('list-incomplete.csv')
  expect(JSON.parse(download('json', load)?.text ?? '')).toEqual({
    complete: false,
    incomplete: 'the walk broke off',
    rows: [{ Name: 'a' }],
  })
})
