import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type Sandbox, createSandbox } from '../../sandbox/server.ts'
import { catalogBench, catalogEnv } from '../../support/catalog/mirror.ts'
import { ALL, SMALL, differences } from './fixtures.ts'
import { type ChildOptions, killAt, runChild } from '../killing.ts'

/** A service whose crawl takes some hundred requests. */
export const SERVICE = { ...SMALL, tags: 10 }

/** A service, and a folder that children of the test mirror it into, one request at a time. */
export async function world(): Promise<World> {
  const sandbox = await createSandbox({ records: 5, service: SERVICE })
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  onTestFinished(async () => {
    await sandbox.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const env = { ...ALL, ...catalogEnv(sandbox), PATCHMIRROR_UPSTREAM_CONCURRENCY: '2' }
  return { sandbox, dir, options: { source: 'catalog', env } }
}

export interface World {
  sandbox: Sandbox
  dir: string
  options: ChildOptions
}

/** Paths of items, artifacts and documents that were answered; those that stand alone are asked for at every run. */
function fetched({ requests }: Sandbox): string[] {
  const lists = /^\/v1\/(me|orgs\/|patches|subscriptions\/|packages\/|tags\/|images\/(.*\/tags)?)$/
  return requests.entries.filter(({ path, status }) => status === 200 && !lists.test(path)).map(({ path }) => path)
}

/** Compares the folder with a new sandbox, which has the same content as the first one. */
export async function expectWhole(dir: string): Promise<void> {
  const made = await catalogBench(SERVICE, { dir, env: ALL })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', message: 'nothing changed' })
  expect(await differences(made)).toEqual([])
}

/** Kills a crawl at its nth item and resumes it: the second one requests no answer that is already stored. */
export async function killAndResume({ sandbox, dir, options }: World, nth: number): Promise<string[]> {
  expect(await killAt(sandbox, dir, 'items', nth, options)).toBe(true)
  const before = fetched(sandbox)
  sandbox.requests.clear()
  expect(await runChild(sandbox, dir, options)).toContain('ended complete ')
  const twice = fetched(sandbox).filter((path) => before.includes(path) && !/\/key-/.test(path))
  // What was being fetched when the process died: an answer and the documents that it names.
  const answers = new Set(twice.map((path) => path.replace(/^\/artifacts\/.*/, 'documents')))
  expect(answers.size).toBeLessThanOrEqual(2)
  await expectWhole(dir)
  return before
}
