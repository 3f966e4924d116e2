import { addPrivateRoutes } from '../../server/access/private-routes.ts'
import type { PrivateRoute, RouteCall } from '../../server/access/private-route.ts'
import type { ServerPlugin, ServerTools } from '../../server/plugin.ts'
import { FINDINGS_CONTRACT, FINDINGS_LOG_CONTRACT } from './contract.ts'
import { respondUnstored } from '../../server/http/response.ts'
import { missingOf } from '../../server/snapshot/missing.ts'
import { refuseStale } from '../../server/snapshot/stale.ts'
import type { Config } from '../../config/schema.ts'
import { TAGS, findTags, tagRemovedAt } from '../../server/lookup/named.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { MissingOf } from './messages.ts'
import { type FindingsQuestion, answerFindings, listChanges, listTags } from './answers.ts'

const PATH = '/-/tags/findings'
const LOG_PATH = '/-/tags/changes'
/** A digest, whole or shortened, of an image: what takes a search of the catalog to find. */
const DIGEST = /(?:^|@)(?:sha\d+:)?[\da-f]{8,}$/i

/**
 * Creates `/-/tags/findings`, what records say about the SBOMs of the mirrored tags, and `/-/tags/changes`, what changed in
 * that. Both are of the catalog, and take what opens it: a local key.
 */
export function createFindingsRoutes(
  config: Config,
  reads: Pick<Reads, 'catalog' | 'changes' | 'snapshots' | 'runs' | 'osv'>,
): ServerPlugin {
  const idsOfDigest = (text: string): string[] =>
    DIGEST.test(text) ? findTags(reads.catalog, text).map(({ id }) => id) : []
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
        const incomplete = reads.catalog.whyIncomplete(TAGS)
        send(
          call,
          answerFindings(config, missing, (from) =>
            answer(from, { query: call.query, now: now(), idsOfDigest, removedAt, incomplete }),
          ),
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
