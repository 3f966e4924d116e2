import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from './access/access.ts'
import type { OpenApiDocument } from './contract/openapi.ts'
import type { Failures, Problem } from './http/problems.ts'
import type { Reports } from './status/routes.ts'
import type { ServedSnapshot } from './snapshot/served.ts'

/** What the pages for people are made from. */
export interface PeopleTools {
  readonly access: Access
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
  readonly reports: Reports
  readonly failures: Failures
  readonly served: Pick<ServedSnapshot, 'servedPin'>
  /** Unix milliseconds. */
  readonly now: () => number
  /** Has something closed together with the server. */
  readonly atEnd: (close: () => Promise<void>) => void
}

/** A path of the mirror's own that another module answers. */
export interface OwnPath {
  /** Answers a request for it; false when it is for another path. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

/** A page for people, as the contract names it. */
export interface PeoplePage {
  readonly path: string
  /** Its name in the navigation; null where it has none. */
  readonly label: string | null
  /** `key`: only with a local key. `open`: shows more to clients with one. */
  readonly access: 'open' | 'key'
  /** Media type of what it is. */
  readonly type: string
  /** The parameters of its query, each with what it is. */
  readonly parameters: Readonly<Record<string, string>>
}

/** The contract as a page. */
interface ReferencePage {
  readonly html: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

/** The pages for people. */
export interface PeoplePages {
  readonly pages: readonly PeoplePage[]
  /** Makes the reference page in HTML, and the header fields that it is sent with; `base`: path prefix of the mirror. */
  readonly reference: (document: OpenApiDocument, base: string) => Promise<ReferencePage>
  /** Answers a request for one of them, with `problem` where there is one; false when it is for another path. */
  answer(request: IncomingMessage, response: ServerResponse, problem?: Problem): boolean
}
