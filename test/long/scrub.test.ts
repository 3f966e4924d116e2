import { closeSync, openSync, readdirSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readLastVerification } from '../../src/store/notes.ts'
import { derivedDir } from '../../src/store/database/open.ts'
import { toIso } from '../../src/base/time.ts'
import { openWorld } from '../support/daemons.ts'
import type { Bench } from '../support/mirror.ts'
import { flip, scrubOf, scrubbedBench } from '../support/scrub.ts'

function flipArchive({ dir }: Bench): void {
  const [file = ''] = readdirSync(derivedDir(dir)).filter((name) => name.endsWith('.zip'))
  const fd = openSync(join(derivedDir(dir), file), 'r+')
  const byte = Buffer.alloc(1)
  readSync(fd, byte, 0, 1, 100)
  writeSync(fd, Buffer.from([(byte[0] ?? 0) ^ 1]), 0, 1, 100)
  closeSync(fd)
}

test('a flipped bit in a record, a document and the archive is found and healed, and the end is noted', async () => {
  const made = await scrubbedBench()
  await made.run('osv')
  const { said, verify } = scrubOf(made)
  await verify()
  expect(said).toEqual(['verified: all that is stored is sound'])
  expect(readLastVerification(made.dir)).toMatchObject({ damagedCount: 0, healed: null })
  flip(made, 'osv_body', 'bytes')
  flip(made, 'catalog_chunk', 'bytes')
  flipArchive(made)
  const begun = toIso(Date.now())
  await verify()
  expect(said.slice(1)).toEqual([
    'verified: 3 parts of what is stored are damaged: fetched again now',
    '3 damaged parts healed',
  ])
  const last = readLastVerification(made.dir)
  expect(last).toMatchObject({ damaged: [], damagedCount: 0, healed: '3 of 3 damaged parts' })
  expect(last?.endedAt ?? '').toSatisfy((ended: string) => ended >= begun)
  const kinds = made.store.runs.listRuns(20).map(({ source, kind }) => `${source} ${kind}`)
  expect(kinds).toEqual(expect.arrayContaining(['osv repair', 'catalog repair']))
})

test('a daemon verifies each week, and its status says when', async () => {
  const world = await openWorld({ records: 5, service: false })
  onTestFinished(() => world.close())
  await world.patchmirror('sync')
  const daemon = await world.host({
    LIMIT_VERIFY_SCHEDULE: '* * * * * *',
    LIMIT_SYNC_JITTER_SECONDS: '0',
  })
  await daemon.said(/verified: all that is stored is sound/)
  const status = (await (await fetch(`${daemon.url}/-/status`)).json()) as { verified: object }
  expect(status.verified).toMatchObject({ damagedCount: 0, damaged: [], healed: null })
  const metrics = await (await fetch(`${daemon.url}/-/metrics`)).text()
  expect(metrics).toMatch(
    /^patchmirror_verify_end_timestamp_seconds 1\.\d+e\+?9|^patchmirror_verify_end_timestamp_seconds \d{10}/m,
  )
  expect(metrics).toMatch(/^patchmirror_verify_damaged 0$/m)
})
