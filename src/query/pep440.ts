import { compare, valid } from '@renovatebot/pep440'
import { type VersionOrder } from './order.ts'

/**
 * PyPI: PEP 440, by the library that Renovate keeps (a port of Python's `packaging`, no dependencies). Versions from before
 * PEP 440 have no order; they are found by the list of affected versions alone.
 */
export const pypiOrder: VersionOrder<string> = {
  read: (text) => valid(text.trim()),
  compare: (one, other) => compare(one, other),
}
