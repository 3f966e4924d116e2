import { describe, expect } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { isHarmless } from '../../src/guard/harmless.ts'
import { judgeGenerated, judgements } from './changes.ts'

const ONE = { ecosystem: 'npm', name: 'one' }
const ranged = (events: unknown, type = 'SEMVER', more: object[] = []) => {
  return { id: 'A-1', summary: 'x', affected: [{ package: ONE, ranges: [{ type, events }, ...more] }] }
}
const from0 = (...fixes: string[]) => [{ introduced: '0' }, ...fixes.map((fixed) => ({ fixed }))]

describe('a change is harmless without a comparison of all it says', () => {
  test.each([
    ['a text changed', ranged(from0('2')), { ...ranged(from0('2')), summary: 'another' }],
    ['another fix is named behind it', ranged(from0('2')), ranged(from0('2', '3'))],
    ['a fix is raised', ranged(from0('2')), ranged(from0('10'))],
    ['a commit fixes it too', ranged(from0('a'), 'GIT'), ranged(from0('a', 'b'), 'GIT')],
  ])('when %s', (_name, before, after) => {
    expect(judgements(before, after)).toEqual({ harmless: true, doubts: [] })
  })

  test('when versions are added', () => {
    const listed = (...versions: string[]) => ({ affected: [{ package: ONE, versions }] })
    expect(judgements(listed('1'), listed('1', '2'))).toEqual({ harmless: true, doubts: [] })
    expect(judgements(listed('1', '2'), listed('1')).harmless).toBe(false)
  })
})

describe('a change is compared in all it says', () => {
  test.each([
    ['the first fix is named', 'firstFixed', ranged(from0()), ranged(from0('2'))],
    ['a fix is lowered', 'affectedLost', ranged(from0('10')), ranged(from0('2'))],
    ['a lower fix is named beside it', 'affectedLost', ranged(from0('10')), ranged(from0('10', '2'))],
    ['a fix cannot be read any more', 'incomparable', ranged(from0('2')), ranged(from0('2', 'no version'))],
    [
      'a first fix leaves a gap below another range',
      'affectedLost',
      ranged(from0(), 'SEMVER', [{ type: 'SEMVER', events: [{ introduced: '7' }, { last_affected: '9' }] }]),
      ranged(from0('5'), 'SEMVER', [{ type: 'SEMVER', events: [{ introduced: '7' }, { last_affected: '9' }] }]),
    ],
    [
      'affected is a text of what it was',
      'emptied',
      ranged(from0('2')),
      { ...ranged(from0('2')), affected: JSON.stringify(ranged(from0('2')).affected) },
    ],
  ])('when %s', (_name, kind, before, after) => {
    const { harmless, doubts } = judgements(before, after)
    expect(harmless).toBe(false)
    expect(doubts.map((doubt) => doubt.kind)).toContain(kind)
  })

  test.each([
    ['Maven', '1', ['1', '1.0cr'], ['1', '1.0cr', '1.p']],
    ['Packagist', '1.5', ['1.6', '1.#'], ['1.5', '1.6', '1.#']],
  ])('when a fix of %s is no lower than one that is not the lowest', (ecosystem, name, old, now) => {
    const of = (fixes: string[]) => ({
      affected: [{ package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events: from0(...fixes) }] }],
    })
    expect(judgements(of(old), of(now)).harmless).toBe(false)
  })

  const named = (ids: object) => ({ ...ranged(from0('2')), ...ids })
  test.each([
    ['comes', named({ aliases: ['CVE-1'] }), named({ aliases: ['CVE-1', 'CVE-2'] })],
    ['comes upstream', named({}), named({ upstream: ['CVE-2'] })],
    ['is gone upstream', named({ upstream: ['CVE-1', 'CVE-2'] }), named({ upstream: ['CVE-1'] })],
  ])('when an id %s by which VEX may rule it out', (_name, before, after) => {
    const { harmless, doubts } = judgements(before, after)
    expect(harmless).toBe(false)
    expect(doubts.map(({ kind }) => kind)).toEqual(['idsChanged'])
  })

  test('when aliases move upstream, which raises no doubt', () => {
    const { doubts } = judgements(named({ aliases: ['CVE-1'] }), named({ upstream: ['cve-1'] }))
    expect(doubts.map(({ kind }) => kind)).not.toContain('idsChanged')
    expect(judgements(named({ aliases: ['CVE-1'] }), named({ upstream: ['CVE-1'] })).doubts).toEqual([])
  })

  test.each([
    ['Conan', 'ConanCenter', 'ECOSYSTEM'],
    ['commits', 'PyPI', 'GIT'],
  ])('when versions are listed first where the ranges have no order: of %s', (_name, ecosystem, type) => {
    const of = (more: object) => ({
      affected: [{ package: { ecosystem, name: 'z' }, ranges: [{ type, events: from0('2') }], ...more }],
    })
    for (const before of [of({}), of({ versions: [] }), of({ versions: [1] })]) {
      const { harmless, doubts } = judgements(before, of({ versions: [1, '0.0.0'] }))
      expect(harmless).toBe(false)
      expect(doubts.map(({ kind }) => kind)).toEqual(['firstListed'])
    }
    expect(judgements(of({ versions: ['1'] }), of({ versions: ['1', '2'] }))).toEqual({ harmless: true, doubts: [] })
  })

  test.each([
    ['an introduction', [{ introduced: 0 }, { fixed: '2' }]],
    ['a fix', [{ introduced: '0' }, { fixed: 5 }]],
    ['a limit', [{ introduced: '0' }, { fixed: '2' }, { limit: ['9'] }]],
  ])('when %s is no text any more', (_name, now) => {
    for (const ecosystem of ['PyPI', 'Red Hat']) {
      const of = (events: unknown) => ({
        affected: [{ package: { ecosystem, name: 'one' }, ranges: [{ type: 'ECOSYSTEM', events }] }],
      })
      const { harmless, doubts } = judgements(of(from0('2')), of(now))
      expect(harmless).toBe(false)
      expect(doubts.map(({ kind }) => kind)).toEqual(['incomparable'])
    }
  })

  test('when it is nested too deeply to be written', () => {
    const deep = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as unknown
    const [before, after] = [1, 2].map((n) => ({ json: { affected: [deep, n] }, length: 100 }))
    if (before === undefined || after === undefined) throw new Error('no versions')
    expect(isHarmless(before, after)).toBe(false)
  })
})

longTest('no generated change that is called harmless raises a doubt', () => {
  const { harmless, doubtful } = judgeGenerated(1, 2_000)
  expect(harmless).toBeGreaterThan(300)
  expect(doubtful).toBeGreaterThan(300)
})
