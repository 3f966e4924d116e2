import type { Config } from '../config/schema.ts'

/** Returns the settings with each deadline bounded, and without repeated attempts. */
export function boundedUpstream(upstream: Config['upstream'], limitMs: number): Config['upstream'] {
  const most = Math.max(1, Math.floor(limitMs / 2))
  return {
    ...upstream,
    retries: 0,
    requestTimeoutMs: Math.min(upstream.requestTimeoutMs, most),
  }
}
