import { defineConfig } from 'vitest/config'

/** Files of the fast suite with tables of which it runs a part (test/support/tables.ts): here they run whole. */
const TABLES = [
  'test/sync/storage.test.ts',
  'test/sync/catalog/{crash,guard,items}.test.ts',
  'test/sync/catalog/answers/documents.test.ts',
  'test/sync/catalog/lists/walks.test.ts',
  'test/sync/feeds/sync.test.ts',
  'test/sync/osv/{crash,faults,hostile,index-parser,real-records,snapshot}.test.ts',
  'test/sync/osv/archive/{archive-patch,download}.test.ts',
  'test/sync/verify/tamper.test.ts',
]

/** Loops, soaks, big data and whole tables: `npm run test:long`. One file at a time, so that they do not disturb each other. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts', ...TABLES],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 180_000 } },
    env: { TEST_TABLES: 'whole' },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
