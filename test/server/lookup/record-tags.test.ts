import { expect, test } from 'vitest'
import { tagsThatHaveIt } from '../../../src/server/lookup/record-tags.ts'

const MAY =
  'may have it: a package cannot be compared with the record, or the SBOM does not name all packages, or is not of the image now'

test.each<[tagCount: number, tags: number, judged: number, words: string, uncertain?: string[]]>([
  [0, 2, 2, `no judged tag is known to have it; 1 tag ${MAY}`, ['a']],
  [1, 4, 3, `1 of 3 judged tags has it; 2 tags ${MAY}; 1 tag is not judged`, ['a', 'b']],
  [5, 41, 11, '5 of 11 judged tags have it; 30 tags are not judged'],
  [1, 2, 1, '1 of 1 judged tag has it; 1 tag is not judged'],
  [3, 3, 3, '3 of 3 judged tags have it'],
  [0, 4, 3, 'none of the 3 judged tags has it; 1 tag is not judged'],
  [0, 1, 1, 'the judged tag does not have it'],
])(
  'of %i tags with a record among %i, %i of them judged, it is said: %s',
  (tagCount, tags, judged, words, uncertain = []) => {
    expect(tagsThatHaveIt({ tags: [], tagCount, uncertain, counts: { tags, judged }, isCurrent: true })).toBe(words)
  },
)
