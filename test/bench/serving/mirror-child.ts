import { createServer } from '../../../src/server/server.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { endWithParent, portOf } from './child.ts'
import { scannerRoutes } from '../../../src/features/scanners/routes/public-paths.ts'

/** The mirror's server over a data folder: `mirror-child.ts DIR CACHE_BYTES`. */
const [dir = '', cacheBytes = ''] = process.argv.slice(2)
const env = {
  PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
  PATCHMIRROR_SERVER_CACHE_BYTES: cacheBytes,
}
const { config } = loadConfig({ env, cwd: dir })
const reads = openPinnedReads(dir)
if (reads === null) throw new Error(`no database in ${dir}`)
const server = createServer({
  plugins: [scannerRoutes(null)],
  reads,
  dataDir: dir,
  config,
  version: 'bench',
  startedAt: Date.now(),
  now: Date.now,
  log: null,
  nextRunAt: () => null,
})
endWithParent()
portOf((await server.listen()).port)
