import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from './access/access.ts'
import type { OpenApiDocument, PathOperation } from './contract/openapi.ts'
import type { Failures, Problem } from './http/problems.ts'
import type { FastifyPluginCallback } from 'fastify'
import type { Reports } from './status/reports.ts'
import type { ServedSnapshot } from './snapshot/served.ts'

/** A page for people. The document of the API lists none: pages are no contract, and their addresses may change. */
interface PeoplePage {
  readonly path: string
  /** The parameters of its query, each with what it is. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Below it are the pages for people. */
const PAGES_ROOT = '/-/ui/'

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

/** The routes of the pages for people; `/` is answered by the mirror's own, which asks these first. */
export function peopleRoutes(people: PeoplePages): FastifyPluginCallback {
  return (app, _options, done) => {
    const handler = app.onNode((request, response) => people.answer(request, response))
    for (const page of people.pages) app.get(page.path, { schema: { parameters: pageParameters(page) } }, handler)
    app.get(`${PAGES_ROOT}*`, handler)
    const start = people.pages.find(({ path }) => path === PAGES_ROOT)
    if (start !== undefined)
      app.get(
        PAGES_ROOT.slice(0, -1),
        { schema: { parameters: pageParameters(start) }, config: { path: PAGES_ROOT } },
        handler,
      )
    app.answerRest((request, response) => people.answer(request, response))
    done()
  }
}

/** Returns the parameters of a page, as its route declares them: it takes no others. */
function pageParameters({ parameters }: PeoplePage): NonNullable<PathOperation['parameters']> {
  return Object.entries(parameters).map(([name, description]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: 'string', maxLength: 1000 },
  }))
}
