import type { Server } from 'node:http'
import type { Config } from '../config/schema.ts'
import type { Account } from '../base/connections/account.ts'
import { isReserved, limitConnections } from '../base/connections/limit.ts'
import { type ServedRecords, openFastRecords } from './feeds/fast-records.ts'
import { createTrust } from './http/client-address.ts'
import { drain } from './http/node-server.ts'
import type { ServerLog } from './http/problems.ts'
import type { Heads } from './http/response.ts'
import type { MetricsPage } from './status/routes.ts'

/** What the connections of the server's port are served with. */
interface ConnectionParts {
  readonly config: Config
  readonly log: ServerLog | null
  readonly metrics?: MetricsPage
  readonly served: ServedRecords
  readonly heads: Heads
  readonly closeGraceMs: number
  readonly account: Account
}

/** The connections of the server's port. */
interface Connections {
  /** Lets them end; resolves with `closed`, when all are. After the grace time those that are left are cut off. */
  close(closed: Promise<unknown>): Promise<void>
}

/** Connections beyond `server.maxConnections` that get the health page, so that an orchestrator does not end a busy mirror. */
const RESERVE = 16

/** Opens the fast path of a server, and limits its connections. */
export function openConnections(server: Server, parts: ConnectionParts): Connections {
  const { config, log, metrics, served, heads, closeGraceMs } = parts
  const isFast = (): boolean => !config.log.access && log?.isLevelEnabled('debug') !== true
  const fastPath = openFastRecords(server, served, heads, {
    keepAliveSeconds: config.server.keepAliveSeconds,
    isEnabled: isFast,
    event: config.server.certFile === null ? 'connection' : 'secureConnection',
    takes: (socket) => !isReserved(socket),
    account: parts.account,
    onAnswered: (seconds) => metrics?.countAnswer('public', 200, seconds),
  })
  const limit = limitConnections(server, limitsOf(parts))
  return { close: (closed) => drain(server, { fastPath, limit }, closed, closeGraceMs) }
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
