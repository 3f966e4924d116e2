import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { differences } from '../../../support/mirror.ts'
import { bench, expectAgreement, expectSound } from '../../../sync/fixtures.ts'

const DATA = resolve('../shared/data')
const series = (name: string): [string, string] => [
  resolve(DATA, 'series', `${name}.zip`),
  resolve(DATA, 'series', `${name}.all.json`),
]
const present = existsSync(series('t0')[0]) && existsSync(resolve(DATA, 'osv-real.zip'))

describe('real records', () => {
  test.skipIf(!present)('of a feed at three dates are mirrored byte for byte, silent changes too', async () => {
    const [osvZip, osvIndex] = series('t0')
    const made = await bench({ sandbox: { osvZip, osvIndex } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    for (const name of ['t1', 't2', 't0']) {
      await made.sandbox.feed.load(...series(name))
      await made.run('osv', { kind: 'reconcile' })
      const open = made.store.quarantine.listOpenQuarantines().at(-1)
      if (open !== undefined) {
        const approved = made.store.quarantine.readQuarantine(open.runId)
        if (approved === null) throw new Error('nothing in quarantine')
        await made.run('osv', { kind: 'approve', approved })
      }
      expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
      expect(differences(made)).toEqual([])
    }
    await expectSound(made.dir)
  })

  // Ten times the records of the other test.
  test.skipIf(!present)('of ten ecosystems are mirrored byte for byte', async () => {
    const osvZip = resolve(DATA, 'osv-real.zip')
    const made = await bench({ sandbox: { osvZip, osvIndex: resolve(DATA, 'osv-real.all.json') } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    made.sandbox.feed.change(30)
    made.sandbox.feed.changeSilently(30)
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
    await expectSound(made.dir)
  })
})
