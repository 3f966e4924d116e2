import { expect, test } from 'vitest'
import { READINESS } from '../../../src/base/reports/readiness.ts'
import {
  COUNT,
  PROMISED,
  TEXT,
  brief,
  described,
  list,
  maybe,
  object,
  oneOf,
  optional,
} from '../../../src/base/schema.ts'
import { published } from '../../../src/server/contract/document/publish.ts'
import { judgeReadiness } from '../../../src/server/status/readiness.ts'
import { load } from '../../config/loading.ts'
import { faultsBy } from '../../support/openapi.ts'
import { NO_FIGURES, sourceStatus } from '../../support/source-status.ts'

test('a schema is published with its members in order, those that are required, and references to components', () => {
  const part = object({ id: COUNT }, { $id: 'Part' })
  const whole = object(
    { name: described(oneOf(['a', 'b']), 'Which.'), parts: list(part), note: optional(maybe(TEXT)) },
    { description: 'All.' },
  )
  const text = JSON.stringify(published(whole))
  expect(text).toBe(
    '{"type":"object","description":"All.","required":["name","parts"],"properties":{' +
      '"name":{"enum":["a","b"],"description":"Which."},' +
      '"parts":{"type":"array","items":{"$ref":"#/components/schemas/Part"}},' +
      '"note":{"type":["string","null"]}}}',
  )
  expect(published(part)).not.toHaveProperty('$id')
})

test('a schema is published without what is brief, and requires what is promised', () => {
  const members = { a: brief(maybe(object({ id: COUNT }))), b: brief(oneOf(['x'])), c: optional(brief(list(TEXT))) }
  expect(published(object(members, { [PROMISED]: ['a'] }))).toEqual({
    type: 'object',
    required: ['a'],
    properties: { a: { type: ['object', 'null'] }, b: { type: 'string' }, c: { type: 'array' } },
  })
  expect(published(object(members, { [PROMISED]: [] }))).not.toHaveProperty('required')
})

test('the readiness of a source with incomplete lists is as the API document describes it', () => {
  const lists = [{ path: '/v1/tags', reason: 'upstream counts 3 items' }]
  const sources = [sourceStatus('catalog', { partialLists: lists, partialListCount: 1 })]
  const { config } = load({})
  const answer = judgeReadiness({ ...NO_FIGURES, sources }, config, ['catalog'], 0)
  expect(answer.sources[0]?.partialLists).toEqual(['/v1/tags'])
  expect([faultsBy(READINESS, answer), faultsBy(published(READINESS), answer)]).toEqual([[], []])
})
