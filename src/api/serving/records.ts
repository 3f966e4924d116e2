import { MirrorError } from '../../core/errors.ts'
import { openPinnedReads } from '../../store/reads.ts'
import { createEdgeFields } from '../edge/headers.ts'
import type { ServedRecords } from '../feeds/fast-records.ts'
import { createAnswerCache } from '../http/response-cache.ts'
import { type Heads, createHeads } from '../http/response.ts'
import { SOURCE_NAMES } from '../snapshot/served.ts'
import { notReady } from '../snapshot/not-ready.ts'
import { createAgedOrigins, createStaleRule, refuseStale } from '../snapshot/stale.ts'
import type { ServingStart } from './messages.ts'
import { joinPinMoves } from './shared.ts'

/** What a serving thread answers from: its own connections to the store, and its own part of the cache. */
export interface ThreadRecords {
  readonly served: ServedRecords
  readonly heads: Heads
  readonly isBehind: () => boolean
  /** Moves to the newest snapshot; true when it moved. `release`: otherwise lets go of the write-ahead log that was copied. */
  readonly look: (release: boolean) => boolean
  close(): void
}

/** Opens the records for a serving thread. Throws as `openPinnedReads`. */
export function openThreadRecords({ dataDir, settings, ...memory }: ServingStart): ThreadRecords {
  const moves = joinPinMoves(memory.moves)
  const opened = openPinnedReads(dataDir)
  if (opened === null) throw new MirrorError('internal', 'the database is not there')
  const reads = moves.counted(opened)
  const { cacheBytes, cacheMaxAgeSeconds, threads } = settings.server
  const cache = createAnswerCache(cacheBytes / threads)
  const origins = createAgedOrigins(reads.pinned, createStaleRule(settings, Date.now))
  const load = (): void => {
    if (origins.read('osv')) cache.drop('osv')
    origins.judge()
  }
  const move = (): boolean => {
    origins.judge() // first: also when the store cannot be read
    const isMoved = reads.refresh()
    if (isMoved) load()
    return isMoved
  }
  load()
  return {
    isBehind: moves.isBehind,
    heads: createHeads(`public, max-age=${cacheMaxAgeSeconds}, must-revalidate`, createEdgeFields(settings.edge).of),
    served: {
      reads: reads.pinned,
      cache,
      knownOrigin: origins.known,
      originOf(source) {
        const origin = origins.known(source)
        if (origin === null) throw notReady(reads.pinned, source, SOURCE_NAMES[source])
        return refuseStale(origin)
      },
    },
    look(release) {
      if (move()) return true
      if (!release) return false
      reads.repin()
      return move() // another process may have committed just now
    },
    close: () => opened.close(),
  }
}
