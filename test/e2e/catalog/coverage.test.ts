import { describe, expect, test } from 'vitest'
import { SHAPE_NAMES } from '../../sandbox/service/shapes/shape.ts'
import { FAST_SHAPES, LIST_EVIDENCE, proveContract } from '../../support/catalog/coverage.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { type Rule, RULES } from '../../support/catalog/rules.ts'
import { type Row, READING, WRITING, allKnown } from '../../support/catalog/contract.ts'

/** On what the completeness of an answer rests. */
const LIST = 'end'
const ANSWER = 'length'
const ARCHIVE = 'directory'

describe.each(FAST_SHAPES)('a service of the shape %s', (name) => {
  test('has a mirror that keeps to the contract, before and after changes', () => proveContract(name))
})

test('every writing operation of the contract is refused with where to do it instead', async () => {
  const made = await catalogBench({ images: 1, tags: 1 })
  for (const { method, requests } of WRITING) {
    for (const path of requests(allKnown(made))) {
      const answer = await made.ask(path, { method, body: '{}' })
      expect({ path, status: answer.status }).toEqual({ path, status: 405 })
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
      const body = (await answer.json()) as Record<string, string>
      expect(body['message'] ?? body['error_description']).toMatch(/patchmirror|service itself/)
    }
  }
})

test('the table in docs/coverage.md equals the table of these tests', async () => {
  const file = 'test/e2e/catalog/coverage.test.ts'
  const line = ({ table, method, path }: Row, basis: string): string =>
    `| ${table} | \`${method} ${path}\` | ${basis} |`
  const rule = ({ section, subject, answer, by }: Rule): string =>
    `| ${section} | ${subject} | ${answer} | \`${typeof by === 'string' ? by : file}\` |`
  const text = [
    '# What of the service the mirror answers',
    '',
    'Each row of the service’s endpoint tables (service API, section 4) and each rule of its sections 4 to 9. The named test',
    'asks the service and the mirror for the same paths, before and after changes upstream: same status, same bytes for items,',
    'same items in the same order for lists, the same documents with the same media types behind links, redirects and inline.',
    '`all.zip` is compared member for member by the tests of the feeds. This file is written by that test',
    '(`npx vitest run test/e2e/catalog/coverage.test.ts --update`).',
    '',
    '## Conditions',
    '',
    '- `catalog.scope` is `all`, and `catalog.personalData` has `apiKeys` and `users`. With less, what is not mirrored is not',
    '  answered. A remediated artifact (AVR) is mirrored while a listed item, or `catalog.patterns`, names it.',
    '- The mirror has synced since the service changed. The answers are those of the last snapshot.',
    '- Lists are read to their end: the service’s pages have three items at most, so that each list has several. The mirror’s pages have the',
    '  size that is asked for; its cursors are its own.',
    '- Errors are compared by their status. Their text is the mirror’s.',
    `- Each row holds for services of ${SHAPE_NAMES.length} shapes (\`npm run sandbox -- --help\`): ${SHAPE_NAMES.map((name) => `\`${name}\``).join(', ')}. They`,
    '  differ in envelopes, next pages, ids, field names, dates, artifacts, errors, events, validators, the patch feed, the system matrix and',
    '  the OSV index.',
    `  \`npm test\` runs ${FAST_SHAPES.map((name) => `\`${name}\``).join(' and ')}, \`npm run test:long\` all of them.`,
    '',
    '## Endpoints (section 4)',
    '',
    `The mirror gives the same answer to each of these. \`${file}\` proves it, of the archive \`test/sync/osv/archive/archive.test.ts\`.`,
    '',
    '| Table | Row | Complete by |',
    '| --- | --- | --- |',
    ...READING.map((row) => line(row, row.isList ? LIST : ANSWER)),
    `| Public feeds | \`GET /external/osv/all.zip\` | ${ARCHIVE} |`,
    '',
    'What changes something at the service is not mirrored. The mirror answers 405, with the command or place to use instead:',
    '',
    ...WRITING.map(({ method, path }) => `- \`${method} ${path}\``),
    '',
    '## On what the completeness of a list rests',
    '',
    'An answer is complete by the length that was announced or by its last chunk, `all.zip` by its directory. A list is complete',
    'by the first of these that was seen: its total, a last page that says so, a last page that names no next one',
    'while the others do, nothing behind its last page, a shorter page from a service that keeps to `limit`, or the same items for each',
    'request for another page ([how complete a list is](guides/catalog.md#how-complete-a-list-is)). The services of these shapes give:',
    '',
    '| Shape | Evidence |',
    '| --- | --- |',
    ...SHAPE_NAMES.map((name) => `| \`${name}\` | ${LIST_EVIDENCE[name].join('; ')} |`),
    '',
    'Other forms of paging, each with 0, 1, a full page and 437 items, are in `test/upstream/lists/evidence.test.ts`; lists that change',
    'between two pages in `test/e2e/catalog/changing-lists.test.ts`.',
    '',
    '## Parameters, authentication, events, errors, limits, versions (sections 4 to 9)',
    '',
    '| Section | Rule | The mirror | Proved by |',
    '| --- | --- | --- | --- |',
    ...RULES.map(rule),
    '',
  ].join('\n')
  await expect(text).toMatchFileSnapshot('../../../docs/coverage.md')
})
