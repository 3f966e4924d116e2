import type { FastifyPluginCallback } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { MirrorError } from '../../base/errors.ts'
import type { Reads } from '../../store/reads.ts'
import { DOCS_PATH, type Paths } from '../http/paths.ts'
import type { PeoplePages } from '../people.ts'
import { type ServedDocument, answerWith, documentContract, makeServedDocument } from '../program/served-document.ts'
import { feedContract } from '../feeds/contract.ts'
import type { ContractEntry, OpenApiDocument } from './openapi.ts'

/** What the pages of the contract are made from. */
interface ContractOptions {
  readonly version: string
  readonly paths: Pick<Paths, 'feeds'>
  /** Returns the URL under which a client reaches the mirror, without a slash at the end. */
  readonly baseUrl: (request: IncomingMessage) => string
  readonly reads: Pick<Reads, 'feeds'>
  /** `server.publicUrl`. */
  readonly publicUrl: string | null
  /** Makes the page; undefined where there are no pages for people. */
  readonly people: PeoplePages | undefined
}

/**
 * The contract of this mirror as an OpenAPI document, and as a page where there are pages for people. They are built
 * at the first request, which loads their schemas, and again when a feed is stored that no setting names (an import adds them), or a proxy reports
 * another prefix of the path. They contain routes only: no data, no credential.
 */
export const contractRoutes: FastifyPluginCallback<ContractOptions> = (app, options, done) => {
  const { version, paths, reads, baseUrl, publicUrl, people } = options
  let made: MadeContract | null = null
  const current = (request: IncomingMessage): MadeContract => {
    // Without the host, which a client may invent: the prefix is what a trusted proxy or the settings name.
    const base = new URL(baseUrl(request)).pathname.replace(/\/+$/, '')
    const server = publicUrl ?? (base || '/')
    const stored = reads.feeds.listDocuments('feeds').map(({ path }) => path)
    const of = [server, base, ...stored].join()
    if (made?.of === of) return made
    const build = async (): Promise<OpenApiDocument> => {
      const { buildContract } = await import('./document/document.ts')
      const contracts = withFeeds(app.contracts(), [...paths.feeds, ...stored])
      return buildContract({ version, server, contracts, schemas: await app.loadSchemas() })
    }
    return (made = { of, ...lazily(build, base, people?.reference ?? null) })
  }
  const json = answerWith((request) => current(request).json())
  app.get('/-/openapi.json', { schema: DOCUMENT_CONTRACT, config: { listed: 'own' } }, app.onNode(json))
  const html = answerWith((request) => current(request).html())
  app.get(DOCS_PATH, { schema: PAGE_CONTRACT, config: { listed: 'own' } }, app.onNode(html))
  done()
}

/** Adds the feeds that have no route of their own: those of the settings, and those that an import stored. */
function withFeeds(contracts: readonly ContractEntry[], feeds: readonly string[]): ContractEntry[] {
  const all = new Map(contracts)
  for (const path of feeds) if (!all.has(path)) all.set(path, { get: feedContract(path) })
  return [...all]
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

const DOCUMENT_CONTRACT = documentContract(
  { summary: 'This document' },
  'The contract of this mirror in OpenAPI 3.1.',
  {
    'application/json': { schema: { type: 'object' } },
  },
)

const PAGE_CONTRACT = documentContract({ summary: 'This document as a page' }, 'The reference page.', {
  'text/html': { schema: { type: 'string' } },
})
