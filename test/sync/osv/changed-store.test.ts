import { describe, expect } from 'vitest'
import { test } from '../../support/tables.ts'
import { bench, expectAgreement, expectSound, tamper } from '../fixtures.ts'

describe('a sync of a store that another program changed', () => {
  const DAMAGES: [string, string][] = [
    ['a stamp', "UPDATE osv_record SET modified = '2001' WHERE id = ?"],
    ['an id', "UPDATE osv_record SET id = 'ROOT-X-1' WHERE id = ?"],
    ['the index', 'UPDATE document SET body = zeroblob(40) WHERE ? IS NOT NULL'],
  ]
  for (const [name, sql] of DAMAGES)
    test(`compares the whole index and repairs ${name}`, async () => {
      const made = await bench({ sandbox: { records: 30, large: 0 } })
      await made.run('osv')
      const [, victim = ''] = made.sandbox.feed.ids()
      tamper(made.dir, sql, victim)
      made.sandbox.feed.add(1)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      expectAgreement(made)
      await expectSound(made.dir)
    })
})
