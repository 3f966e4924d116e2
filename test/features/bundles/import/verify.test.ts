import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openBundle, openExcerpt } from '../../../../src/features/bundles/import/open.ts'
import { verifyInHalves } from '../../../../src/features/bundles/import/verify/halves.ts'
import { keyPair, scratch, trust, writeBundle } from '../fixtures.ts'

const BYTES = 2_000
const nameOf = (i: number): string => `blobs/${String(i).repeat(64)}.gz`
const contentOf = (i: number): Buffer => Buffer.alloc(BYTES, `content ${i} `)

/** A bundle of five members that was damaged in these after it was opened; verifies it in two threads. */
async function verifying(...damaged: number[]): Promise<{ verified: Promise<void>; seen: number[] }> {
  const folder = scratch()
  const key = keyPair(folder, 'key')
  const path = join(folder, 'b.zip')
  await writeBundle(
    path,
    [key],
    [0, 1, 2, 3, 4].map((i) => [nameOf(i), contentOf(i)]),
  )
  const bundle = await openBundle([path], trust([key]))
  onTestFinished(() => bundle.close())
  const whole = readFileSync(path)
  const file = openSync(path, 'r+')
  for (const i of damaged) writeSync(file, '!', whole.indexOf(contentOf(i)) + 100)
  closeSync(file)
  const contents = await openExcerpt(bundle.excerpt(() => true))
  onTestFinished(() => contents.close())
  const { manifest } = bundle
  const excerpt: typeof bundle.excerpt = (isWanted) => bundle.excerpt(isWanted)
  const seen: number[] = []
  const report = (done: number): void => void seen.push(done)
  return { verified: verifyInHalves({ manifest, contents, excerpt }, report, 1), seen }
}

describe('a bundle that two threads verify', () => {
  test('is read to its last byte', async () => {
    const { verified, seen } = await verifying()
    await verified
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(seen.at(-1)).toBe(5 * BYTES)
  })

  test.each([[[0]], [[2]], [[3]], [[4]]])('is refused for damage in the member %j', async (damaged) => {
    const { verified } = await verifying(...damaged)
    await expect(verified).rejects.toMatchObject({
      code: 'bundle',
      message: `${nameOf(damaged[0] ?? 0)} is damaged: its bytes are not those that were signed. Copy it again`,
    })
  })

  test('is refused for the first of two damaged members, whichever thread finds its own first', async () => {
    const { verified } = await verifying(2, 3)
    await expect(verified).rejects.toThrow(`${nameOf(2)} is damaged`)
  })
})
