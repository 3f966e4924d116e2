import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { SourceName } from '../base/domain/sources.ts'
import type { ContractEntry, JsonSchema, PathContract, PathOperation } from './contract/openapi.ts'
import type { HttpHandler } from '../base/connections/server.ts'
import { refuseMalformed } from './http/node-server.ts'
import {
  type Failures,
  type Problem,
  methodNotAllowed,
  pathNotFound,
  problemBody,
  problemHeaders,
  sendProblem,
} from './http/problems.ts'
import { rawTarget } from './http/request-target.ts'

declare module 'fastify' {
  /** A route's schema is what the OpenAPI document says of it; its answers are bytes, so nothing is compiled from it. */
  interface FastifySchema {
    summary?: string
    description?: string
    tags?: readonly string[]
    parameters?: PathOperation['parameters']
    requestBody?: PathOperation['requestBody']
    responses?: PathOperation['responses']
    security?: PathOperation['security']
  }
  interface FastifyContextConfig {
    /** The path in the contract, where it differs from the pattern of the route. */
    path?: string
    /** Another form of a path that has a route: the contract does not name it. */
    isAlias?: boolean
    /** The list of `/` that names it; none when not given. */
    listed?: keyof ListedPaths
    /** What opens it; nothing is needed when not given. */
    opensWith?: 'key' | 'link'
    /** Whose snapshot its errors name. */
    source?: SourceName
    /** Parameters that the contract does not name are ignored. */
    takesAnyQuery?: boolean
  }
  interface FastifyInstance {
    /** Has a part answer what no route takes: other methods, unknown paths, and those that cannot be decoded. */
    answerRest(part: RestOfPaths): void
    /** Returns what every route declares, by path. */
    contracts(): ContractEntry[]
    /** Returns the paths that `/` names, in the order of their routes. */
    listed(): ListedPaths
    /** Adds schemas to which contracts refer by name; they are loaded with the API document. */
    bodySchemas(load: LoadSchemas): void
    /** Loads them all. */
    loadSchemas(): Promise<BodySchemas>
    /** Makes one segment of the several that a parameter of this path may have. */
    joinSegments(path: string): void
    /** Returns the handler of a route that answers on Node's own request and response: what is mirrored is sent as it is. */
    onNode(answer: NodeAnswer): NodeHandler
    /**
     * Returns what a route needs to take a body that is read as it comes: it is answered before Fastify would look at the
     * body's type and length.
     */
    onUnreadBody(answer: NodeAnswer): { readonly onRequest: NodeHandler; readonly handler: () => never }
  }
}

/** What is mirrored, and the mirror's own paths. */
type ListedPaths = Readonly<Record<'mirrored' | 'own', readonly string[]>>

/** Schemas of bodies, by their names. */
type BodySchemas = Readonly<Record<string, JsonSchema>>
type LoadSchemas = () => Promise<BodySchemas>

/** Answers a request below its paths that no route takes; false when it is for another path. */
export type RestOfPaths = (request: IncomingMessage, response: ServerResponse) => boolean

/** Answers on Node's own request and response; what it throws is the answer. False: it has none, which is a 404. */
export type NodeAnswer = (request: IncomingMessage, response: ServerResponse) => unknown

type NodeHandler = (request: FastifyRequest, reply: FastifyReply) => void

/** Longest segment of a path that a route takes: that of a whole head. */
const LONGEST_SEGMENT = 64 * 1024

interface AppParts {
  readonly failures: Failures
  readonly createHttpServer: (routes: HttpHandler) => Server
  /** Returns the target that is routed in place of the given one. */
  readonly rewrite: (target: string) => string
  readonly joinSegments: (path: string) => void
}

/** Creates Fastify around a server of our making; every error that it can meet has the form of ours. */
export function createApp({ failures, createHttpServer, rewrite, joinSegments }: AppParts): FastifyInstance {
  const rest: RestOfPaths[] = []
  const answerRest: RestOfPaths = (request, response) => rest.some((part) => part(request, response))
  const app = Fastify({
    serverFactory: createHttpServer,
    clientErrorHandler: refuseMalformed,
    rewriteUrl: ({ url = '' }) => rewrite(url),
    routerOptions: { maxParamLength: LONGEST_SEGMENT },
    return503OnClosing: false,
    // Named so that the compilers of schemas, 90 modules, are not loaded: answers are bytes, and messages are our own.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors(_error, request, reply) {
      // The router's only complaint here: a path that is not percent-encoded UTF-8.
      if (answerRest(request.raw, reply.raw)) return
      const message = 'the path cannot be decoded'
      sendProblem(request.raw, reply.raw, { status: 400, error: 'bad_request', message })
    },
  })
  app.setErrorHandler((error, request, reply) => sendReply(reply, failures.problem(error, request.raw)))
  app.decorate('answerRest', (part: RestOfPaths) => void rest.push(part))
  app.decorate('joinSegments', joinSegments)
  collectContracts(app)
  const schemas: LoadSchemas[] = []
  app.decorate('bodySchemas', (load: LoadSchemas) => void schemas.push(load))
  app.decorate('loadSchemas', async (): Promise<BodySchemas> => {
    const all = await Promise.all(schemas.map((load) => load()))
    return Object.fromEntries(all.flatMap((one) => Object.entries(one)))
  })
  const onNode = answeringOnNode(failures)
  app.decorate('onNode', onNode)
  app.decorate('onUnreadBody', (answer: NodeAnswer) => ({ onRequest: onNode(answer), handler: answeredBefore }))
  app.addHook('onRequest', (request, reply, done) => {
    // Before the body is read: a route for unknown paths would parse it first.
    if (!request.is404 && isMeant(request)) return done()
    if (!answerRest(request.raw, reply.raw)) sendProblem(request.raw, reply.raw, noRoute(app, request))
  })
  return app
}

/** 405 where a route reads, 404 elsewhere. */
function noRoute(app: FastifyInstance, { method, raw, originalUrl }: FastifyRequest): Problem {
  return isReadAt(app, rawTarget(raw.url ?? '').path)
    ? methodNotAllowed(method)
    : pathNotFound(rawTarget(originalUrl).path)
}

/** Reports whether a route reads at this path, which can be decoded. */
export function isReadAt(app: FastifyInstance, path: string): boolean {
  if (!path.startsWith('/')) return false
  // Its type leaves out that there may be none.
  const found = app.findRoute({ method: 'GET', url: path }) as { readonly params: object } | null
  return found !== null && !hasEmpty(found.params)
}

/** Reports whether the parameters of the route that the router found are not empty. */
function isMeant({ params }: FastifyRequest): boolean {
  return !hasEmpty(params as object)
}

function hasEmpty(params: object): boolean {
  return Object.values(params).includes('')
}

/** Collects what routes declare from now on. HEAD is answered as GET is, so it has no contract of its own. */
function collectContracts(app: FastifyInstance): void {
  const declared = new Map<string, PathContract>()
  const listed = { mirrored: [] as string[], own: [] as string[] }
  app.addHook('onRoute', ({ url, method, schema, config = {} }) => {
    const { summary, responses, tags } = schema ?? {}
    if (summary === undefined || responses === undefined || tags === undefined || config.isAlias === true) return
    const path = config.path ?? contractPath(url)
    const operation = { ...schema, summary, responses, tags }
    for (const one of [method].flat()) {
      if (one === 'HEAD') continue
      if (config.listed !== undefined) listed[config.listed].push(path)
      declared.set(path, { ...declared.get(path), [one.toLowerCase()]: operation })
    }
  })
  app.decorate('contracts', () => [...declared])
  app.decorate('listed', () => listed)
}

/** Returns the pattern of a path such as `/v1/tags/{id}` for Fastify's router. */
export function patternOf(path: string): string {
  return path.replaceAll(':', '::').replace(/\{(\w+)\+?\}/g, ':$1')
}

function contractPath(pattern: string): string {
  return pattern.replace(/(?<!:):(\w+)/g, '{$1}').replaceAll('::', ':')
}

function answeringOnNode(failures: Failures): FastifyInstance['onNode'] {
  return (answer) =>
    ({ raw: request }, reply) => {
      const { raw: response } = reply.hijack()
      const fail = (error: unknown): void => failures.answer(error, request, response)
      try {
        const answered = answer(request, response)
        if (answered === false) sendProblem(request, response, pathNotFound(rawTarget(request.url ?? '').path))
        if (answered instanceof Promise) answered.catch(fail)
      } catch (error) {
        fail(error)
      }
    }
}

function answeredBefore(): never {
  throw new Error('the request was answered before')
}

/** Sends a problem by Fastify's reply. */
function sendReply(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problemHeaders(problem)).send(problemBody(problem))
}

function noCompiler(): never {
  throw new Error('a route has a schema that is to be compiled, for which no compiler is loaded')
}
