import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { loadQuick, namedEntry } from '../../support/limits.ts'
import type { Config } from '../../../src/config/schema.ts'
import { type ErrorCode, MirrorError } from '../../../src/base/errors.ts'
import { type Sandbox, type SandboxOptions, createSandbox } from '../../sandbox/server.ts'
import type { Session } from '../../../src/upstream/http/session.ts'
import { createUpstream } from '../../../src/upstream/surfaces.ts'
import { QUICK } from '../../support/mirror.ts'

/** A session with the service at a URL, its settings, and the switch that ends it. */
export interface Connection {
  session: Session
  config: Config['upstream']
  settings: Config
  stop: AbortController
}

export const MAX = 10_000_000

/** Settings named as in PATCHMIRROR_UPSTREAM_…, on top of the quick ones. */
export function connect(url: string, upstream: Record<string, string> = {}, now: () => number = Date.now): Connection {
  const named = Object.entries(upstream).map(([key, value]) => [namedEntry(`UPSTREAM_${key}`), value])
  const env = {
    ...QUICK,
    PATCHMIRROR_UPSTREAM_API_ROOT: url,
    ...(Object.fromEntries(named) as Record<string, string>),
  }
  const { config } = loadQuick({ env, cwd: tmpdir(), requireUpstream: true })
  const service = createUpstream({ config, version: '1.2.3', now })
  onTestFinished(() => service.close())
  const stop = new AbortController()
  const session = service.client('public').open(stop.signal)
  return { session, config: config.upstream, settings: config, stop }
}

/** A sandbox that is closed when the test ends; forty records by default. */
export async function sandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const made = await createSandbox({ records: 40, ...options })
  onTestFinished(() => made.close())
  return made
}

/** The MirrorError of this code that the promise must end in. */
export async function refusal(code: ErrorCode, promise: Promise<unknown>): Promise<MirrorError> {
  const error: unknown = await promise.then(
    () => new Error('expected a refusal'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof MirrorError)) throw error
  expect(error.code, error.message).toBe(code)
  return error
}

/** A folder that is gone when the test ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-upstream-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
