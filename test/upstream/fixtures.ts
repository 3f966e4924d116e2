import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import { loadQuick, namedEntry } from '../support/limits.ts'
import type { Session } from '../../src/upstream/http/session.ts'
import { type UpstreamSurface, type Upstream, createUpstream } from '../../src/upstream/surfaces.ts'
import { QUICK } from '../support/mirror.ts'

/** The whole service by settings named as in PATCHMIRROR_…, with what passes of time in the caller's hand. */
export function upstreamOf(
  named: Record<string, string>,
  clock: {
    now?: () => number
    delay?: (ms: number) => Promise<void>
    warn?: (text: string) => void
  } = {},
): Upstream {
  const entries = Object.entries(named).map(([name, value]) => [namedEntry(name), value])
  const env = { ...QUICK, ...(Object.fromEntries(entries) as Record<string, string>) }
  const { config } = loadQuick({ env, cwd: tmpdir() })
  const upstream = createUpstream({ config, version: '1', now: Date.now, ...clock })
  onTestFinished(() => upstream.close())
  return upstream
}

/** A session with one surface, for one run. */
export function session(upstream: Upstream, surface: UpstreamSurface = 'remediation'): Session {
  return upstream.client(surface).open(new AbortController().signal)
}

/** One request of the API for a path. */
export function get(made: Session, path: string): Promise<{ status: number; body: Buffer }> {
  return made.request({ method: 'GET', path, maxBytes: 1_000_000 })
}
