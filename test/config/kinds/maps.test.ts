import { describe, expect, test } from 'vitest'
import { load, loadYaml, refusal } from '../loading.ts'

describe('a setting with a map', () => {
  test('keeps what a later layer does not name, and takes one value for all names', () => {
    const yaml = 'sync: { maxAgeHours: { osv: 50, feeds: 40 } }\nserver: { staleAction: warn }\n'
    const env = { PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=3', PATCHMIRROR_SERVER_STALE_ACTION: 'catalog=refuse' }
    const { config } = loadYaml(yaml, { env })
    expect(config.sync.maxAgeHours).toEqual({ osv: 3, feeds: 40, catalog: 26, identity: 26 })
    expect([config.osv, config.feeds, config.catalog]).toMatchObject([
      { maxAgeHours: 3, staleAction: 'warn' },
      { maxAgeHours: 40, staleAction: 'warn' },
      { maxAgeHours: 26, staleAction: 'refuse' },
    ])
    const one = loadYaml(yaml, { env: { PATCHMIRROR_SYNC_MAX_AGE_HOURS: '7' } }).config
    expect([one.sync.maxAgeHours, one.identity.maxAgeHours]).toEqual([7, 7])
  })

  test.each([
    ['osv=many', 'sync.maxAgeHours (env PATCHMIRROR_SYNC_MAX_AGE_HOURS): {"osv":"many"} (entry osv) is not a number'],
    ['all=3', '(entry all) has a name that is none of feeds, osv, catalog, identity'],
    ['osv=3,7', '"osv=3,7" is not a number'],
  ])('says which entry is wrong, and what is right: %s', (text, why) => {
    const said = refusal(() => load({ env: { PATCHMIRROR_SYNC_MAX_AGE_HOURS: text } }))
    expect(said).toContain(why)
    expect(said).toContain('for example { osv: 26, catalog: 50 }')
  })

  test.each([
    ['changed=0.5% and 3', { limitShare: 0.005, limitCount: 3, removedShare: 0.1, removedCount: 20 }],
    ['removed = 100% and 0, changed = 2% and 1', { limitShare: 0.02, limitCount: 1, removedShare: 1, removedCount: 0 }],
  ])('gives the guard its figures: %s', (text, figures) => {
    expect(load({ env: { PATCHMIRROR_GUARD_LIMIT: text } }).config.guard).toMatchObject(figures)
  })

  test.each([
    ['7d', 7],
    ['36h', 1.5],
    ['0', 0],
  ])('gives the guard a window in days: %s', (text, days) => {
    expect(load({ env: { PATCHMIRROR_GUARD_WINDOW: text } }).config.guard.windowDays).toBe(days)
  })
})
