import type { IncomingMessage, ServerResponse } from 'node:http'
import { hostname, networkInterfaces } from 'node:os'
import type { Config } from '../../../config/schema.ts'
import { isLoopbackHost } from '../../../config/kinds/urls.ts'
import { shareFor } from '../../../base/connections/responses.ts'
import { problems, uncached } from '../../../server/contract/answers.ts'
import type { PathOperation } from '../../../server/contract/openapi.ts'
import { sendProblem } from '../../../server/http/problems.ts'
import { respondUnstored } from '../../../server/http/response.ts'
import { readRequestBody } from '../../../base/connections/bodies.ts'
import type { ServerPlugin } from '../../../server/plugin.ts'
import type { KeyTrust } from '../../bundles/format/keys.ts'
import type { FleetKnowledge } from '../knowledge.ts'
import { LOOK_BYTES, LOOK_PATH, type LookAnswer, openLook } from './message.ts'

/** What a mirror takes messages with. */
interface LookParts {
  readonly known: Pick<FleetKnowledge, 'own' | 'report' | 'fault'>
  /** Throws `config`. */
  readonly trust: () => KeyTrust
  /** Looks for this generation, which is about to be published. */
  readonly look: (generation: number) => void
}

/**
 * Creates `POST /-/fleet/look`, by which the leader names the next generation. It takes no key: a trusted key of bundles signed
 * the message for this mirror. What a message brings about is a look at the store, and only for a generation that was not seen.
 */
export function lookRoute(parts: LookParts): ServerPlugin {
  return (app, _tools, done) => {
    const taken = app.onUnreadBody((request, response) => answerLook(parts, request, response))
    app.post(LOOK_PATH, { schema: CONTRACT, ...taken })
    done()
  }
}

async function answerLook(parts: LookParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readRequestBody(request, { bytes: LOOK_BYTES, share: shareFor(response) })
  if (body === 'gone') return void response.destroy()
  if (typeof body === 'string') return refuse(request, response, body === 'too_large' ? 413 : 400, 'bad_request')
  const generation = generationIn(parts, body)
  if (generation === null) return refuse(request, response, 403, 'forbidden')
  const { report } = parts.known
  if (generation > (report?.newest?.generation ?? 0)) parts.look(generation)
  const answer = Buffer.from(JSON.stringify(answerOf(parts.known)))
  respondUnstored({ request, response }, { body: answer, coding: 'identity', vary: null, origin: null })
}

/** Null: no trusted key signed it for this mirror. */
function generationIn({ known, trust }: LookParts, body: Buffer): number | null {
  if (known.own === null) return null
  const keys = trust()
  try {
    return openLook(body, known.own, keys)
  } catch {
    return null // the answer reveals no reason
  }
}

function answerOf({ report, fault }: LookParts['known']): LookAnswer {
  const follows = fault === null && report?.failing === null
  return { generation: follows ? (report.applied?.generation ?? 0) : 0, took: report?.took ?? null }
}

/** The rest of the body may not be read, so the connection ends. */
function refuse(request: IncomingMessage, response: ServerResponse, status: number, error: string): void {
  const message = 'this takes signed messages of the mirror that leads the fleet'
  sendProblem(request, response, { status, error, message, headers: { Connection: 'close' } })
}

const CONTRACT: PathOperation = {
  summary: 'The next generation of the fleet, named by its leader',
  tags: ['Mirror'],
  requestBody: {
    description: 'Signed by a key of bundles.',
    required: true,
    content: { 'application/json': { schema: { type: 'object', required: ['generation', 'signatures'] } } },
  },
  responses: {
    200: uncached('What is stored here.', { type: 'object', required: ['generation', 'took'] }),
    ...problems('message', 400, 403, 413, 500),
  },
}

/**
 * Returns where the other mirrors of a fleet reach this one; null: nowhere. `listening`: the URL of its listener. That comes first,
 * because all readers behind a balancer may have the same public URL; a certificate is for that URL. Whatever answers
 * elsewhere is no harm: a message is for one mirror.
 */
export function addressForMirrors(
  { server, fleet }: Pick<Config, 'server' | 'fleet'>,
  listening: string,
  interfaces: () => ReturnType<typeof networkInterfaces> = networkInterfaces,
): string | null {
  const { host, socket, certFile, publicUrl } = server
  if (socket !== null || !URL.canParse(listening)) return publicUrl
  if (isLoopbackHost(new URL(listening).hostname) && !WILDCARDS.has(host))
    return fleet.url?.startsWith('file:') === true ? listening : publicUrl
  if (certFile !== null && publicUrl !== null) return publicUrl
  const url = new URL(listening)
  if (WILDCARDS.has(host)) url.hostname = (certFile === null ? onlyAddress(interfaces) : null) ?? hostname()
  return url.origin
}

/**
 * Returns the IPv4 address of a machine that has one: the name of a container, such as a pod of Kubernetes, is known to no other. Null: it
 * has several, or they cannot be listed.
 */
function onlyAddress(interfaces: () => ReturnType<typeof networkInterfaces>): string | null {
  try {
    const all = Object.values(interfaces()).flatMap((given = []) => given)
    const [first, ...others] = all.filter(({ internal, family }) => !internal && family === 'IPv4')
    return others.length === 0 ? (first?.address ?? null) : null
  } catch {
    return null // a sandbox may forbid it
  }
}

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
