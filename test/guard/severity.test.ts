import { expect, test } from 'vitest'
import { doubtsAbout } from '../../src/guard/kinds.ts'

const CRITICAL = { type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }
const LOW = { type: 'CVSS_V3', score: 'CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N' }
const NEWER = { type: 'CVSS_V4', score: 'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N' }
const OLDER = { type: 'CVSS_V2', score: 'AV:N/AC:L/Au:N/C:C/I:C/A:C' }
const NUMBER = { type: 'Example', score: '7' }
const HIGH = { type: 'Ubuntu', score: 'high' }

interface Severities {
  readonly own?: object[]
  readonly ofPackage?: object[]
  readonly word?: string
}

function recordOf({ own, ofPackage, word }: Severities) {
  const json = {
    id: 'R-1',
    affected: [{ package: { ecosystem: 'npm', name: 'a' }, versions: ['1'], severity: ofPackage }],
    severity: own,
    database_specific: word === undefined ? {} : { severity: word },
  }
  return { json, length: JSON.stringify(json).length }
}

const because = (before: Severities, after: Severities) =>
  doubtsAbout(recordOf(before), recordOf(after)).flatMap(({ kind, because: why }) =>
    kind === 'severityLowered' ? [why] : [],
  )

test('A severity that takes the place of one that counts, and has no level or a lower one, is doubted', () => {
  expect(because({ own: [CRITICAL] }, { own: [NUMBER] })).toEqual(['findings have no level any more, of critical'])
  expect(because({ own: [CRITICAL] }, { own: [OLDER] })).toEqual(['findings are of level high, and were of critical'])
  const hidden = ['findings are of level low, and were of critical']
  expect(because({ ofPackage: [CRITICAL] }, { ofPackage: [CRITICAL], own: [LOW] })).toEqual(hidden)
  expect(because({ own: [HIGH] }, { own: [HIGH], word: 'LOW' })).toEqual([
    'findings are of level low, and were of high',
  ])
  expect(because({ ofPackage: [CRITICAL] }, { ofPackage: [CRITICAL], own: [OLDER] })).toHaveLength(1)
})

test('A severity of another scale is believed where the level stays or rises', () => {
  expect(because({ own: [CRITICAL] }, { own: [NEWER] })).toEqual([])
  expect(because({ own: [CRITICAL], word: 'CRITICAL' }, { own: [OLDER], word: 'CRITICAL' })).toEqual([])
  expect(because({ own: [CRITICAL] }, { own: [CRITICAL, NEWER] })).toEqual([])
  expect(because({ own: [LOW] }, { own: [CRITICAL] })).toEqual([])
  expect(because({}, { own: [NEWER] })).toEqual([])
})
