import { loadQuick } from '../support/limits.ts'
import { createServer } from '../../src/server/server.ts'
import { matchRoute } from '../../src/features/match/route.ts'
import { openPinnedReads } from '../../src/store/reads.ts'
import { scannerRoutes } from '../../src/features/scanners/routes/public-paths.ts'

/**
 * Serves a data folder that is filled, with all bounds as they are, until it is killed: `crowd-child.ts DATA-FOLDER`. It sends its
 * port, then what it keeps, bytes.
 */

const [, , dir = ''] = process.argv
const env = { PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0', PATCHMIRROR_DATA_DIR: dir }
const { config } = loadQuick({ env, cwd: dir })
const reads = openPinnedReads(dir)
if (reads === null) throw new Error('no database')
const server = createServer({
  reads,
  dataDir: dir,
  config,
  version: '0.0.0',
  startedAt: Date.now(),
  now: Date.now,
  log: null,
  nextRunAt: () => null,
  plugins: [scannerRoutes(null), matchRoute],
})
const { port } = await server.listen()
process.send?.(port)

setInterval(() => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.(heapUsed + external)
}, 100)
