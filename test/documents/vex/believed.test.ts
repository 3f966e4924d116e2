import { expect, test } from 'vitest'
import { findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const PURL = 'pkg:npm/left@1'
const finding = findingOf(PURL)
const own = imageOf(['pkg:oci/app@sha256%3A1'], { tag: 'own' })
const open = { content: openVexOf([PURL], 'affected', 2), tags: ['own'] }
const tags = ['own', 'other']

test('A document that is believed for another tag alone does not replace what a tag leaves open', () => {
  const out = { content: openVexOf([PURL], 'not_affected', 9), tags }
  expect(isRuledOut([open, out], finding, own)).toBe(true)
  expect(isRuledOut([open, { ...out, believedTags: ['other'] }], finding, own)).toBe(false)
  expect(isRuledOut([{ ...out, believedTags: null }], finding, own)).toBe(false)
})

test('A document that is believed for another tag alone still leaves open what it says is affected', () => {
  const out = { content: openVexOf([PURL], 'not_affected', 1), tags: ['own'] }
  const affected = { content: openVexOf([PURL], 'affected', 9), tags, believedTags: ['other'] }
  expect(isRuledOut([out], finding, own)).toBe(true)
  expect(isRuledOut([out, affected], finding, own)).toBe(false)
})
