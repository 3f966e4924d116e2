import { defineConfig } from 'vitest/config'
import { COMPILED } from './test/support/command.ts'
import { ProcessesFirst } from './test/support/order.ts'
import { suiteFolder } from './test/support/fast-folder.ts'

// Workers run many threads that allocate a little each: with an arena per thread the C library returns almost nothing.
process.env['MALLOC_ARENA_MAX'] ??= '2'
// Each worker thread and each process loads the program again: from here in two thirds of the time.
process.env['NODE_COMPILE_CACHE'] ??= COMPILED
process.env['TEST_SEED'] ??= '20261122'

/** Longest time of one test or hook, milliseconds: far beyond what any of them needs on a machine under load. */
const HANGS_AFTER_MS = 180_000

/** The fast suite: everything that `npm test` runs. Loops and soaks live in vitest.long.config.ts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**', 'test/clients/**'],
    // Timeouts end what hangs; they measure nothing. No test has one of its own.
    testTimeout: HANGS_AFTER_MS,
    hookTimeout: HANGS_AFTER_MS,
    expect: { poll: { interval: 20, timeout: HANGS_AFTER_MS - 10_000 } },
    globalSetup: ['test/support/whole-suite.ts'],
    setupFiles: ['test/support/seed.ts', 'test/support/shared-heap.ts'],
    env: { TMPDIR: suiteFolder() },
    sequence: { sequencer: ProcessesFirst },
    pool: 'forks',
    // As many as there are processors at least; each grows to 580 MB at most, and the daemons that it starts have 100 MB each.
    maxWorkers: 2,
    // Half of this young generation takes a twentieth more processor time, twice as much a tenth of a gigabyte more.
    // The heap grows to 200 MB at once: from a small one on, it would be marked again and again on the way, a tenth of the time.
    execArgv: ['--max-semi-space-size=16', '--initial-old-space-size=200', '--max-old-space-size=256'],
    // No test changes what others share, so files share processes: a fifth of the time.
    isolate: false,
    // Node runs the TypeScript itself, as it runs the program: nothing is transformed, and no copy of a source is kept. No
    // test replaces a module, so nothing needs to look into what is loaded either.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
})
