import { defineConfig } from 'vitest/config'
import { COMPILED } from './test/support/command.ts'

process.env['MALLOC_ARENA_MAX'] ??= '2' // as in vitest.config.ts
process.env['NODE_COMPILE_CACHE'] ??= COMPILED

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
    // As in the fast suite: Node runs the TypeScript itself, as it runs the program.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
})
