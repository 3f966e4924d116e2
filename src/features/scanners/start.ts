import { scannerRoutes } from './routes/public-paths.ts'
import { createVexRoutes } from './routes/vex.ts'
import { activeSources } from '../../base/domain/sources.ts'
import { createViewsBuilder } from './views/builder.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'

/** Makes views whenever more is served than they show. */
export function startViews({ config, log, reads, signals, progressOf, thread }: Parts): RunningPart {
  const expectsCatalog = activeSources(config).includes('catalog')
  const keeper = createViewsBuilder({
    config,
    log,
    reads: reads.pinned,
    servedPin: reads.servedPin,
    onMade: () => signals.send('views'),
    onFailed: () => thread.rebuildArchive(),
    isRunning: (kind) => progressOf(kind === 'osv' ? 'osv' : 'catalog') !== null,
  })
  signals.on('served', () => keeper.look())
  return {
    shown: { views: () => keeper.report() },
    plugins: [scannerRoutes(keeper), createVexRoutes({ config, expectsCatalog, maker: keeper })],
    close: () => keeper.close(),
  }
}
