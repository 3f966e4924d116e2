import { readFileSync, readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { longSuiteFolder } from './test/support/fast-folder.ts'

/** Folders whose tests belong to no suite but their own. */
const OWN_SUITE = /^test\/(long|clients)\//

/** Files of the fast suite that run only a part of their tests in it (test/support/tables.ts): here they run whole. */
function partlyFast(): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map(
    (name) => `test/${name}`,
  )
  const tests = files.filter((path) => path.endsWith('.test.ts') && !OWN_SUITE.test(path))
  return tests.filter((path) => readFileSync(path, 'utf8').includes('support/tables.ts'))
}

/** Loops, soaks, big data and whole tables: `npm run test:long`. One file at a time, so that they do not disturb each other. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts', ...partlyFast()],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 180_000 } },
    globalSetup: ['test/support/long-suite.ts'],
    env: { TEST_TABLES: 'whole', TMPDIR: longSuiteFolder() },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
    // V8's baseline compiler can end a process by SIGSEGV in a garbage collection soon after its start (nodejs/node#62393, open
    // for Node 24). This suite starts a process for each file.
    execArgv: ['--no-sparkplug'],
    // As in the fast suite: Node runs the TypeScript itself, as it runs the program.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
})
