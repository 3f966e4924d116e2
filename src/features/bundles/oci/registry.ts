import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { PRIVATE_FILE } from '../../../base/files.ts'
import { isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { answerError } from '../../../upstream/http/errors.ts'
import type { RawAnswer } from '../../../upstream/http/transport.ts'
import { type Descriptor, EMPTY, MANIFEST_TYPE, MOST_MANIFEST, describeBytes } from './artifact.ts'
import { isLoopbackName, isPrivateHost } from './hosts.ts'
import { type RegistryReference, isDigest, writeReference } from '../../../config/kinds/oci-reference.ts'
import { type NetworkSettings, type RegistrySession, openSession, piecesOf, readSmall } from './session.ts'

/** A repository of a registry, open for the calls of the distribution specification (OCI, 1.1). Close its session. */
interface Repository {
  readonly session: RegistrySession
  readonly reference: RegistryReference
  /** Path of its calls. */
  readonly base: string
}

/** A file as the manifest names it. */
type FileDescriptor = Pick<Descriptor, 'digest' | 'size'>

/** Called with the bytes so far. */
type OnBytes = (done: number) => void

/** Bytes that are sent in one request: a registry writes them before it answers. */
const PIECE = 16 * 2 ** 20
const MOST_ERROR = 64 * 1024
const MOST_REDIRECTS = 5

/** Opens a repository, for reading or also for writing. */
export function openRepository(
  settings: NetworkSettings,
  reference: RegistryReference,
  access: 'pull' | 'pull,push',
): Repository {
  const { host, repository } = reference
  const session = openSession(settings, host, `repository:${repository}:${access}`)
  return { session, reference, base: `/v2/${repository}` }
}

/** Types of manifests of which a name may be: a registry that is not asked for all of them answers 404 for the others. */
const ANY_MANIFEST = [
  MANIFEST_TYPE,
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ')

/** Throws where a server does not answer as a registry does: its 404 would say nothing. */
export async function expectRegistry({ session, reference }: Repository): Promise<void> {
  const answer = await session.send({ method: 'GET', path: '/v2/' })
  await expect(answer, reference.host, 'it does not answer as a registry', 200)
  await answer.body.dump()
}

/**
 * Whether the registry has a manifest of the name. Throws for every answer that says neither. Where an answer does not name the
 * digest that was asked for, its bytes decide.
 */
export async function hasManifest(repository: Repository): Promise<boolean> {
  const { session, reference, base } = repository
  const { name } = reference
  const path = `${base}/manifests/${name}`
  const answer = await session.send({ method: 'HEAD', path, headers: { accept: ANY_MANIFEST } })
  await expect(answer, reference, 'it cannot be looked at', 200, 404)
  await answer.body.dump()
  if (answer.status === 404) return false
  if (isDigest(name) && textOf(answer, 'docker-content-digest') !== name) await readManifest(repository, ANY_MANIFEST)
  return true
}

/** Throws for a 404 that is not of the registry's own words: what stands before it says nothing of a manifest. */
export async function expectOwn404({ session, reference, base }: Repository): Promise<void> {
  const path = `${base}/manifests/${reference.name}`
  const answer = await session.send({ method: 'GET', path, headers: { accept: ANY_MANIFEST } })
  await expect(answer, reference, 'it cannot be looked at', 404)
  const said = await readSmall(answer, MOST_ERROR, 'the answer')
  if (textOf(answer, 'docker-distribution-api-version') !== null || isErrorOfRegistry(said)) return
  const place = `${reference.host}/${reference.repository}`
  throw new MirrorError(
    'upstream_shape',
    `${place}: its 404 is not that of a registry, so it says nothing of the image`,
  )
}

/** Whether a body is an error of the distribution specification: its codes are of capital letters and underscores. */
function isErrorOfRegistry(body: Buffer): boolean {
  try {
    const said: unknown = JSON.parse(jsonTextOf(body))
    const listed: unknown = isObject(said) ? said['errors'] : null
    const errors: readonly unknown[] = Array.isArray(listed) ? listed : []
    return errors.some((one) => isObject(one) && typeof one['code'] === 'string' && /^[A-Z_]+$/.test(one['code']))
  } catch {
    return false // a page, or what is cut off
  }
}

/** Returns the digest that the name has now: as the registry says it, or of the bytes where it does not. */
export async function digestOfName(repository: Repository): Promise<string> {
  const { session, reference, base } = repository
  const path = `${base}/manifests/${reference.name}`
  const answer = await session.send({ method: 'HEAD', path, headers: { accept: ANY_MANIFEST } })
  await expect(answer, reference, 'it cannot be looked at', 200)
  await answer.body.dump()
  const named = textOf(answer, 'docker-content-digest') ?? ''
  return isDigest(named) ? named : `sha256:${sha256Hex(await readManifest(repository, ANY_MANIFEST))}`
}

/** Returns the bytes of the manifest. Throws `bundle` where they are not of the digest that was asked for. */
export async function readManifest({ session, reference, base }: Repository, accept = MANIFEST_TYPE): Promise<Buffer> {
  const { name } = reference
  const path = `${base}/manifests/${name}`
  const answer = await session.send({ method: 'GET', path, headers: { accept } })
  await expect(answer, reference, 'the manifest cannot be read', 200)
  const place = writeReference(reference)
  const bytes = await readSmall(answer, MOST_MANIFEST, `the manifest of ${place}`)
  const digest = `sha256:${sha256Hex(bytes)}`
  if (!isDigest(name) || name === digest) return bytes
  throw new MirrorError('bundle', `${place} is refused: the registry answers with a manifest of the digest ${digest}`)
}

/** Writes a blob to a new file, no further than its size, and verifies its digest. */
export async function pullBlob(
  repository: Repository,
  blob: FileDescriptor,
  path: string,
  onBytes: OnBytes,
): Promise<void> {
  const { reference } = repository
  const answer = await openBlob(repository, blob.digest)
  await expect(answer, reference, `the file ${blob.digest} cannot be read`, 200)
  const file = await open(path, 'wx', PRIVATE_FILE)
  try {
    await receive(answer, file, { ...blob, place: writeReference(reference), onBytes })
  } finally {
    await file.close()
  }
}

/** Uploads a file as a blob, unless the registry has it. */
export async function pushFile(repository: Repository, path: string, digest: string, onBytes: OnBytes): Promise<void> {
  if (await hasBlob(repository, digest)) return
  let done = 0
  await upload(
    repository,
    digest,
    piecesOfFile(path, (bytes) => onBytes((done += bytes))),
  )
}

/** Uploads the empty configuration, and the manifest under the name of the reference. Returns the manifest's digest. */
export async function pushManifest(repository: Repository, manifest: Buffer): Promise<string> {
  const { session, reference, base } = repository
  const empty = describeBytes(EMPTY, '')
  if (!(await hasBlob(repository, empty.digest))) await upload(repository, empty.digest, [EMPTY])
  const path = `${base}/manifests/${reference.name}`
  const answer = await session.send({ method: 'PUT', path, headers: { 'content-type': MANIFEST_TYPE }, body: manifest })
  await expect(answer, reference, 'the manifest is refused', 201)
  await answer.body.dump()
  return `sha256:${sha256Hex(manifest)}`
}

async function hasBlob({ session, base }: Repository, digest: string): Promise<boolean> {
  const answer = await session.send({ method: 'HEAD', path: `${base}/blobs/${digest}` })
  await answer.body.dump()
  return answer.status === 200
}

/** Uploads a blob in pieces (distribution specification, "Pushing a blob in chunks"). */
async function upload(
  { session, reference, base }: Repository,
  digest: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const began = await session.send({ method: 'POST', path: `${base}/blobs/uploads/` })
  await expect(began, reference, 'an upload is refused', 202)
  let at = 0
  let next = locationOf(began, reference)
  await began.body.dump()
  for await (const piece of pieces) {
    const range = { 'content-range': `${at}-${at + piece.length - 1}` }
    const headers = { 'content-type': 'application/octet-stream', ...range }
    const answer = await session.send({ method: 'PATCH', path: next, headers, body: piece })
    await expect(answer, reference, `the upload broke off at byte ${at}`, 202, 201, 204)
    next = locationOf(answer, reference)
    await answer.body.dump()
    at += piece.length
  }
  const url = new URL(next, 'http://registry')
  url.searchParams.set('digest', digest)
  const ended = await session.send({ method: 'PUT', path: url.pathname + url.search })
  await expect(ended, reference, 'the upload was not taken', 201, 204)
  await ended.body.dump()
}

/** Opens the file when the first piece is asked for: an upload that is refused before leaves nothing open. */
async function* piecesOfFile(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const piece of createReadStream(path, { highWaterMark: PIECE })) {
    const bytes = piece as Buffer
    yield bytes
    onBytes(bytes.length)
  }
}

/** Opens a blob, which a registry may keep at another host: there it is asked for without a credential. */
async function openBlob({ session, reference, base }: Repository, digest: string): Promise<RawAnswer> {
  let answer = await session.send({ method: 'GET', path: `${base}/blobs/${digest}` })
  for (let count = 0; isRedirect(answer.status); count++) {
    const url = URL.parse(textOf(answer, 'location') ?? '', `https://${reference.host}`)
    await answer.body.dump()
    const why = count === MOST_REDIRECTS ? 'too often' : whyNotFollowed(url, reference, session)
    if (url === null || why !== null)
      throw new MirrorError(
        'upstream_status',
        `${writeReference(reference)}: the registry redirects ${why}, and this is not followed`,
      )
    answer = await session.follow(url)
  }
  return answer
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status)
}

function whyNotFollowed(url: URL | null, { host }: RegistryReference, { isTrusted }: RegistrySession): string | null {
  if (url === null) return 'to nowhere'
  if (url.protocol !== 'https:') return `to ${url.protocol}//${url.host} without TLS`
  const isInside = isPrivateHost(url.hostname) && !isLoopbackName(host) && !isTrusted(url.hostname)
  return isInside && url.host !== host ? `to ${url.host}, a private address that network.trusted does not name` : null
}

/** What is received. */
interface Receiving extends Pick<Descriptor, 'digest' | 'size'> {
  readonly place: string
  readonly onBytes: (done: number) => void
}

/** Writes a body to a file, no further than its size. Throws `bundle` for other bytes than those of its digest. */
async function receive(
  answer: RawAnswer,
  file: FileHandle,
  { digest, size, place, onBytes }: Receiving,
): Promise<void> {
  const hash = createHash('sha256')
  let done = 0
  for await (const piece of piecesOf(answer, `${place}: the file`)) {
    done += piece.length
    if (done > size) {
      answer.body.destroy()
      throw new MirrorError(
        'bundle',
        `${place} is refused: its file has more than the ${size} bytes that the manifest names`,
      )
    }
    hash.update(piece)
    await file.writeFile(piece)
    onBytes(done)
  }
  if (done < size)
    throw new MirrorError('upstream_unreachable', `${place}: the file broke off at byte ${done} of ${size}: try again`)
  if (`sha256:${hash.digest('hex')}` === digest) return
  throw new MirrorError('bundle', `${place} is refused: its file does not have the digest ${digest}`)
}

/** Returns where an upload goes on, within the registry. */
function locationOf(answer: RawAnswer, { host }: RegistryReference): string {
  const url = URL.parse(textOf(answer, 'location') ?? '', `http://${host}`)
  if (url === null || url.host !== host)
    throw new MirrorError(
      'upstream_shape',
      `${host} continues an upload at ${url?.host ?? 'no address'}: it is not followed`,
    )
  return url.pathname + url.search
}

function textOf({ headers }: RawAnswer, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : null
}

/** Throws for an answer of another status than expected, with what the registry says of it. */
async function expect(
  answer: RawAnswer,
  place: RegistryReference | string,
  doing: string,
  ...statuses: readonly number[]
): Promise<void> {
  const { status } = answer
  if (statuses.includes(status)) return
  const said = await readSmall(answer, MOST_ERROR, 'the answer').catch(() => Buffer.alloc(0))
  const named = typeof place === 'string' ? place : writeReference(place)
  const text = `${named}: ${doing}: status ${status}${codeIn(said)}`
  if (status === 401 || status === 403)
    throw new MirrorError('upstream_auth', `${text}: the user name in Docker's settings file has no right to it`)
  const code = status === 404 ? 'upstream_not_found' : 'upstream_status'
  throw answerError(code, text, answer)
}

/** Returns the first code of a registry's errors, ready to follow a text. */
function codeIn(said: Buffer): string {
  const found = /"code"\s*:\s*"([A-Z_]{1,60})"/.exec(said.toString('latin1'))
  return found?.[1] === undefined ? '' : ` (${found[1]})`
}
