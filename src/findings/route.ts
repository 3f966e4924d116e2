import type { RouteTools } from '../api/access/private-routes.ts'
import type { PrivateRoute, RouteCall } from '../api/access/route-table.ts'
import { FINDINGS_CONTRACT, FINDINGS_LOG_CONTRACT } from '../api/contract/findings.ts'
import { respondUnstored } from '../api/http/response.ts'
import { refuseStale } from '../api/snapshot/stale.ts'
import type { Config } from '../config/schema.ts'
import type { FindingsReads } from '../store/findings/reads.ts'
import { answerFindings, listChanges, listTags } from './answers.ts'

const PATH = '/-/tags/findings'
const LOG_PATH = '/-/tags/changes'

/**
 * Creates `/-/tags/findings`, what records say about the SBOMs of the mirrored tags, and `/-/tags/changes`, what changed in
 * that. Both are of the catalog, and take what opens it: a local key.
 */
export function createFindingsRoutes(config: Config): (tools: RouteTools) => PrivateRoute[] {
  const route = (
    path: string,
    contract: PrivateRoute['contract'] & object,
    answer: (reads: FindingsReads, query: URLSearchParams, now: number) => object,
  ) => {
    return ({ served, now }: RouteTools): PrivateRoute => ({
      ...{ path, contract, source: 'catalog' },
      answer(call) {
        const origin = served.knownOrigin('osv')
        if (origin !== null) refuseStale(origin)
        send(
          call,
          answerFindings(config, (reads) => answer(reads, call.query, now())),
        )
        return undefined
      },
    })
  }
  const routes = [
    route(PATH, FINDINGS_CONTRACT, listTags),
    route(LOG_PATH, FINDINGS_LOG_CONTRACT, listChanges),
  ]
  return (tools) => routes.map((make) => make(tools))
}

function send({ request, response }: RouteCall, answer: object): void {
  const body = Buffer.from(JSON.stringify(answer))
  respondUnstored({ request, response }, { body, coding: 'identity', vary: null, origin: null })
}
