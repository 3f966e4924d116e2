import { createHash } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** How a registry of a test answers, where that is another way than the specification's. */
export interface RegistryManner {
  /** A user name and password that a token is given for; null: everybody may do everything. */
  login?: { user: string; password: string; scheme: 'bearer' | 'basic' } | null
  /** Where clients are sent for a token. */
  realm?: string
  /** Where a blob is read. */
  redirect?: (digest: string) => string
  /** Where an upload goes on. */
  location?: string
  /** What is said to be the digest of every manifest; null: nothing is said. */
  digest?: string | null
  /** The status of the root, by which clients see that it is a registry. */
  ping?: number
  /** What is sent in place of a blob. */
  blob?: (bytes: Buffer) => Buffer | 'endless' | 'broken'
  /** Answers a request in another way, or never; false: as all others. */
  own?: (url: string, response: ServerResponse) => boolean
  /** What is sent in place of a manifest. */
  manifest?: (bytes: Buffer) => Buffer
}

/** A registry of the distribution specification in memory: what the program needs of it, and whatever lies a test wants. */
export async function startRegistry(manner: RegistryManner = {}) {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, Buffer>()
  const uploads = new Map<string, Buffer>()
  const seen: { method: string; url: string; authorization: string | null }[] = []
  const state = { host: '', manner }
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request
    seen.push({ method, url, authorization: request.headers.authorization ?? null })
    void bodyOf(request).then((body) =>
      answer({ blobs, manifests, uploads, state }, { method, url, body, request, response }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  state.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { host: state.host, blobs, manifests, seen, behave: (next: RegistryManner) => void (state.manner = next) }
}

interface Stored {
  readonly blobs: Map<string, Buffer>
  readonly manifests: Map<string, Buffer>
  readonly uploads: Map<string, Buffer>
  readonly state: { readonly host: string; readonly manner: RegistryManner }
}

interface Call {
  readonly method: string
  readonly url: string
  readonly body: Buffer
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

export const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

function answer(stored: Stored, call: Call): void {
  const { url, response } = call
  if (url.startsWith('/token')) return giveToken(stored, call)
  if (!isAllowed(stored, call)) return
  if (stored.state.manner.own?.(url, response) === true) return
  if (url === '/v2/') return void response.writeHead(stored.state.manner.ping ?? 200).end()
  const [, kind = '', name = ''] = /^\/v2\/.+?\/(blobs\/uploads|blobs|manifests)\/?([^?]*)/.exec(url) ?? []
  if (kind === 'manifests') return ofManifest(stored, call, name)
  if (kind === 'blobs') return ofBlob(stored, call, name)
  if (kind === 'blobs/uploads') return ofUpload(stored, call, name)
  response.writeHead(404).end()
}

function giveToken({ state: { manner } }: Stored, { request, response, url }: Call): void {
  const { user, password } = manner.login ?? { user: '', password: '' }
  const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  if (request.headers.authorization !== wanted) return void response.writeHead(401).end()
  const scope = new URL(url, 'http://x').searchParams.get('scope') ?? ''
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ token: tokenFor(scope) }))
}

const tokenFor = (scope: string): string => Buffer.from(scope).toString('base64url')

function isAllowed({ state: { host, manner } }: Stored, { request, response, method }: Call): boolean {
  const { login } = manner
  if (!login) return true
  const given = request.headers.authorization ?? ''
  if (login.scheme === 'basic') {
    if (given === `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`) return true
    response.writeHead(401, { 'www-authenticate': 'Basic realm="registry"' }).end()
    return false
  }
  const scope = Buffer.from(given.replace('Bearer ', ''), 'base64url').toString()
  const needed = method === 'GET' || method === 'HEAD' ? ':pull' : ':pull,push'
  if (scope.startsWith('repository:') && scope.includes(needed)) return true
  const realm = manner.realm ?? `http://${host}/token`
  response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="test"` }).end()
  return false
}

function ofManifest({ manifests, state: { manner } }: Stored, { method, response, body }: Call, name: string): void {
  if (method === 'PUT') {
    manifests.set(name, body)
    manifests.set(digestOf(body), body)
    return void response.writeHead(201, { 'docker-content-digest': digestOf(body) }).end()
  }
  const found = manifests.get(name)
  if (found === undefined) return void response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
  const own = name.startsWith('sha256:') ? name : digestOf(found)
  const digest = manner.digest === undefined ? own : manner.digest
  const headers = digest === null ? {} : { 'docker-content-digest': digest }
  response.writeHead(200, headers).end(method === 'HEAD' ? '' : (manner.manifest?.(found) ?? found))
}

function ofBlob({ blobs, state: { manner } }: Stored, { method, response }: Call, digest: string): void {
  const found = blobs.get(digest)
  if (found === undefined) return void response.writeHead(404).end()
  if (method === 'HEAD') return void response.writeHead(200).end()
  if (manner.redirect !== undefined) return void response.writeHead(307, { location: manner.redirect(digest) }).end()
  const sent = manner.blob?.(found) ?? found
  response.writeHead(200)
  if (sent === 'broken') return void response.write(found.subarray(0, 9), () => response.destroy())
  if (sent !== 'endless') return void response.end(sent)
  const more = (): void => {
    while (response.write(Buffer.alloc(65_536)));
    response.once('drain', more)
  }
  more()
}

function ofUpload(
  { blobs, uploads, state: { manner } }: Stored,
  { method, url, response, body }: Call,
  id: string,
): void {
  const path = url.split('?')[0] ?? ''
  if (method === 'POST') {
    const next = String(uploads.size + 1)
    uploads.set(next, Buffer.alloc(0))
    return void response.writeHead(202, { location: manner.location ?? `${path}${next}?state=a` }).end()
  }
  const bytes = Buffer.concat([uploads.get(id) ?? Buffer.alloc(0), body])
  uploads.set(id, bytes)
  if (method === 'PATCH') return void response.writeHead(202, { location: `${path}?state=b` }).end()
  const digest = new URL(url, 'http://x').searchParams.get('digest') ?? ''
  if (digest !== digestOf(bytes)) return void response.writeHead(400).end('{"errors":[{"code":"DIGEST_INVALID"}]}')
  blobs.set(digest, bytes)
  response.writeHead(201).end()
}
