import { afterAll } from 'vitest'
import type { SourceName } from '../../src/base/domain/sources.ts'
import { type Bench, createBench } from './mirror.ts'

/**
 * Returns what gives a mirror to all tests of a file: it is made, and these sources are synced, when it is asked for the first time. A
 * test that changes it goes on from where the last one left it.
 */
export function sharedBench(
  options: Parameters<typeof createBench>[0],
  ...sources: readonly SourceName[]
): () => Promise<Bench> {
  let bench: Promise<Bench> | null = null
  const make = async (): Promise<Bench> => {
    const made = await createBench(options)
    for (const source of sources) await made.run(source)
    return made
  }
  afterAll(async () => (await bench)?.close())
  return () => (bench ??= make())
}
