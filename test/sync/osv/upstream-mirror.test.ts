import { expect, test } from 'vitest'
import { lackAbove } from '../../../src/sync/osv/upstream-mirror.ts'

const scope = (...include: readonly string[]) => ({ include, exclude: [], vendors: ['Root'] })
const PART = expect.stringContaining('upstream is a mirror of a part of the records') as string

test.each([
  ['npm and more', scope('npm'), 'include="npm,PyPI", vendors="Root"', null],
  ['another ecosystem', scope('npm'), 'include="PyPI", vendors="Root"', PART],
  ['the same beginnings of ids, in its own order', scope('npm', 'GHSA-'), 'include="GHSA-,npm", vendors="Root"', null],
  ['all but an ecosystem that ids may be of', scope('GHSA-'), 'exclude="npm", vendors="Root"', PART],
  ['all but an ecosystem that is not wanted', scope('PyPI'), 'exclude="npm", vendors="Root"', null],
  ['records of fewer vendors', scope('npm'), 'include="npm"', PART],
  ['a part, where all is wanted', scope(), 'include="npm", vendors="Root"', PART],
])('of an upper mirror that has %s', (_, own, header, why) => {
  expect(lackAbove({ headers: { 'x-mirror-scope': header } }, own)?.why ?? null).toEqual(why)
})

test.each(['', 'include="%E0%A4%A", vendors="Root"', 'include="npm", severity="HIGH"', 'npm'])(
  'a scope that cannot be read is one that may leave out anything: %s',
  (header) => {
    const found = lackAbove({ headers: { 'x-mirror-scope': header } }, scope())
    expect(found).toEqual({ why: expect.stringContaining('its X-Mirror-Scope cannot be read') as string, scope: null })
  },
)

test('the service says nothing, and a partial mirror that it lacks records', () => {
  expect(lackAbove({ headers: {} }, scope())).toBeNull()
  const partial = { 'x-mirror-scope': 'include="npm", vendors="Root"', 'x-mirror-incomplete': 'records' }
  expect(lackAbove({ headers: partial }, scope('npm'))).toMatchObject({ scope: null })
})
