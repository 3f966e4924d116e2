import { afterEach } from 'vitest'
import { SANDBOX_KEYS } from '../../src/sandbox/service/credentials.ts'
import type { SandboxOptions } from '../../src/sandbox/server.ts'
import { type Bench, type BenchOptions, createBench } from '../support/mirror.ts'

/** Settings that mirror the sandbox's whole service. */
export function catalogEnv(sandbox: Bench['sandbox']): Record<string, string> {
  return {
    PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
    PATCHMIRROR_CATALOG_ALLOW_PRIVATE_ARTIFACTS: 'true',
  }
}

const open: Bench[] = []

afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close()
})

/** A sandbox with a small service, and a mirror of it. */
export async function catalogBench(
  service: Exclude<SandboxOptions['service'], false> = {},
  options: BenchOptions = {},
): Promise<Bench> {
  const bench = await createBench({
    ...options,
    sandbox: { records: 5, ...options.sandbox, service },
    envOf: (sandbox) => ({ ...catalogEnv(sandbox), ...options.env }),
  })
  open.push(bench)
  return bench
}
