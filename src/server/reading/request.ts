import type { Config } from '../../config/schema.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { RouteCall } from '../access/private-route.ts'
import type { PathOperation } from '../contract/openapi.ts'
import type { NamedDocument } from '../catalog/documents.ts'
import type { Problem } from '../http/problems.ts'
import type { RequestHeaders } from '../http/request-headers.ts'
import type { AnswerExchange } from '../http/response.ts'

/** What the thread is started with. */
export interface ReadingData {
  readonly config: Config
}

/** A request that is answered beside the serving thread: its route, and all that its answer depends on. */
export interface ReadRequest {
  /** As the route was declared. */
  readonly path: string
  readonly method: string
  readonly params: Readonly<Record<string, string>>
  /** As it came, without the question mark. */
  readonly query: string
  readonly requestHeaders: RequestHeaders
  readonly baseUrl: string
  /** The serving side's clock, unix milliseconds. */
  readonly now: number
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
  /** Signs the links of the answer; null: this mirror's own secret. */
  readonly linkSecret: Uint8Array | null
}

/** A request for the differences between two states of the records. */
export interface DifferencesRequest {
  /** The query of `/-/changes`, as it came. */
  readonly differences: string
  /** Unix milliseconds. */
  readonly now: number
  readonly served: string | null
  /** The last entry of the change log that is served; a newer one is not reported. */
  readonly latest: number
  /** Why this client may not read what takes a key; null: it may. */
  readonly denied: Problem | null
}

/** What the thread is asked. */
export type ReadingRequest = ReadRequest | DifferencesRequest | PinRequest

/** Has the thread move to the newest state, which is served from now on under this stamp. */
export interface PinRequest {
  readonly pin: string
}

/** What became of it. A document is sent by the serving thread, chunk by chunk. */
export type ReadReply =
  | {
      readonly status: number
      readonly headers: readonly string[]
      readonly body: Uint8Array | null
    }
  | { readonly problem: Problem }
  | { readonly document: NamedDocument; readonly asOf: string }

/** A request on its way to its answer, on the reading thread. */
export type ReadCall = Pick<RouteCall, 'params' | 'query' | 'baseUrl' | 'refuse'> &
  AnswerExchange & {
    /** Has this document sent, as upstream confirmed it at `asOf`. */
    readonly sendDocument: (document: NamedDocument, asOf: string) => void
  }

/** A route whose answers are made on the reading thread. */
export interface ReadRoute {
  readonly path: string
  readonly source: SourceName
  readonly contract: PathOperation
  readonly answer: (call: ReadCall) => void
}
