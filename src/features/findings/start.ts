import { createFindingsFeed } from './feed.ts'
import { createFindingsKeeper } from './keeper.ts'
import { createFindingsRoutes } from './route.ts'
import { whyNoTags } from '../../store/findings/words.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'

type FindingsParts = Pick<Parts, 'config' | 'log' | 'reads' | 'signals'>

/** Judges the SBOMs of the mirrored tags whenever other snapshots or views are served. */
export function startFindings({ config, log, reads, signals }: FindingsParts): RunningPart {
  const findingsLog = createFindingsFeed(config)
  const keeper = createFindingsKeeper({
    config,
    log,
    reads: reads.pinned,
    servedPin: reads.servedPin,
    onJudged() {
      findingsLog.judged()
      signals.send('judged')
    },
  })
  const look = (): void => keeper.look()
  signals.on('served', look)
  signals.on('views', look)
  return {
    shown: whyNoTags(config) === null ? { findings: () => keeper.report() } : {},
    followed: { findingsLog },
    plugins: [createFindingsRoutes(config, reads.pinned)],
    close: () => keeper.close(),
  }
}
