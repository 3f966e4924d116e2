import { describe, expect, test } from 'vitest'
import { fileWith, load, refusal } from './loading.ts'

describe('a setting of an earlier version', () => {
  test.each([
    ['fixLowered: enforce', 'guard.fixLowered', 'guard.mode'],
    ['rangesLostRecords: 20', 'guard.rangesLostRecords', 'guard.limitCount'],
    ['severityChangedFraction: 0.05', 'guard.severityChangedFraction', 'guard.limitShare'],
  ])('is named with its successor: %s', (line, old, successor) => {
    const path = fileWith(`guard:\n  ${line}\n`)
    expect(refusal(() => load({ file: path }))).toContain(
      `${old} (file ${path}, line 2): this setting is no longer there; ${successor} takes its place for all kinds of doubt`,
    )
  })

  test('is named when a variable has it, and one without a successor is to be removed', () => {
    const env = { PATCHMIRROR_GUARD_ECOSYSTEM_CHANGED_RECORDS: '5', PATCHMIRROR_GUARD_FUTURE_DAYS: '3' }
    expect(refusal(() => load({ env }))).toMatch(
      /PATCHMIRROR_GUARD_ECOSYSTEM_CHANGED_RECORDS: .*; PATCHMIRROR_GUARD_LIMIT_COUNT takes its place[\s\S]*PATCHMIRROR_GUARD_FUTURE_DAYS: .*nothing takes its place; remove it/,
    )
  })

  test.each(['server.cacheMaxAgeSeconds', 'relay.chatTemplate', 'relay.dialect'])(
    'is named as one that nothing replaces: %s',
    (key) => {
      const [section = '', name = ''] = key.split('.')
      const path = fileWith(`${section}:\n  ${name}: x\n`)
      expect(refusal(() => load({ file: path }))).toContain(
        `${key} (file ${path}, line 2): this setting is no longer there, and nothing takes its place; remove it`,
      )
    },
  )
})
