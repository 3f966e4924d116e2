import type { Server } from 'node:http'
import type { Config } from '../config/schema.ts'
import type { Account } from '../core/connections/account.ts'
import { isReserved, limitConnections } from '../core/connections/limit.ts'
import { type ServedRecords, openFastRecords } from './feeds/fast-records.ts'
import { createTrust } from './http/client-address.ts'
import { drain } from './http/node-server.ts'
import type { ServerLog } from './http/problems.ts'
import type { Heads } from './http/response.ts'
import type { PinMoves } from './serving/shared.ts'
import { createServingThreads } from './serving/threads.ts'
import type { MetricsPage } from './status/routes.ts'

/** What the connections of the server's port are served with. */
interface ConnectionParts {
  readonly dataDir: string
  readonly config: Config
  readonly log: ServerLog | null
  readonly metrics?: MetricsPage
  readonly served: ServedRecords
  readonly heads: Heads
  readonly moves: PinMoves
  /** Moves the served snapshot to the newest one. */
  readonly look: () => void
  readonly closeGraceMs: number
  readonly account: Account
  readonly onThreadMoved?: () => void
}

/** The connections of the server's port, whichever thread accepts them. */
interface Connections {
  /** Has the other serving threads listen as well. Throws `config`. */
  readonly listen: () => Promise<void>
  /** Has the other serving threads look for new snapshots. */
  look(): void
  /** Lets them end; resolves with `closed`, when all are. After the grace time those that are left are cut off. */
  close(closed: Promise<unknown>): Promise<void>
}

/** Connections beyond `server.maxConnections` that get the health page, so that an orchestrator does not end a busy mirror. */
const RESERVE = 16
/** A serving thread that did not end so long after its connections were cut off is terminated, milliseconds. */
const STUCK_MS = 5_000

/** Opens the fast path of a server, limits its connections, and prepares the serving threads beside this one. */
export function openConnections(server: Server, parts: ConnectionParts): Connections {
  const { dataDir, config, log, metrics, served, heads, moves, onThreadMoved, closeGraceMs } = parts
  const isFast = (): boolean => !config.log.access && log?.isLevelEnabled('debug') !== true
  const fastPath = openFastRecords(server, served, heads, {
    keepAliveSeconds: config.server.keepAliveSeconds,
    isEnabled: isFast,
    event: config.server.certFile === null ? 'connection' : 'secureConnection',
    takes: (socket) => !isReserved(socket),
    resumes: true,
    account: parts.account,
    onAnswered: (seconds) => metrics?.countAnswer('public', 200, seconds),
    isBehind: moves.isBehind,
    refresh: parts.look,
  })
  const limit = limitConnections(server, limitsOf(parts))
  const threads = createServingThreads({
    dataDir,
    config,
    log,
    moves,
    isFast,
    admit: limit.admit,
    serve: fastPath.handOver,
    stopTimeoutMs: closeGraceMs + STUCK_MS,
    ...(metrics && { metrics }),
    ...(onThreadMoved && { onMoved: onThreadMoved }),
  })
  return {
    async listen() {
      const at = server.address()
      if (at !== null && typeof at !== 'string') await threads.listen(at)
    },
    look: threads.look,
    close(closed) {
      const all = Promise.all([closed, threads.close()])
      return drain(server, { fastPath, limit, cut: threads.cut }, all, closeGraceMs)
    },
  }
}

function limitsOf({ config, log, metrics }: ConnectionParts): Parameters<typeof limitConnections>[1] {
  return {
    get most() {
      return config.server.maxConnections
    },
    get mostPerAddress() {
      return config.server.maxConnectionsPerAddress
    },
    reserve: RESERVE,
    isShared: createTrust(config.server.trustProxy),
    log,
    onClosed: (why, count) => metrics?.countClosed(why, count),
  }
}
