import type { IncomingMessage } from 'node:http'
import type { Reads } from '../../store/reads.ts'
import { OPENAPI_PATH } from '../http/paths.ts'
import type { Failures } from '../http/problems.ts'
import {
  type ServedDocument,
  createDocumentPage,
  makeServedDocument,
} from '../program/served-document.ts'
import { type ContractTables, buildContract } from './document.ts'

/** What the page of the contract is made from. */
export interface ContractPageOptions {
  /** The tables of routes of this server. */
  readonly tables: Omit<ContractTables, 'server'>
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
  readonly reads: Pick<Reads, 'feeds'>
  /** `server.publicUrl`. */
  readonly publicUrl: string | null
  readonly cacheControl: string
  readonly failures: Failures
}

/**
 * Serves the contract of this mirror as an OpenAPI document. It is built at the first request, and again when a feed is
 * stored that no setting names (an import adds them), or a proxy reports another prefix of the path. It contains routes
 * only: no data, no credential.
 */
export function createContractPage(options: ContractPageOptions) {
  const { tables, reads, cacheControl, failures, baseUrl, publicUrl } = options
  let made: { readonly of: string; readonly document: ServedDocument } | null = null
  const current = (request: IncomingMessage): ServedDocument => {
    // Without the host, which a client may invent: the prefix is what a trusted proxy or the settings name.
    const server = publicUrl ?? (new URL(baseUrl(request)).pathname.replace(/\/+$/, '') || '/')
    const { publicPaths } = tables
    const more = reads.feeds
      .listDocuments('feeds')
      .map(({ path }) => path)
      .filter((path) => !publicPaths.includes(path))
    const of = [server, ...more].join()
    if (made?.of !== of)
      made = {
        of,
        document: makeDocument({ ...tables, server, publicPaths: [...publicPaths, ...more] }),
      }
    return made.document
  }
  return createDocumentPage({ path: OPENAPI_PATH, current, cacheControl, failures })
}

function makeDocument(tables: ContractTables): ServedDocument {
  return makeServedDocument(Buffer.from(JSON.stringify(buildContract(tables))), 'application/json')
}
