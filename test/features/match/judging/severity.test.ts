import { expect, test } from 'vitest'
import { cvss2Score } from '../../../../src/documents/records/cvss2.ts'
import { cvss4Score } from '../../../../src/documents/records/cvss4.ts'
import { cvss3Score, disagrees, severityOf } from '../../../../src/documents/records/severity.ts'

test('the base score of a CVSS 3 vector is that of the standard', () => {
  // Scores of another implementation (the Python package cvss), which agrees on all 5,184 base vectors of 3.0 and 3.1.
  const scored = {
    'CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N': 6.4,
    'CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N': 3.1,
    'CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:H/I:H/A:H': 9.9,
    'CVSS:3.1/AV:L/AC:L/PR:H/UI:N/S:U/C:L/I:L/A:L': 4.2,
    'CVSS:3.0/AV:L/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H': 7.8,
    'CVSS:3.0/AV:A/AC:L/PR:N/UI:N/S:C/C:H/I:N/A:H': 9.3,
    'CVSS:3.0/AV:P/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H': 6.8,
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H': 7.5,
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H': 9.8,
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H': 10,
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N': 0,
  }
  const scores = Object.keys(scored).map((vector) => [vector, cvss3Score(vector)])
  expect(Object.fromEntries(scores)).toEqual(scored)
  const invalid = ['', 'CVSS:3.1', 'CVSS:4.0/AV:N', 'CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H']
  expect(invalid.map(cvss3Score)).toEqual([null, null, null, null])
})

test('the base score of a CVSS 4 vector is that of the standard', () => {
  // Scores of another implementation (the Python package cvss 3), which agrees on all 104,976 base vectors.
  const scored = {
    'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H': 10,
    'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:H/SC:N/SI:N/SA:N': 8.7,
    'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N': 9.3,
    'CVSS:4.0/AV:L/AC:L/AT:N/PR:L/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N': 8.5,
    'CVSS:4.0/AV:P/AC:H/AT:P/PR:H/UI:A/VC:L/VI:N/VA:N/SC:N/SI:N/SA:N': 1,
    'CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:P/VC:N/VI:L/VA:N/SC:L/SI:H/SA:N': 5.1,
    'CVSS:4.0/AV:A/AC:H/AT:N/PR:L/UI:A/VC:H/VI:L/VA:N/SC:N/SI:N/SA:L': 4.3,
    'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:N/SC:N/SI:N/SA:N': 0,
  }
  const scores = Object.keys(scored).map((vector) => [vector, cvss4Score(vector)])
  expect(Object.fromEntries(scores)).toEqual(scored)
  const [first = ''] = Object.keys(scored)
  expect(cvss4Score(`${first}/E:U/MSA:S`)).toBe(10)
  const invalid = ['', 'CVSS:4.0', 'CVSS:3.1/AV:N', first.replace('AV:N', 'AV:X'), first.replace('/SA:H', '')]
  expect(invalid.map(cvss4Score)).toEqual([null, null, null, null, null])
})

test('the base score of a CVSS 2 vector is that of the standard', () => {
  // Scores of another implementation (the Python package cvss 3), which agrees on all 729 base vectors.
  const scored = {
    'AV:N/AC:L/Au:N/C:C/I:C/A:C': 10,
    'AV:N/AC:L/Au:N/C:N/I:N/A:C': 7.8,
    'AV:L/AC:H/Au:N/C:C/I:C/A:C': 6.2,
    '(AV:N/AC:M/Au:N/C:N/I:P/A:N/E:U/RL:OF/RC:C)': 4.3,
    'AV:N/AC:H/Au:N/C:P/I:N/A:N': 2.6,
    'AV:N/AC:L/Au:N/C:N/I:N/A:N': 0,
  }
  const scores = Object.keys(scored).map((vector) => [vector, cvss2Score(vector)])
  expect(Object.fromEntries(scores)).toEqual(scored)
  const invalid = ['', 'AV:N', 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H', 'AV:P/AC:L/Au:N/C:C/I:C/A:C']
  expect(invalid.map(cvss2Score)).toEqual([null, null, null, null])
})

test('the severity of a record is the higher one of the word of the record and the class of its CVSS score', () => {
  const vector = { type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H' }
  const two = { type: 'CVSS_V2', score: 'AV:N/AC:L/Au:N/C:C/I:C/A:C' }
  const four = { type: 'CVSS_V4', score: 'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:H/SC:N/SI:N/SA:N' }
  const levels: [object, string | null, number | null][] = [
    [{}, null, null],
    [{ severity: [vector] }, 'high', 7.5],
    [{ severity: [vector], database_specific: { severity: 'MODERATE' } }, 'high', 7.5],
    [{ severity: [vector], database_specific: { severity: 'CRITICAL' } }, 'critical', 7.5],
    [{ severity: [four] }, 'high', 8.7],
    [{ severity: [vector, four] }, 'high', 8.7],
    [{ severity: [two] }, 'high', 10],
    [{ severity: [{ ...two, score: 'AV:N/AC:M/Au:N/C:N/I:P/A:N' }] }, 'medium', 4.3],
    [{ severity: [{ ...two, score: 'AV:N/AC:H/Au:N/C:P/I:N/A:N' }] }, 'low', 2.6],
    [{ severity: [two, vector] }, 'high', 7.5],
    [{ severity: [two, { ...vector, score: vector.score.replace('A:H', 'A:L') }] }, 'medium', 5.3],
    [{ severity: [{ ...two, score: 'AV:N' }] }, null, null],
    [{ severity: [{ type: 'Ubuntu', score: 'negligible' }] }, 'low', null],
    [{ affected: [{ ecosystem_specific: { severity: 'MEDIUM' } }] }, 'medium', null],
    [
      { affected: [{ database_specific: { severity: 'Low' } }, { ecosystem_specific: { severity: 'Important' } }] },
      'high',
      null,
    ],
    [{ database_specific: { severity: 'LOW' }, affected: [{ ecosystem_specific: { severity: 'HIGH' } }] }, 'low', null],
    [{ affected: [{ ecosystem_specific: { severity: null } }] }, null, null],
    [{ severity: [{ type: 'Ubuntu', score: 'low' }] }, 'low', null],
    [{ affected: [{ severity: [vector] }] }, 'high', 7.5],
    [{ severity: 'high', database_specific: 'low' }, null, null],
    [{ severity: [null, 1, { type: 1, score: 2 }] }, null, null],
  ]
  for (const [record, level, score] of levels) expect(severityOf({ ...record })).toMatchObject({ level, score })
  expect(severityOf({ severity: [four] }).stated).toEqual([four])
  const both = (severity: string) => severityOf({ severity: [vector], database_specific: { severity } })
  expect(both('LOW')).toMatchObject({ level: 'high', word: 'low', scoreLevel: 'high' })
  expect(['LOW', 'HIGH', 'CRITICAL', 'unknown'].map((word) => disagrees(both(word)))).toEqual([
    true,
    false,
    true,
    false,
  ])
})

test('a vector or a word that a database has in a field of its own counts where the record has no severity', () => {
  const vector = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
  const of = (database_specific: object, more = {}) => severityOf({ ...more, affected: [{ database_specific }] })
  expect(of({ cvss: { score: 1, vectorString: vector } })).toMatchObject({ score: 9.8, level: 'critical' })
  expect(of({ cvss: vector })).toMatchObject({ score: 9.8, stated: [{ type: 'CVSS_V3', score: vector }] })
  expect(severityOf({ database_specific: { cvss: vector } })).toMatchObject({ score: 9.8 })
  for (const cvss of [null, {}, 'CVSS:2.0/AV:N', '9.8', 9.8]) expect(of({ cvss })).toMatchObject({ level: null })
  const severity = [{ type: 'CVSS_V3', score: vector.replace('C:H/I:H', 'C:N/I:N') }]
  expect(of({ cvss: vector }, { severity })).toMatchObject({ score: 7.5 })
  const urgent = (urgency: string) => severityOf({ affected: [{ ecosystem_specific: { urgency } }] }).level
  expect(['high', 'medium', 'low', 'unimportant', 'not yet assigned', 'end-of-life'].map(urgent)).toEqual([
    ...['high', 'medium', 'low', 'low'],
    null,
    null,
  ])
})
