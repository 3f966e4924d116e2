import { describe, test } from 'vitest'
import { SHAPE_NAMES } from '../sandbox/service/shapes/shape.ts'
import { proveContract } from '../support/catalog/coverage.ts'

describe.each(SHAPE_NAMES)('a service of the shape %s', (name) => {
  test('has a mirror that keeps to the contract, before and after changes', () => proveContract(name))
})
