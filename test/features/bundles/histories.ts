import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Manifest } from '../../../src/features/bundles/format/manifest.ts'
import { type Bench, createBench } from '../../support/mirror.ts'
import { type Below, carry, openBelow } from './air-gap.ts'

/** What can happen on either side of the gap, and on the way. */
export type Step =
  | { do: 'change'; add: number; change: number; remove: number; feeds: boolean }
  /** A medium is written: everything, or what changed since one of the exports before. */
  | { do: 'export'; full: boolean; since: number; osvOnly: boolean }
  /** One of the media arrives: the newest, one of before, or one that came already. Others are lost. */
  | { do: 'arrive'; which: number; twice: boolean }

const count = fc.nat({ max: 3 })

/** Random histories; a history begins with an export of everything, which may be lost like any other. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant('change' as const),
      add: count,
      change: count,
      remove: count,
      feeds: fc.boolean(),
    }),
    fc.record({
      do: fc.constant('export' as const),
      full: fc.boolean(),
      since: fc.nat({ max: 20 }),
      osvOnly: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
    }),
    fc.record({
      do: fc.constant('arrive' as const),
      which: fc.noBias(fc.nat({ max: 20 })),
      twice: fc.boolean(),
    }),
  ),
  { minLength: 12, maxLength: 24, size: 'max' },
)

/** The newest state of each source that was there below. */
type Reached = Map<string, { sequence: number; digest: string }>

interface Medium {
  files: string[]
  manifest: Manifest
}

/**
 * Plays a history. After each arrival the mirror below is exactly in a state that was exported, by each source, and never
 * in an earlier one than before; or the medium was refused with a reason, and nothing is otherwise than it was.
 */
export async function play(
  above: Bench,
  below: Below,
  to: string,
  history: readonly Step[],
): Promise<{ applied: number; refused: number; same: number }> {
  const media: Medium[] = []
  const seen = { applied: 0, refused: 0, same: 0 }
  const reached: Reached = new Map()
  media.push(await carry(above.dir, to))
  for (const step of history) {
    if (step.do === 'change') await change(above, step)
    else if (step.do === 'export') media.push(await write(above, to, media, step))
    else {
      const medium = media[media.length - 1 - (step.which % media.length)]
      if (medium === undefined) continue
      for (const _ of step.twice ? [1, 2] : [1]) seen[await arrive(below, medium, reached)]++
    }
  }
  return seen
}

async function change(above: Bench, step: Step & { do: 'change' }): Promise<void> {
  const { feed } = above.sandbox
  feed.add(step.add)
  feed.change(step.change)
  if (feed.ids().length > 5) feed.remove(step.remove)
  if (step.feeds) feed.touchFeeds()
  await above.run('osv')
  if (step.feeds) await above.run('feeds')
}

function write(
  { dir }: Bench,
  to: string,
  media: readonly Medium[],
  { full, since, osvOnly }: Step & { do: 'export' },
): Promise<Medium> {
  const sources = osvOnly ? (['osv'] as const) : null
  if (full) return carry(dir, to, { sources })
  const { sequence } = media[since % media.length]?.manifest ?? { sequence: 1 }
  return carry(dir, to, { sources, since: String(sequence) })
}

async function arrive(
  below: Below,
  { files, manifest }: Medium,
  reached: Reached,
): Promise<'applied' | 'refused' | 'same'> {
  const before = below.digest()
  const given = Object.entries(manifest.sources)
  try {
    const { outcome } = await below.take(files)
    for (const [source, { digest }] of given) {
      const is = below.store.carried.digestOf(source as 'osv')
      if (is !== digest) throw new Error(`${source} is a mixture: ${is}, not ${digest}`)
      const last = reached.get(source) ?? { sequence: 0, digest }
      if (manifest.sequence < last.sequence && digest !== last.digest)
        throw new Error(`${source} went back from ${last.sequence} to ${manifest.sequence}`)
      reached.set(source, { digest, sequence: Math.max(last.sequence, manifest.sequence) })
    }
    return outcome === 'same' ? 'same' : 'applied'
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'MirrorError') throw error
    if (!/is missing here|is older than the stored data/.test(error.message)) throw error
    if (below.digest() !== before) throw new Error('a refusal changed something', { cause: error })
    return 'refused'
  }
}

/** Plays a history in a world of its own, which is gone afterwards. */
export async function playOne(history: readonly Step[]): ReturnType<typeof play> {
  const above = await createBench({ sandbox: { records: 8 } })
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-histories-'))
  const there = openBelow(join(folder, 'below'))
  try {
    for (const source of ['feeds', 'osv'] as const) await above.run(source)
    return await play(above, there, folder, history)
  } finally {
    there.store.close()
    await above.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
