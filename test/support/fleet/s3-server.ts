import { createHash, randomBytes } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { sha256Hex } from '../../../src/base/digest.ts'

/** A request to the stand-in, before it is carried out. */
export interface S3Request {
  readonly method: string
  /** Without the bucket. */
  readonly key: string
  /** `partNumber`, `uploadId`, `uploads`, `list-type` … */
  readonly query: URLSearchParams
  readonly count: number
}

/**
 * What goes wrong with a request: `lost-answer`: it takes effect, and the connection is cut; `lost-request`: it has no effect, and the
 * connection is cut; `half`: half of the body is sent; `stall`: headers, and no byte of the body; `silent`: no answer;
 * `endless`: a body of unannounced length that goes on until the connection is closed; `whole`: a range is ignored; `no-token`: a list ends without
 * the name of its next page, and says that there is one; `page`: 200 with a page of HTML, nothing is done; otherwise an error answer with this status and code, nothing is done.
 */
export type S3Fault =
  | 'lost-answer'
  | 'lost-request'
  | 'half'
  | 'stall'
  | 'endless'
  | 'silent'
  | 'whole'
  | 'no-token'
  | 'page'
  | { readonly status: number; readonly code: string }

/** Options of the stand-in. */
interface S3ServerOptions {
  /** Checks a condition, and writes later: another request is checked in between. */
  readonly checksThenActs?: boolean
  /** Ignores conditions. */
  readonly ignoresConditions?: boolean
  /** Certificate for `localhost`. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

interface Stored {
  readonly bytes: Buffer
  readonly etag: string
  readonly at: number
}

/** A small server with the part of S3's protocol that the program uses, and with faults. */
export interface S3Server {
  readonly endpoint: string
  /** Decides what goes wrong with a request. */
  script: (request: S3Request) => S3Fault | undefined
  readonly objects: Map<string, Stored>
  /** Uploads that are neither completed nor aborted. */
  readonly uploads: Map<string, Map<number, Buffer>>
  /** Methods and keys of all requests. */
  readonly log: string[]
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly headers?: Record<string, string | number>
  readonly body?: Buffer | string
}

const refusal = (status: number, code: string): Answer => ({
  status,
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code} of the test</Message></Error>`,
})

/** Starts the stand-in on a free port of loopback; any bucket exists but `missing-bucket`. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const state: State = { objects: new Map(), uploads: new Map(), waiting: new Map(), options }
  const log: string[] = []
  let count = 0
  const answerTo = (request: IncomingMessage, response: ServerResponse): void => {
    void receive(request).then(async (body) => {
      const url = new URL(request.url ?? '/', 'http://s3')
      const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/.exec(url.pathname) ?? []
      const asked = { method: request.method ?? '', key, query: url.searchParams, count: ++count }
      log.push(`${asked.method} ${key}${url.search}`)
      const fault = own.script(asked)
      if (fault === 'silent') return
      if (fault === 'lost-request') return void request.socket.destroy()
      if (fault === 'page') return send(response, { status: 200, body: '<html></html>' }, asked.method === 'HEAD')
      if (typeof fault === 'object') return send(response, refusal(fault.status, fault.code))
      if (fault === 'whole') delete request.headers.range
      const known = bucket !== 'missing-bucket'
      const answer = known ? await act(state, asked, request, body) : refusal(404, 'NoSuchBucket')
      if (fault === 'lost-answer') return void request.socket.destroy()
      if (fault === 'no-token')
        return send(response, { ...answer, body: String(answer.body).replace(/<NextContinuationToken>.*?<\/\w+>/, '') })
      send(response, answer, asked.method === 'HEAD', fault)
    })
  }
  const { tls } = options
  const server = tls === undefined ? createServer(answerTo) : createTlsServer(tls, answerTo)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const own: S3Server = {
    endpoint: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    script: () => undefined,
    objects: state.objects,
    uploads: state.uploads,
    log,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return own
}

interface State {
  readonly objects: Map<string, Stored>
  readonly uploads: Map<string, Map<number, Buffer>>
  /** Writes that passed their check, by key, with what lets them go on. */
  readonly waiting: Map<string, () => void>
  readonly options: S3ServerOptions
}

async function receive(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

function send(response: ServerResponse, answer: Answer, isHead = false, fault?: S3Fault): void {
  const body = Buffer.from(answer.body ?? '')
  if (fault === 'endless') {
    response.writeHead(200, { ...answer.headers })
    const timer = setInterval(() => response.write(Buffer.alloc(1 << 14)), 1)
    response.once('close', () => clearInterval(timer))
    return
  }
  response.writeHead(answer.status, { 'content-length': body.length, ...answer.headers })
  if (fault === 'half' || fault === 'stall') {
    response.write(body.subarray(0, fault === 'half' ? body.length >> 1 : 0))
    response.flushHeaders()
    if (fault === 'half') setImmediate(() => response.socket?.destroySoon())
    return
  }
  response.end(isHead ? undefined : body)
}

async function act(
  state: State,
  { method, key, query }: S3Request,
  { headers }: IncomingMessage,
  body: Buffer,
): Promise<Answer> {
  const { objects, uploads } = state
  const upload = query.get('uploadId')
  if (method === 'GET' && key === '') return list(objects, query)
  if (method === 'POST' && query.has('uploads')) return startUpload(uploads)
  if (upload !== null && !uploads.has(upload)) return refusal(404, 'NoSuchUpload')
  if (method === 'PUT' && upload !== null) {
    uploads.get(upload)?.set(Number(query.get('partNumber')), body)
    return { status: 200, headers: { etag: `"${sha256Hex(body)}"` } }
  }
  if (method === 'POST' && upload !== null) {
    const parts = [...(uploads.get(upload) ?? [])].sort(([a], [b]) => a - b)
    const answer = await write(state, key, headers, Buffer.concat(parts.map(([, part]) => part)))
    if (answer.status === 200) uploads.delete(upload)
    const etag = String(answer.headers?.['etag'] ?? '')
    const xml = `<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`
    return answer.status === 200 ? { status: 200, body: xml } : answer
  }
  if (method === 'PUT') {
    const claimed = headers['x-amz-content-sha256']
    if (claimed !== sha256Hex(body)) return refusal(400, 'XAmzContentSHA256Mismatch')
    return write(state, key, headers, body)
  }
  if (method === 'DELETE') {
    if (upload === null) objects.delete(key)
    else uploads.delete(upload)
    return { status: 204 }
  }
  return read(objects.get(key), headers.range)
}

async function write(
  { objects, options, waiting }: State,
  key: string,
  headers: IncomingMessage['headers'],
  bytes: Buffer,
): Promise<Answer> {
  const found = objects.get(key)
  if (options.ignoresConditions !== true) {
    if (headers['if-none-match'] === '*' && found !== undefined) return refusal(412, 'PreconditionFailed')
    const match = headers['if-match']
    if (match !== undefined && found === undefined) return refusal(404, 'NoSuchKey')
    if (match !== undefined && match !== found?.etag) return refusal(412, 'PreconditionFailed')
  }
  if (options.checksThenActs === true && (headers['if-match'] ?? headers['if-none-match']))
    await anotherChecked(waiting, key)
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
  objects.set(key, { bytes, etag, at: Date.now() })
  return { status: 200, headers: { etag, 'content-length': 0 } }
}

function read(found: Stored | undefined, range: string | undefined): Answer {
  if (found === undefined) return refusal(404, 'NoSuchKey')
  const { bytes, etag, at } = found
  const headers = { etag, 'last-modified': new Date(at).toUTCString() }
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? -1)
  if (from < 0) return { status: 200, headers, body: bytes }
  if (from >= bytes.length) return refusal(416, 'InvalidRange')
  const part = `bytes ${from}-${bytes.length - 1}/${bytes.length}`
  return { status: 206, headers: { ...headers, 'content-range': part }, body: bytes.subarray(from) }
}

/** Resolves when a second write of the same key has passed its check, or after a while without one. */
function anotherChecked(waiting: State['waiting'], key: string): Promise<void> {
  const other = waiting.get(key)
  if (other !== undefined) {
    other()
    return Promise.resolve()
  }
  return new Promise((resolve) => {
    const go = (): void => {
      clearTimeout(timer)
      waiting.delete(key)
      resolve()
    }
    const timer = setTimeout(go, 100)
    waiting.set(key, go)
  })
}

/** Pages of two, so that each list of the tests has several. */
function list(objects: Map<string, Stored>, query: URLSearchParams): Answer {
  const prefix = query.get('prefix') ?? ''
  const after = query.get('continuation-token') ?? ''
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort()
  const rows = keys.slice(0, 2).map((key) => {
    const { bytes, etag, at } = objects.get(key) as Stored
    const time = new Date(at).toISOString()
    return `<Contents><Key>${key}</Key><LastModified>${time}</LastModified><ETag>${etag}</ETag><Size>${bytes.length}</Size></Contents>`
  })
  const isCut = keys.length > 2
  const next = isCut ? `<NextContinuationToken>${keys[1]}</NextContinuationToken>` : ''
  const end = `<IsTruncated>${isCut}</IsTruncated>${next}`
  return { status: 200, body: `<ListBucketResult>${rows.join('')}${end}</ListBucketResult>` }
}

function startUpload(uploads: Map<string, Map<number, Buffer>>): Answer {
  const id = randomBytes(8).toString('hex')
  uploads.set(id, new Map())
  const xml = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`
  return { status: 200, body: xml }
}
