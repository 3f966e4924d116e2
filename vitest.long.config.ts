import { defineConfig } from 'vitest/config'

/** Loops, soaks and big data: `npm run test:long`. One file at a time, so that they do not disturb each other. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 180_000 } },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
