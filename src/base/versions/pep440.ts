import { compare, valid } from '@renovatebot/pep440'
import { createOrder } from './order.ts'

/**
 * PyPI: PEP 440, by the library that Renovate keeps (a port of Python's `packaging`, no dependencies). Versions from before
 * PEP 440 have no order; they are found by the list of affected versions alone.
 */
export const pypiOrder = createOrder<string>({
  read: (text) => valid(text),
  compare: (one, other) => compare(one, other),
})
