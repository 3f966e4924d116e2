import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { sha256Hex } from '../../core/digest.ts'
import type { Reads } from '../../store/reads.ts'
import { checkConditions } from '../http/conditions.ts'
import { OPENAPI_PATH } from '../http/paths.ts'
import { type Failures, methodNotAllowed, sendProblem } from '../http/problems.ts'
import { type Coding, chooseCoding, readRequestHeaders } from '../http/request-headers.ts'
import { rawTarget } from '../http/request-target.ts'
import { cacheFields } from '../http/response.ts'
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

/** The page of the contract. */
interface ContractPage {
  /** Answers `/-/openapi.json`; false for a request for another path. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

/** The document in both codings, with its tag. */
interface MadeDocument {
  readonly tag: string
  readonly bodies: Readonly<Record<Coding, Buffer>>
}

/**
 * Serves the contract of this mirror as an OpenAPI document. It is built at the first request, and again when a feed is
 * stored that no setting names (an import adds them), or a proxy reports another prefix of the path. It contains routes only: no data, no credential.
 */
export function createContractPage(options: ContractPageOptions): ContractPage {
  const { tables, reads, cacheControl, failures, baseUrl } = options
  let made: { readonly of: string; readonly document: MadeDocument } | null = null
  const current = (server: string): MadeDocument => {
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
  return {
    answer(request, response) {
      if (rawTarget(request.url ?? '').path !== OPENAPI_PATH) return false
      try {
        const { method = '' } = request
        // Without the host, which a client may invent: the prefix is what a trusted proxy or the settings name.
        const server =
          options.publicUrl ?? (new URL(baseUrl(request)).pathname.replace(/\/+$/, '') || '/')
        if (method === 'GET' || method === 'HEAD')
          send(request, response, current(server), cacheControl)
        else sendProblem(request, response, methodNotAllowed(method))
      } catch (error) {
        failures.answer(error, request, response)
      }
      return true
    },
  }
}

function makeDocument(tables: ContractTables): MadeDocument {
  const identity = Buffer.from(JSON.stringify(buildContract(tables)))
  const tag = sha256Hex(identity).slice(0, 32)
  return { tag, bodies: { identity, gzip: gzipSync(identity) } }
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { tag, bodies }: MadeDocument,
  cacheControl: string,
): void {
  const { acceptEncoding, ifNoneMatch } = readRequestHeaders(request.rawHeaders)
  const coding = chooseCoding(acceptEncoding)
  const etag = coding === 'gzip' ? `"${tag}-gzip"` : `"${tag}"`
  const head = ['ETag', etag, ...cacheFields(cacheControl), 'Vary', 'Accept-Encoding']
  const asked = { ...NO_CONDITIONS, ifNoneMatch }
  if (checkConditions(asked, { etag, changed: 0 }) === 'unchanged') {
    response.writeHead(304, head).end()
    return
  }
  const body = bodies[coding]
  head.push('Content-Type', 'application/json', 'Content-Length', String(body.length))
  if (coding === 'gzip') head.push('Content-Encoding', 'gzip')
  response.writeHead(200, head)
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}

/** The document has no date, so only its tag is compared. */
const NO_CONDITIONS = readRequestHeaders([])
