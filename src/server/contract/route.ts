import type { IncomingMessage, ServerResponse } from 'node:http'
import { MirrorError } from '../../base/errors.ts'
import type { Reads } from '../../store/reads.ts'
import { DOCS_PATH, OPENAPI_PATH } from '../http/paths.ts'
import type { Failures } from '../http/problems.ts'
import type { PeoplePages } from '../people.ts'
import { type ServedDocument, createDocumentPage, makeServedDocument } from '../program/served-document.ts'
import { createParameterCheck } from './known-parameters.ts'
import type { OpenApiDocument } from './openapi.ts'
import { type ContractTables, checkedContracts } from './operations.ts'

/** What the pages of the contract are made from. */
export interface ContractPageOptions {
  /** The tables of routes of this server. */
  readonly tables: Omit<ContractTables, 'server'>
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
  readonly reads: Pick<Reads, 'feeds'>
  /** `server.publicUrl`. */
  readonly publicUrl: string | null
  readonly failures: Failures
  /** Makes the page; null where there are no pages for people. */
  readonly people: PeoplePages | null
  /** `server.strictParameters`. */
  readonly strict: boolean
}

/**
 * Serves the contract of this mirror as an OpenAPI document, and as a page where there are pages for people. They are built
 * at the first request, which loads their schemas, and again when a feed is stored that no setting names (an import adds them), or a proxy reports
 * another prefix of the path. They contain routes only: no data, no credential. What the routes declare is also what their
 * queries are checked by.
 */
export function createContractPages(options: ContractPageOptions) {
  const { tables, reads, failures, baseUrl, publicUrl, people, strict } = options
  const refuseQuery = createParameterCheck({ entries: checkedContracts(tables), strict, failures, people })
  let made: MadeContract | null = null
  const current = (request: IncomingMessage): MadeContract => {
    // Without the host, which a client may invent: the prefix is what a trusted proxy or the settings name.
    const base = new URL(baseUrl(request)).pathname.replace(/\/+$/, '')
    const server = publicUrl ?? (base || '/')
    const { publicPaths } = tables
    const more = reads.feeds
      .listDocuments('feeds')
      .map(({ path }) => path)
      .filter((path) => !publicPaths.includes(path))
    const of = [server, base, ...more].join()
    if (made?.of === of) return made
    const build = async (): Promise<OpenApiDocument> => {
      const { buildContract } = await import('./document/document.ts')
      return buildContract({ ...tables, server, publicPaths: [...publicPaths, ...more] })
    }
    return (made = { of, ...lazily(build, base, people?.reference ?? null) })
  }
  const pages = [
    createDocumentPage({ failures, path: OPENAPI_PATH, current: (request) => current(request).json() }),
    createDocumentPage({ failures, path: DOCS_PATH, current: (request) => current(request).html() }),
  ]
  return {
    /** Answers a request for one of them, and any whose query is none of its path; false for others. */
    answer: (request: IncomingMessage, response: ServerResponse): boolean =>
      refuseQuery(request, response) || pages.some((one) => one.answer(request, response)),
  }
}

type Reference = PeoplePages['reference'] | null

/** The contract of certain routes, in both forms, each made when it is asked for. */
interface MadeContract {
  readonly of: string
  readonly json: () => Promise<ServedDocument>
  readonly html: () => Promise<ServedDocument>
}

function lazily(build: () => Promise<OpenApiDocument>, base: string, reference: Reference): Omit<MadeContract, 'of'> {
  const contract = once(build)
  return {
    json: once(async () => makeServedDocument(Buffer.from(JSON.stringify(await contract())), 'application/json')),
    html: once(async () => makePage(await contract(), base, reference)),
  }
}

/** Returns work that is done once; where it fails, the next call tries again. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | null = null
  return () => {
    done ??= work()
    done.catch(() => (done = null))
    return done
  }
}

async function makePage(contract: OpenApiDocument, base: string, reference: Reference): Promise<ServedDocument> {
  if (reference === null) throw new MirrorError('not_found', 'this server has no pages for people')
  const { html, headers } = await reference(contract, base)
  return makeServedDocument(Buffer.from(html), 'text/html; charset=utf-8', headers)
}
