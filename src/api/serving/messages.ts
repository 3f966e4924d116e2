import type { Config } from '../../config/schema.ts'
import type { StopMessage } from '../../threads/supervisor.ts'

/** The settings that a serving thread needs; none is a secret, and none changes while it runs. */
export interface ServingSettings {
  readonly server: Pick<Config['server'], 'cacheBytes' | 'cacheMaxAgeSeconds' | 'keepAliveSeconds' | 'threads'>
  readonly edge: Pick<Config['edge'], 'maxAgeSeconds' | 'tagHeader'>
  readonly osv: AgeSettings
  readonly feeds: AgeSettings
  readonly catalog: AgeSettings
  readonly identity: AgeSettings
}

type AgeSettings = Pick<Config['osv'], 'maxAgeHours' | 'staleAction'>

/** Where connections are handed over to the main thread, and what shows that this process does it. */
export interface HandOverPlace {
  readonly path: string
  readonly token: string
}

/** What a serving thread is started with. */
export interface ServingStart {
  readonly dataDir: string
  readonly settings: ServingSettings
  /** The address and port that the main thread listens on. */
  readonly host: string
  readonly port: number
  readonly backlog: number
  /** Its number among the serving threads. */
  readonly thread: number
  readonly handOver: HandOverPlace
  /** Memory of `joinPinMoves`, `createAnswerCounts` and `createActivity`. */
  readonly moves: SharedArrayBuffer
  readonly counts: SharedArrayBuffer
  readonly activity: SharedArrayBuffer
  /** Upper bounds of the counts, seconds. */
  readonly bounds: readonly number[]
}

/** A connection that a serving thread accepted. */
export interface OpenedConnection {
  readonly type: 'opened'
  readonly id: number
  /** Its place in the activity memory. */
  readonly slot: number
  readonly remoteAddress: string
  readonly remotePort: number
  readonly remoteFamily: string | undefined
  readonly localAddress: string | undefined
  readonly localPort: number | undefined
}

export type FromServing =
  | OpenedConnection
  | { readonly type: 'closed'; readonly id: number }
  /** Its pin moved, so the write-ahead log can be copied further. */
  | { readonly type: 'moved' }
  | { readonly type: 'log'; readonly level: 'info' | 'error'; readonly message: string }

export type ToServing =
  /** `isFast` false: hand the connection over at once. Nothing is read from one that was not admitted. */
  | { readonly type: 'admitted'; readonly id: number; readonly isFast: boolean }
  /** Close the connection; one that was handed over when what the main thread wrote to it is sent. */
  | { readonly type: 'end'; readonly id: number }
  /** Snapshots may have been committed, or the write-ahead log was copied. */
  | { readonly type: 'look' }
  /** Close all connections at once. */
  | { readonly type: 'cut' }
  /** Accept no more, and end when all connections are closed. */
  | StopMessage
