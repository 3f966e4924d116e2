import { fileURLToPath } from 'node:url'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { sha256Hex } from '../../src/base/digest.ts'
import { carry, folder } from '../features/bundles/air-gap.ts'
import { bench } from '../sync/fixtures.ts'
import { gently, installPython } from './toolbox.ts'

/* A second implementation of thin bundles, in Python, made by the page about the format. */

const VERSION = '0.25.0'
const READER = fileURLToPath(new URL('thin_reader.py', import.meta.url))
const INDEX = '/external/osv/all.json'

interface Read {
  readonly digests: Record<string, string>
  readonly records: Record<string, string>
}

test(`a reader in Python, with zstandard ${VERSION}, finds the same contents in a thin bundle`, async (context) => {
  const python = await installPython('zstandard', VERSION, 'python3')
  if ('missing' in python) return context.skip(`zstandard ${VERSION}: ${python.missing}`)
  const made = await bench({ sandbox: { records: 60, large: 0 } })
  const dir = folder()
  const contentOf = (body: Buffer | null | undefined): Buffer => gunzipSync(body ?? Buffer.alloc(0))
  await made.run('osv')
  const whole = (await carry(made.dir, dir)).files[0] ?? ''
  const index = join(dir, 'index.json')
  writeFileSync(index, contentOf(made.store.feeds.readDocument(INDEX)?.body))
  const changed = made.sandbox.feed.change(6)
  const added = made.sandbox.feed.add(4)
  await made.run('osv')
  const thin = (await carry(made.dir, dir, { since: '1', thin: true })).files[0] ?? ''
  const ran = await gently(python.path, [READER, thin, whole, index], { timeoutMs: 120_000 })
  expect([ran.code, ran.err]).toEqual([0, ''])
  const { digests, records } = JSON.parse(ran.out) as Read
  const ids = [...changed, ...added].sort()
  expect(Object.keys(records).sort()).toEqual(ids)
  for (const id of ids) expect(records[id]).toBe(contentOf(made.store.osv.readRecord(id)?.body).toString())
  expect(Object.values(digests)).toContain(sha256Hex(contentOf(made.store.feeds.readDocument(INDEX)?.body)))
  expect(Object.keys(digests).filter((name) => name.startsWith('rows/'))).toHaveLength(3)
})
