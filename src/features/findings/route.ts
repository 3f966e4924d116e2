import { TAGS } from '../../base/domain/resources.ts'
import { addPrivateRoutes } from '../../server/access/private-routes.ts'
import type { PrivateRoute, RouteCall } from '../../server/access/private-route.ts'
import type { ServerPlugin, ServerTools } from '../../server/plugin.ts'
import { respondUnstored } from '../../server/http/response.ts'
import { missingOf } from '../../server/snapshot/missing.ts'
import { refuseStale } from '../../server/snapshot/stale.ts'
import type { Config } from '../../config/schema.ts'
import { createWhySbomOld } from '../../documents/sboms/mirrored.ts'
import { createWhyNotJudged } from '../lookup/tag.ts'
import { findTags, tagRemovedAt } from '../../server/lookup/named.ts'
import { CAUSES, type FindingsReads } from '../../store/findings/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { MissingOf } from './messages.ts'
import { type FindingsQuestion, answerFindings, listChanges, listTags } from './answers.ts'
import { uncached } from '../../server/contract/answers.ts'
import { CURSOR } from '../../server/contract/components.ts'
import type { PathOperation } from '../../server/contract/openapi.ts'

const PATH = '/-/tags/findings'
const LOG_PATH = '/-/tags/changes'

/**
 * Creates `/-/tags/findings`, what records say about the SBOMs of the mirrored tags, and `/-/tags/changes`, what changed in
 * that. Both are of the catalog, and take what opens it: a local key.
 */
export function createFindingsRoutes(config: Config, reads: Reads): ServerPlugin {
  const idsNamed = (text: string): string[] => findTags(reads.catalog, text).map(({ id }) => id)
  const missing: MissingOf = (source, snapshot) => missingOf(reads, source, snapshot)
  const removedAt = (id: string): number | null => tagRemovedAt(reads, id)
  const route = (
    path: string,
    contract: PrivateRoute['contract'],
    answer: (reads: FindingsReads, question: FindingsQuestion) => object,
  ) => {
    return ({ served, now }: ServerTools): PrivateRoute => ({
      path,
      contract,
      source: 'catalog',
      answer(call) {
        const origin = served.knownOrigin('osv')
        if (origin !== null) refuseStale(origin)
        const asked = {
          query: call.query,
          now: now(),
          idsNamed,
          removedAt,
          incomplete: reads.catalog.whyIncomplete(TAGS),
          whyNotJudged: createWhyNotJudged({ config, reads }),
          whySbomOld: createWhySbomOld(reads),
        }
        send(
          call,
          answerFindings(config, missing, (from) => answer(from, asked)),
        )
        return undefined
      },
    })
  }
  const routes = [route(PATH, FINDINGS_CONTRACT, listTags), route(LOG_PATH, FINDINGS_LOG_CONTRACT, listChanges)]
  return (app, tools, done) => {
    addPrivateRoutes(
      app,
      tools,
      routes.map((make) => make(tools)),
    )
    done()
  }
}

function send({ request, response }: RouteCall, answer: object): void {
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }
const LIST = { type: 'array' }
const ANY = { type: 'object' }
const MAYBE_TEXT = { type: ['string', 'null'] }
const NEXT = { ...MAYBE_TEXT, description: 'For `after`; null on the last page.' }
const object = (properties: Readonly<Record<string, object>>) => ({
  type: 'object',
  required: Object.keys(properties),
  properties,
})

/** By what tags are judged, and how many. */
const STATE = {
  osv: ANY,
  judgedAt: MAYBE_TEXT,
  counts: ANY,
}

/** The shortest forms of a time; the guide has all. */
const SINCE = {
  ...TEXT,
  pattern: '^([0-9]{1,5}[mhdw]|today)$',
}

/** As that of `/-/changes`. */
const AFTER = {
  name: 'after',
  in: 'query' as const,
  schema: CURSOR,
  description: 'The value of `next` of the page before.',
}

const LIMIT = {
  name: 'limit',
  in: 'query' as const,
  description: 'Of a page.',
  schema: { type: 'integer', minimum: 1, maximum: 1_000, default: 100 },
}

const TAG = {
  name: 'tag',
  in: 'query' as const,
  description: 'The id, name, digest or reference of one.',
  schema: { ...TEXT, minLength: 1 },
}

/** `/-/tags/findings`. */
const FINDINGS_CONTRACT: PathOperation = {
  summary: 'Findings of the mirrored tags',
  tags: ['Mirror'],
  parameters: [LIMIT, AFTER, TAG],
  responses: {
    200: uncached(
      'A page of tags.',
      object({
        ...STATE,
        tags: {
          ...LIST,
          items: object({
            id: TEXT,
            name: TEXT,
            sboms: LIST,
            notJudgedReason: MAYBE_TEXT,
            sbomGap: MAYBE_TEXT,
            recordGap: MAYBE_TEXT,
            vexGap: MAYBE_TEXT,
          }),
        },
        next: NEXT,
      }),
    ),
  },
}

/** `/-/tags/changes`. */
const FINDINGS_LOG_CONTRACT: PathOperation = {
  summary: 'What changed in the findings of tags',
  tags: ['Mirror'],
  parameters: [
    LIMIT,
    {
      name: 'since',
      in: 'query',
      description: 'A time, such as 7d, without `after`.',
      schema: SINCE,
    },
    AFTER,
    TAG,
  ],
  responses: {
    200: uncached(
      'A page of changes, the oldest first.',
      object({
        ...STATE,
        complete: { type: 'boolean' },
        knownSince: MAYBE_TEXT,
        changes: {
          ...LIST,
          items: object({
            at: TEXT,
            tag: ANY,
            cause: { ...TEXT, enum: CAUSES },
            snapshot: TEXT,
            newFindings: NUMBER,
            newFixable: NUMBER,
            goneFindings: NUMBER,
            goneFixable: NUMBER,
            newFixes: NUMBER,
            goneFixes: NUMBER,
            counts: ANY,
            changes: LIST,
          }),
        },
        next: NEXT,
        position: TEXT,
      }),
    ),
  },
}
