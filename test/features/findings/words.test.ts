import { expect, test } from 'vitest'
import { compareFindingSets } from '../../../src/features/findings/judge/compare.ts'
import { detailWords, findingWords } from '../../../src/store/findings/words.ts'
import type { TagFinding } from '../../../src/store/findings/writes.ts'

/** A finding of each version of a package; `*`: with a fix. */
const findings = (record: string, ...versions: string[]): TagFinding[] =>
  versions.map((version) => ({
    id: 1,
    packages: '[]',
    ecosystem: 'npm',
    name: 'x',
    version: version.replace('*', ''),
    record,
    level: 2,
    fixable: version.endsWith('*') ? 1 : 0,
    patched: 0,
    source: '',
    asked: '',
    gap: 0,
  }))

const compared = (before: TagFinding[], after: TagFinding[]) => compareFindingSets(before, after, () => 'cleared')
const wordsOf = (before: TagFinding[], after: TagFinding[]): string => findingWords(compared(before, after))

test.each<[string, TagFinding[], TagFinding[]]>([
  ['1 new finding (with a fix)', [], findings('A', '1*')],
  ['1 new finding (without a fix)', [], findings('A', '1')],
  ['2 new findings (all with a fix)', [], findings('A', '1*', '2*')],
  ['2 new findings (none with a fix)', [], findings('A', '1', '2')],
  ['3 new findings (2 with a fix)', [], [...findings('A', '1*', '2*'), ...findings('B', '1')]],
  ['1 finding got a fix', findings('A', '1'), findings('A', '1*')],
  ['2 findings got a fix', findings('A', '1', '2'), findings('A', '1*', '2*')],
  ['1 new finding (with a fix), 1 finding got a fix', findings('A', '1'), findings('A', '1*', '2*')],
  [
    '1 new finding (with a fix), 1 finding got a fix',
    findings('A', '1'),
    [...findings('A', '2*'), ...findings('B', '1*')],
  ],
  ['1 finding gone', findings('A', '1*'), []],
  ['2 findings gone', findings('A', '1*', '2'), []],
  ['1 finding lost its fix', findings('A', '1*'), findings('A', '1')],
  [
    '1 finding gone, 2 findings lost their fix',
    [...findings('A', '1*', '2*'), ...findings('B', '1*')],
    findings('A', '1', '2'),
  ],
  ['', findings('A', '1*'), findings('A', '2*')],
])('each finding that changed is counted once in words: %s', (words, before, after) => {
  expect(wordsOf(before, after)).toBe(words)
})

test.each<[string, TagFinding[], TagFinding[]]>([
  ['new finding: A in x 2', findings('A', '1*'), findings('A', '1*', '2')],
  ['new finding, with a fix: A in x 2', findings('A', '1'), findings('A', '1', '2*')],
  ['new finding, with a fix: A in x 3', findings('A', '1'), findings('A', '2', '3*')],
  ['gone: A in x 2 (the record no longer covers the version)', findings('A', '1*', '2'), findings('A', '1*')],
  ['got a fix: A in x 2', findings('A', '1', '2'), findings('A', '1', '2*')],
  ['got a fix: A in x 2', findings('A', '1*', '2'), findings('A', '1*', '2*')],
  ['lost its fix: A in x 2', findings('A', '1', '2*'), findings('A', '1', '2')],
  ['lost its fix: A in x 3', findings('A', '1*', '2*'), findings('A', '1*', '3')],
])('a change names the finding that changed, beside others of its package: %s', (words, before, after) => {
  expect(compared(before, after).details.map(detailWords)).toEqual([words])
})

test('where it is not known which findings have a fix, nothing is said of it', () => {
  const unknown = { found: 0, gone: 0, fixes: 2, fixesGone: 1, foundFixable: null, goneFixable: null }
  expect(findingWords(unknown)).toBe('2 findings got a fix, 1 finding lost its fix')
  expect(findingWords({ ...unknown, found: 3, gone: 1 })).toBe('3 new findings, 1 finding gone')
})

const COUNTS = { found: 0, gone: 2, fixes: 0, fixesGone: 0, foundFixable: 0, goneFixable: 0 }

test.each<[string, string, readonly unknown[]]>([
  ['2 findings gone (upstream removed the record)', 'records', ['removed', 'removed']],
  ['2 findings gone (1: the record was withdrawn; 1: VEX rules it out)', 'records', ['withdrawn', 'vex']],
  ['2 findings gone', 'records', ['removed']],
  ['2 findings gone', 'records', ['removed', undefined]],
  ['2 findings gone', 'records', ['removed', 'of another program']],
  ['2 findings gone (the tag has another SBOM)', 'sbom', ['sbom', 'sbom']],
  ['2 findings gone (other VEX counts)', 'vex', ['vex', 'vex']],
  ['2 findings gone (the list of patches changed)', 'patches', []],
  ['2 findings gone (other records are mirrored: osv.scope)', 'scope', ['left', 'left']],
])('why findings are gone is said where it is known of each of them: %s', (words, cause, whyGone) => {
  expect(findingWords({ ...COUNTS, cause, whyGone })).toBe(words)
})
