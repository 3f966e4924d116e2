import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { onTestFinished } from 'vitest'
import type { SourceName } from '../../src/base/domain/sources.ts'
import { type BenchOptions, createBench } from './mirror.ts'

/** Files of a data folder by their paths within it. */
type Files = ReadonlyMap<string, Buffer>

/** Filled data folders of this process, by what they follow from. */
const filled = new Map<string, Promise<Files>>()

/** What a mirror's content follows from; without a folder, or anything else that differs from test to test. */
export type Origin = Pick<BenchOptions, 'env' | 'envOf'> & {
  sandbox?: Omit<NonNullable<BenchOptions['sandbox']>, 'now'>
  /** When the first sync runs, unix milliseconds; without it, now. */
  at?: number
}

/**
 * Returns a new data folder, removed when the test ends, of a mirror whose first sync of these sources is complete. A
 * sandbox gives the same for the same options at any time, so the sync runs once in a process and each test gets a copy.
 */
export async function copyFilledFolder(origin: Origin, sources: readonly SourceName[]): Promise<string> {
  const { sandbox, env, envOf, at } = origin
  const key = JSON.stringify([sandbox, env, String(envOf), at, sources])
  const files = await (filled.get(key) ?? keep(key, fill(origin, sources)))
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  for (const [path, content] of files) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), content, { mode: 0o600 })
  }
  return dir
}

function keep(key: string, files: Promise<Files>): Promise<Files> {
  filled.set(key, files)
  return files
}

async function fill({ at, ...origin }: Origin, sources: readonly SourceName[]): Promise<Files> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  try {
    const made = await createBench({ ...origin, dir, ...(at !== undefined && { now: () => at }) })
    try {
      for (const source of sources) {
        const { state, message } = await made.run(source)
        if (state !== 'complete') throw new Error(`the first sync of ${source} is ${state}: ${message}`)
      }
    } finally {
      await made.close()
    }
    const found = readdirSync(dir, { recursive: true, withFileTypes: true })
    const paths = found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
    return new Map(paths.map((path) => [relative(dir, path), readFileSync(path)]))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
