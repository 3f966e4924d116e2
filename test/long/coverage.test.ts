import { describe, test } from 'vitest'
import { SHAPE_NAMES } from '../../src/sandbox/service/shapes/shape.ts'
import { FAST_SHAPES, proveContract } from '../support/catalog/coverage.ts'

const OTHERS = SHAPE_NAMES.filter((name) => !FAST_SHAPES.includes(name))

describe.each(OTHERS)('a service of the shape %s', (name) => {
  test('has a mirror that keeps to the contract, before and after changes', () =>
    proveContract(name))
})
