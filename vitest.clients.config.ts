import { defineConfig } from 'vitest/config'

/**
 * Real clients from their registries, built and run against the mirror: `npm run test:clients`. Builds take minutes when
 * nothing is cached yet; one file at a time.
 */
export default defineConfig({
  test: {
    include: ['test/clients/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 2_400_000,
    expect: { poll: { timeout: 120_000 } },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
    reporters: ['verbose'],
    disableConsoleIntercept: true,
  },
})
