import { readFileSync, readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { COMPILED } from './test/support/command.ts'
import { longSuiteFolder, suiteFolder } from './test/support/fast-folder.ts'
import { ProcessesFirst } from './test/support/order.ts'

process.env['MALLOC_ARENA_MAX'] ??= '2' // as in vitest.config.ts
process.env['NODE_COMPILE_CACHE'] ??= COMPILED

/** Folders whose tests belong to no suite but their own. */
const OWN_SUITE = /^test\/(long|clients)\//

/** Files of the fast suite with more tests, rows or cases than run in it (test/support/tables.ts): here the others run. */
function partlyFast(): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((name) => `test/${name}`)
  const tests = files.filter((path) => path.endsWith('.test.ts') && !OWN_SUITE.test(path))
  return tests.filter((path) => readFileSync(path, 'utf8').includes('support/tables.ts'))
}

/** Loops, soaks, big data and whole tables: `npm run test:long`. */
export default defineConfig({
  test: {
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 180_000 } },
    passWithNoTests: true, // a group of a file, all of whose tests the fast suite runs
    globalSetup: ['test/support/long-suite.ts'],
    sequence: { sequencer: ProcessesFirst },
    pool: 'forks',
    maxWorkers: 2,
    maxConcurrency: 2, // guides: each has daemons of its own, and mostly waits for them
    // As in the fast suite: Node runs the TypeScript itself, as it runs the program.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      {
        extends: true,
        test: {
          name: 'loops',
          include: ['test/long/**/*.test.ts'],
          env: { TEST_TABLES: 'whole', TMPDIR: longSuiteFolder() },
          setupFiles: ['test/support/seed.ts'],
          // V8's baseline compiler can end a process by SIGSEGV in a garbage collection soon after its start (nodejs/node#62393, open
          // for Node 24). These tests start a process for each file.
          execArgv: ['--no-sparkplug'],
        },
      },
      {
        extends: true,
        test: {
          name: 'tables',
          include: partlyFast(),
          env: { TEST_TABLES: 'whole', TMPDIR: suiteFolder() },
          execArgv: ['--max-semi-space-size=8', '--initial-old-space-size=200', '--max-old-space-size=320'],
          isolate: false, // as in the fast suite
          expect: { poll: { interval: 20, timeout: 180_000 } },
          setupFiles: ['test/support/seed.ts', 'test/support/shared-heap.ts'],
        },
      },
    ],
  },
})
