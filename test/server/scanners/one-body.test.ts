import { crc32, deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { oneBodyOf } from '../../../src/features/scanners/routes/one-body.ts'

function bodyOf(upstream: string, derived: string | null): string | null {
  const content = Buffer.from(derived ?? '')
  const record = { content, crc32: crc32(content), deflated: deflateRawSync(content), prefixes: ['Root'] }
  const views = { readDerivedRecord: () => (derived === null ? null : record) }
  return oneBodyOf(views, 'R', Buffer.from(upstream))?.content.toString() ?? null
}

const OWN = '{"package":{"ecosystem":"Root:npm","name":"p"}}'
const DERIVED = '{"package":{"ecosystem":"npm","name":"p"}}'
const OTHER = '{"package":{"ecosystem":"Go","name":"q"}}'

test('the one body of a record is upstream’s, with the derived entries behind its own', () => {
  const text = (entries: string): string => `{ "id":"R", "affected" : [ ${entries} ] ,"x":1}\n`
  expect(bodyOf(text(OWN), text(DERIVED))).toBe(text(`${OWN},${DERIVED}`))
  const both = bodyOf(text(`${OWN}, ${OTHER}`), text(`${DERIVED}, ${OTHER}`))
  expect(both).toBe(text(`${OWN}, ${OTHER},${DERIVED}`))
})

test('a record without a derived form keeps upstream’s bytes', () => {
  expect(bodyOf(`{"affected":[${OWN}]}`, null)).toBeNull()
  expect(bodyOf(`{"affected":[${OTHER}]}`, `{"affected":[${OTHER}]}`)).toBe(`{"affected":[${OTHER}]}`)
})

test('the last of repeated lists counts, and a byte order mark is left out', () => {
  const upstream = `\ufeff{"affected":[],"affected":[${OWN}]}`
  const body = bodyOf(upstream, `{"affected":[],"affected":[${DERIVED}]}`) ?? ''
  expect(JSON.parse(body)).toEqual(JSON.parse(`{"affected":[${OWN},${DERIVED}]}`))
})

test('a record whose entries cannot be found in its text is written again', () => {
  const body = bodyOf('{"id":"R","affected":[]}', `{"id":"R","affected":[${DERIVED}]}`) ?? ''
  expect(JSON.parse(body)).toEqual(JSON.parse(`{"id":"R","affected":[${DERIVED}]}`))
})
