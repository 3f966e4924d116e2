import type { IncomingMessage, ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import type { PeoplePages, PeopleTools } from '../../server/people.ts'
import type { PinRequest } from '../../server/reading/request.ts'
import { askingOf } from '../../server/reading/asking.ts'
import { followPin } from '../../server/reading/thread.ts'
import { type Problem, methodNotAllowed, retryHeaders } from '../../server/http/problems.ts'
import { rawTarget } from '../../server/http/request-target.ts'
import { MirrorError } from '../../base/errors.ts'
import { isUnreadable } from '../../store/database/faults.ts'
import { errorOf } from '../../base/threads/failure.ts'
import { type RequestThread, createRequestThread } from '../../base/threads/request-thread.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import { sha256Hex } from '../../base/digest.ts'
import { type Page, UI } from './page.ts'
import { MOVED, PAGES } from './pages.ts'
import type { PageReply, PageRequest, PagesData } from './request.ts'
import type { AnswerParts } from '../../daemon/feature.ts'
import { readWeights } from '../../server/http/request-headers.ts'

/** The overview's path without its last slash. */
const BARE = UI.slice(0, -1)
/** Requests for pages that may wait for the thread. */
const MAX_WAITING = 200
const LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 512 }

/**
 * Creates the pages for people: `/` for clients that prefer HTML, and everything below `/-/ui/`. They are made on a thread
 * of their own, which starts with the first of them. They only read and refer to nothing elsewhere, and their script is one file of their own.
 */
export function createWeb({ config, version }: AnswerParts): (tools: PeopleTools) => PeoplePages {
  return (tools) => {
    const { style, script, icon } = readAssets()
    const data: PagesData = { config, version, style: style.path, script: script.path, icon: icon.path }
    const file = workerFile('pages.worker', import.meta.url)
    const thread = createRequestThread<PageRequest | PinRequest, PageReply>({
      file,
      data,
      limits: LIMITS,
      unref: true,
      maxWaiting: MAX_WAITING,
      what: 'pages',
    })
    tools.atEnd(() => thread.close())
    followPin(thread, tools.served.servedPin)
    const assets = new Map([style, script, icon].map((asset) => [asset.path, asset]))
    return {
      reference: async (document, base) => {
        const reply = await thread.ask(
          { ...REFERENCE, base, now: tools.now(), document, served: null },
          { isGone: () => false, address: null },
        )
        if (reply === null) throw new MirrorError('internal', 'the reference page was not made')
        return { html: reply.body, headers: SAFE }
      },
      pages: [...PAGES, ...MOVED].map(({ path, parameters }) => ({ path: UI + path, parameters })),
      answer(request, response, fault) {
        const { path, query } = rawTarget(request.url ?? '')
        const isRoot = path === '/' && prefersHtml(request.headers.accept)
        if (!isRoot && !path.startsWith(UI) && path !== BARE) return false
        const name = isRoot || path === BARE ? '' : path.slice(UI.length)
        const asset = assets.get(name)
        const moved = fault === undefined && isReading(request) ? movedTo(name, query) : null
        if (asset !== undefined && isReading(request)) sendAsset(request, response, asset)
        else if (moved !== null)
          redirect(response, new URL(tools.baseUrl(request)).pathname.replace(/\/+$/, '') + moved)
        else
          void answerPage({ tools, thread }, { request, response, name, query, fault }).catch((error: unknown) =>
            tools.failures.answer(error, request, response),
          )
        return true
      },
    }
  }
}

/** Returns where a former path of a page leads; null for any other path. */
function movedTo(name: string, query: string): string | null {
  const moved = MOVED.find(({ path }) => path === name)
  if (moved === undefined) return null
  return `${UI}${moved.to}${query === '' ? '' : `?${query}`}`
}

function redirect(response: ServerResponse, to: string): void {
  response.writeHead(308, { ...SAFE, 'Cache-Control': 'no-store', Location: to, 'Content-Length': 0 })
  response.end()
}

/** The request for the reference page: it depends on the document alone. */
const REFERENCE = { page: null, problem: null, query: '', origin: '', signedIn: true, status: null }

interface PageExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Path of the page below `UI`. */
  readonly name: string
  readonly query: string
  /** What is wrong with the request; undefined: nothing is known to be. */
  readonly fault: Problem | undefined
}

async function answerPage(
  { tools, thread }: { tools: PeopleTools; thread: RequestThread<PageRequest | PinRequest, PageReply> },
  { request, response, name, query, fault }: PageExchange,
): Promise<void> {
  const page = PAGES.find(({ path }) => path === name)
  const { problem: denied, signedIn } = judge(tools, request, page, query)
  const problem = denied ?? fault ?? null
  const { reports, now } = tools
  const report = (): ReturnType<typeof reports.all> => (signedIn ? reports.all() : reports.open())
  const status = page?.usesStatus === true && problem === null ? await reports.withNow(report()) : null
  const reached = new URL(tools.baseUrl(request))
  const asked: PageRequest = {
    page: page?.path ?? null,
    query,
    signedIn,
    status,
    now: now(),
    served: tools.served.servedPin?.stamp() ?? null,
    problem: problem === null ? null : { status: problem.status, message: problem.message },
    base: reached.pathname.replace(/\/+$/, ''),
    origin: reached.origin,
  }
  const reply = await thread.ask(asked, askingOf(response))
  if (reply === null) return
  if (reply.fault !== null) tools.failures.problem(errorOf(reply.fault), request)
  const more = { ...(problem?.headers ?? {}), ...(name === '' && { Vary: 'Accept' }) }
  response.writeHead(reply.status, {
    ...SAFE,
    ...retryHeaders(reply.status),
    ...more,
    'Cache-Control': 'no-store',
    'Content-Type': `${reply.type}; charset=utf-8`,
    ...(reply.file !== null && { 'Content-Disposition': `attachment; filename="${reply.file}"` }),
    'Content-Length': reply.body.byteLength,
  })
  if (request.method === 'HEAD') response.end()
  else response.end(reply.body)
}

/** Judges a request by its key; where keys cannot be read, by that: pages that need none are shown. */
function judgeKey({ access, failures }: PeopleTools, request: IncomingMessage): Problem | null {
  try {
    return access.judge(request)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    return failures.problem(error, request)
  }
}

/** Decides who may read a page; `signedIn`: the client brought a valid key, or needs none here. */
function judge(
  tools: PeopleTools,
  request: IncomingMessage,
  page: Page | undefined,
  query: string,
): { readonly problem: Problem | null; readonly signedIn: boolean } {
  if (!isReading(request)) return { problem: methodNotAllowed(request.method ?? ''), signedIn: false }
  const denied = judgeKey(tools, request)
  const hasSent = (request.headers.authorization ?? '').trim() !== ''
  const isPrivate = page?.isPrivate?.(new URLSearchParams(query)) === true
  const isRefused = page?.access === 'key' || isPrivate || hasSent
  if (denied !== null && isRefused) return { problem: denied, signedIn: false }
  const missing = page === undefined ? NO_PAGE : null
  return { problem: missing, signedIn: denied === null }
}

const NO_PAGE: Problem = {
  status: 404,
  error: 'not_found',
  message: 'there is no page at this path; the navigation above leads to all of them',
}

function isReading({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD'
}

/**
 * What a browser may do with a page: load its stylesheet, script and icon, ask and send its forms here, and nothing else. The script
 * cannot make markup or code of a text.
 */
const POLICY = [
  "default-src 'none'",
  ...["style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'", "form-action 'self'"],
  ...["base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"],
].join('; ')

/** Header fields of every page. */
const SAFE = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

function sendAsset(request: IncomingMessage, response: ServerResponse, asset: Asset): void {
  response.writeHead(200, {
    ...SAFE,
    'Cache-Control': 'public, max-age=31536000, immutable',
    'Content-Type': asset.type,
    'Content-Length': asset.body.length,
  })
  if (request.method === 'HEAD') response.end()
  else response.end(asset.body)
}

/** A file that pages refer to. */
interface Asset {
  /** Path below the prefix of the pages; it contains the content's digest, so it never changes its content. */
  readonly path: string
  readonly type: string
  readonly body: Buffer
}

/** Files that pages refer to, by their use. */
interface Assets {
  readonly style: Asset
  readonly script: Asset
  readonly icon: Asset
}

/** Reads the files that pages refer to. */
function readAssets(): Assets {
  return {
    style: readAsset('style.css', 'text/css; charset=utf-8'),
    script: readAsset('script.js', 'text/javascript; charset=utf-8'),
    icon: readAsset('icon.svg', 'image/svg+xml'),
  }
}

function readAsset(name: string, type: string): Asset {
  const body = readFileSync(new URL(`./templates/${name}`, import.meta.url))
  const digest = sha256Hex(body).slice(0, 16)
  const [stem = '', ending = ''] = name.split('.')
  return { path: `${stem}-${digest}.${ending}`, type, body }
}

/** Longest `Accept` value that is read, in characters; a longer one gets JSON. */
const MAX_LENGTH = 2048

/**
 * Reports whether an `Accept` value prefers an HTML page to JSON, as those of browsers do: it names HTML, and gives
 * JSON no higher weight. Programs that send none, or a wildcard alone, get JSON.
 */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined || accept.length > MAX_LENGTH) return false
  const ranges = readWeights(accept)
  const html = Math.max(...HTML.map((type) => ranges.get(type) ?? 0))
  const json = ranges.get('application/json') ?? 0
  return html > 0 && (html > json || (html === json && comesFirst(accept)))
}

const HTML = ['text/html', 'application/xhtml+xml']

/** Reports whether HTML is named before JSON: equal weights give no other preference. */
function comesFirst(accept: string): boolean {
  const text = accept.toLowerCase()
  const places = HTML.map((type) => text.indexOf(type)).filter((at) => at >= 0)
  return Math.min(...places) < text.indexOf('application/json')
}
