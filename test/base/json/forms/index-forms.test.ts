import { describe, expect, test } from 'vitest'
import { readIndexForm } from '../../../../src/base/json/forms/index-forms.ts'

const DATE = '2026-01-02T03:04:05Z'
const ONE = { id: 'CVE-2026-1', modified: '' }
const DATED = { id: 'CVE-2026-1', modified: DATE }

describe('an index of another form', () => {
  test.each<[string, unknown, object]>([
    ['ids', ['CVE-2026-1'], ONE],
    ['ids with others of any form', ['CVE-2026-1', 'ROOT-APP-NPM-', 'x y', 'DSA-1'], ONE],
    ['paths of records', ['/external/osv/CVE-2026-1.json'], ONE],
    ['URLs of records', [{ url: 'https://api.example/external/osv/CVE-2026-1.json?a=1' }], ONE],
    ['pairs', [['CVE-2026-1', DATE]], DATED],
    ['a map to dates', { 'CVE-2026-1': DATE }, DATED],
    ['a map to objects', { 'CVE-2026-1': { lastModified: DATE } }, DATED],
    ['a map to something else', { 'CVE-2026-1': 7 }, ONE],
    ['objects of other names', [{ cve_id: 'CVE-2026-1', last_modified: DATE }], DATED],
    ['objects with an id that is a number', [{ id: 7, osvId: 'CVE-2026-1' }], ONE],
    ['JSON:API', { data: [{ attributes: { cve: 'CVE-2026-1', modified: DATE } }] }, DATED],
    ['a list by ecosystem', { alpine: ['CVE-2026-1'], npm: [] }, ONE],
    ['a date of another name', [{ cve: 'CVE-2026-1', seen_at: DATE }], ONE],
    ['a total that is reached', { vulns: ['CVE-2026-1'], total: 1, next_update: DATE }, ONE],
    ['lists two levels deep', { result: { entries: ['CVE-2026-1'], next: null } }, ONE],
    ['a single object', { osv_id: 'CVE-2026-1', modified: DATE }, DATED],
  ])('is read where it has %s', (_, value, first) => {
    const read = readIndexForm(JSON.stringify(value))
    expect(read).toEqual({ entries: expect.arrayContaining([first]) as unknown, doubt: null })
  })

  test('is read from lines of JSON, with and without an end of the last one', () => {
    const lines = ['CVE-2026-1', 'CVE-2026-2'].map((id) => JSON.stringify({ id, modified: DATE }))
    for (const text of [lines.join('\n'), `${lines.join('\r\n')}\r\n`])
      expect(readIndexForm(text)).toEqual({ entries: [DATED, { id: 'CVE-2026-2', modified: DATE }], doubt: null })
  })

  test.each<[string, unknown]>([
    ['an error', { error: 'no', status: 401 }],
    ['words with hyphens', { 'request-id': 'x', 'trace-id': 'y' }],
    ['ecosystems', { ecosystems: ['alpine', 'debian'] }],
    ['nothing', null],
    ['a number', 7],
    ['empty lists', { data: [] }],
  ])('is not seen in %s', (_, value) => {
    expect(readIndexForm(JSON.stringify(value))).toBeNull()
  })

  test.each<[string, unknown]>([
    ['a cursor', { data: ['CVE-2026-1'], cursor: { after: 'x' } }],
    ['a link', { data: ['CVE-2026-1'], _links: { next: { href: '/x' } } }],
    ['a list of links', { data: ['CVE-2026-1'], _links: { next: [{ href: '/x' }] } }],
    ['a flag', { data: ['CVE-2026-1'], meta: { has_more: true } }],
    ['a total', { result: { data: ['CVE-2026-1'] }, total: 9 }],
    ['a number of pages', { data: ['CVE-2026-1'], page: 1, total_pages: 18 }],
  ])('is refused as one page of several where it has %s', (_, value) => {
    const read = readIndexForm(JSON.stringify(value))
    expect(read).toMatchObject({ refused: expect.stringMatching('one page of several') as unknown })
  })

  test.each<[string, unknown]>([
    ['a number of an uncertain name', { data: ['CVE-2026-1'], numFound: 437 }],
    ['a text for people', { data: ['CVE-2026-1'], message: 'Showing 1 of 437' }],
    ['a total that is exceeded', { data: ['CVE-2026-1'], total: '1+' }],
    ['a flag for its end', { data: ['CVE-2026-1'], complete: false }],
    ['what remains', { data: ['CVE-2026-1'], remaining: 436 }],
    ['an object that leads on', { data: ['CVE-2026-1'], paging: { next: { after: 'x' } } }],
    ['a way beside a map', { 'CVE-2026-1': DATE, next: '/external/osv/all.json?page=2' }],
  ])('is doubted where it has %s', (_, value) => {
    expect(readIndexForm(JSON.stringify(value))).toMatchObject({ doubt: expect.any(String) as unknown })
  })

  test.each([{ partial: true }, { meta: { timed_out: true } }, { errors: [{ message: 'no answer' }] }])(
    'is refused where it says %j beside its entries',
    (more) => {
      const read = readIndexForm(JSON.stringify({ data: ['CVE-2026-1'], ...more }))
      expect(read).toMatchObject({ refused: expect.stringContaining('something is missing') as unknown })
    },
  )
})
