import { defineConfig } from 'vitest/config'
import { fastFolder } from './test/support/fast-folder.ts'

/** The fast suite: everything that `npm test` runs. Loops and soaks live in vitest.long.config.ts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**', 'test/clients/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is waited for comes or it does not: how soon is the machine's affair.
    expect: { poll: { timeout: 20_000 } },
    env: { TMPDIR: fastFolder() },
    pool: 'forks',
    // Many tests wait for other processes and for timers: one more worker than the two processors that there are at least.
    maxWorkers: 3,
    // No test changes what others share, so files share processes: a fifth of the time.
    isolate: false,
  },
})
