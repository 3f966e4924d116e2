import type { OpenApiDocument } from '../../server/contract/openapi.ts'
import type { Status } from '../../base/reports/status.ts'
import type { Config } from '../../config/schema.ts'
import type { ThreadFailure } from '../../base/threads/failure.ts'

/** What the thread that makes pages is started with. */
export interface PagesData {
  readonly config: Config
  readonly version: string
  /** Paths of the stylesheet, the script and the icon below the prefix of the pages. */
  readonly style: string
  readonly script: string
  readonly icon: string
}

/** A request for a page: all that it depends on besides the store. */
export interface PageRequest {
  /** The declared path of the page; null: `problem` is shown. */
  readonly page: string | null
  readonly problem: PageProblem | null
  /** As it came, without the question mark. */
  readonly query: string
  /** Path under which a proxy reaches the mirror, without a slash at the end; '' for the root. */
  readonly base: string
  /** Scheme and host under which this client reaches the mirror. */
  readonly origin: string
  /** Whether the client may read what takes a key. */
  readonly signedIn: boolean
  /** Report on the mirror, for pages that show it: without private parts unless `signedIn`. */
  readonly status: Status | null
  /** The contract, of the reference page alone. */
  readonly document?: OpenApiDocument
  /** Unix milliseconds. */
  readonly now: number
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
}

/** Why a page cannot be shown. */
export interface PageProblem {
  readonly status: number
  readonly message: string
}

/** A made page; `body` in UTF-8, `type` its media type. `fault`: an error to be logged. */
export interface PageReply {
  readonly status: number
  readonly type: string
  readonly body: Uint8Array
  /** The name under which a browser stores it; null: it shows it. */
  readonly file: string | null
  readonly fault: ThreadFailure | null
}
