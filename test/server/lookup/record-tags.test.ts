import { expect, test } from 'vitest'
import { tagsThatHaveIt } from '../../../src/server/lookup/record-tags.ts'

test.each([
  [5, 41, 11, '5 of 11 judged tags have it; 30 tags are not judged'],
  [1, 2, 1, '1 of 1 judged tag has it; 1 tag is not judged'],
  [3, 3, 3, '3 of 3 judged tags have it'],
  [0, 4, 3, 'none of the 3 judged tags has it; 1 tag is not judged'],
  [0, 1, 1, 'the judged tag does not have it'],
])('of %i tags with a record among %i, %i of them judged, it is said: %s', (tagCount, tags, judged, words) => {
  expect(tagsThatHaveIt({ tags: [], tagCount, counts: { tags, judged }, isCurrent: true })).toBe(words)
})
