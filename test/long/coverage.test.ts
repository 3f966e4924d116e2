import { describe, test } from 'vitest'
import { type ShapeChanges, SHAPE_NAMES } from '../../src/sandbox/service/shapes/shape.ts'
import { proveContract } from '../support/catalog/coverage.ts'

describe.each(SHAPE_NAMES)('a service of the shape %s', (name) => {
  test('has a mirror that keeps to the contract, before and after changes', () =>
    proveContract(name))
})

const WITHIN: ShapeChanges[] = [
  { records: { within: 'attributes', ids: 'integer' }, index: 'objects' },
  { records: { within: 'noun', fields: 'camel' }, index: 'keyed' },
  { records: { within: 'spec' }, index: 'groups' },
]

test.each(WITHIN)(
  'a service whose records are $records.within has a mirror that keeps to the contract',
  (changes) => proveContract('wire', changes),
)
