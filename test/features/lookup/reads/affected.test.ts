import { expect, test } from 'vitest'
import { describeAffected, describeSeverity } from '../../../../src/features/lookup/reads/affected.ts'

test('a fix that only one of many ranges names is named, and what is left out is counted', () => {
  const open = Array.from({ length: 24 }, (_, at) => ({ type: 'SEMVER', events: [{ introduced: `${at}.0.0` }] }))
  const fixed = { type: 'SEMVER', events: [{ introduced: '30.0.0' }, { fixed: '30.0.1' }] }
  const one = describeAffected({ package: { ecosystem: 'npm', name: 'a' }, ranges: [...open, fixed] })
  expect(one.fixed).toEqual(['30.0.1'])
  expect([one.affected.length, one.affected.at(-1)]).toEqual([21, 'and 5 more'])
  const pairs = Array.from({ length: 15 }, (_, at) => [{ introduced: `${at}.0` }, { fixed: `${at}.1` }]).flat()
  expect(describeAffected({ ranges: [{ events: pairs }] })).toMatchObject({
    affected: [expect.stringMatching(/^from 0.0 before 0.1 .* from 14.0 before 14.1$/)],
    fixed: Array.from({ length: 15 }, (_, at) => `${at}.1`),
  })
})

test('the severity of a record that only its packages name is described', () => {
  const severity = [{ type: 'CVSS_V2', score: 'AV:N' }]
  const affected = [{ severity, ecosystem_specific: { severity: 'Important' } }, { severity }]
  expect(describeSeverity({ affected })).toEqual(['Important', 'CVSS_V2 AV:N'])
  expect(describeSeverity({ affected, database_specific: { severity: 'LOW' } })).toEqual(['LOW'])
})
