import type { IncomingMessage } from 'node:http'
import type { ViewAsset, ViewRecord, Views } from '../store/reads.ts'
import { crc32c, googHash } from '../../../archive/zip/crc32c.ts'
import type { EdgeFields } from '../../../server/http/edge-fields.ts'
import { PUBLIC_CACHING, type Exchange, type Heads, respond } from '../../../server/http/response.ts'
import { type OpenArchive, openArchiveFile } from '../../../server/http/send-file.ts'
import { type BucketPath, BUCKET, bucketPath, isBucket } from './paths.ts'
import {
  type Failures,
  type Problem,
  methodNotAllowed,
  pathNotFound,
  sendProblem,
} from '../../../server/http/problems.ts'
import { whyLeftOut } from '../../../server/lookup/missing-record.ts'
import { whyNoRecord } from './missing.ts'
import type { ServedSnapshot } from '../../../server/snapshot/served.ts'
import type { Reads } from '../../../store/reads.ts'
import { refuseStale } from '../../../server/snapshot/stale.ts'
import { chooseCoding, readRequestHeaders } from '../../../server/http/request-headers.ts'
import { type SnapshotOrigin, partFields } from '../../../server/http/origin.ts'
import { decodePart, rawTarget, readablePath } from '../../../server/http/request-target.ts'
import {
  type ViewsInUse,
  createViewOrigins,
  derivedHead,
  findOtherViewRecord,
  viewRecordContent,
} from './generation.ts'
import { sendFile } from '../../../server/http/zip.ts'
import type { RestOfPaths } from '../../../server/app.ts'

/** What the bucket is answered from. */
interface BucketOptions {
  readonly served: Pick<ServedSnapshot, 'knownOrigin' | 'markStale' | 'reads' | 'archives'>
  readonly views: ViewsInUse
  readonly heads: Heads
  readonly edge: Pick<EdgeFields, 'ofViews'>
  readonly onError: Failures['answer']
  /** False where the settings leave it out: every path is a 404 that names the setting. */
  readonly enabled: boolean
}

/**
 * The layout of osv.dev's public bucket: an archive, a list of stamps and the records of each ecosystem, all of one
 * generation of views. Public, as upstream's feed is.
 */
export function createBucket(options: BucketOptions): RestOfPaths {
  const { views, onError } = options
  const originOf = createViewOrigins(options.served)
  return (request, response) => {
    const { path } = rawTarget(request.url ?? '')
    if (!isBucket(path)) return false
    let origin: SnapshotOrigin | null = null
    const fail = (error: unknown): void => onError(error, request, response, { origin })
    try {
      const refusal = refuse(options, request, path)
      if (refusal !== null) sendProblem(request, response, refusal)
      else {
        const exchange = {
          request,
          response,
          requestHeaders: readRequestHeaders(request.rawHeaders),
        }
        void views.read((current) => {
          origin = originOf(current)
          refuseStale(origin)
          return answer(options, { exchange, views: current, origin }, path)?.catch(fail)
        })
      }
    } catch (error) {
      fail(error)
    }
    return true
  }
}

/** What is refused before anything is looked up; null when nothing is. */
function refuse({ enabled }: BucketOptions, request: IncomingMessage, path: string): Problem | null {
  const { method = '' } = request
  const shown = readablePath(path)
  if (!enabled) return { ...pathNotFound(shown), message: SWITCHED_OFF }
  if (bucketPath(path) === null) return pathNotFound(shown)
  return method === 'GET' || method === 'HEAD' ? null : methodNotAllowed(method)
}

const SWITCHED_OFF = 'this mirror has no views for scanners: views.serve has no bucket'

interface BucketCall {
  readonly exchange: Exchange
  readonly views: Views
  readonly origin: SnapshotOrigin
}

function answer(options: BucketOptions, call: BucketCall, path: string): Promise<void> | undefined {
  const place = bucketPath(path)
  const { exchange, views, origin } = call
  if (place?.kind === 'asset') {
    const name = place.view === null ? place.name : `${place.view}/${place.name}`
    const asset = views.readAsset(name)
    if (asset !== null) return sendAsset(options, call, asset)
  } else if (place !== null) {
    const found = findRecord(views, place)
    if (found !== null) {
      const { record, location } = found
      const hash = googHash(crc32c(record.content))
      const more = ['x-goog-hash', hash, ...derivedHead(record), ...location]
      respond(exchange, { ...viewRecordContent(record, views), origin, more }, options.heads)
      return undefined
    }
    if (place.id === null) decodePart(path) // throws with the reason
  }
  const problem = missing(options.served.reads, views, place)
  sendProblem(exchange.request, exchange.response, { ...problem, origin })
  return undefined
}

/** Finds a record by its id, else by another form of it; then `Content-Location` names its path. */
function findRecord(
  views: Views,
  { view, id, raw }: Extract<BucketPath, { kind: 'record' }>,
): { readonly record: ViewRecord; readonly location: readonly string[] } | null {
  const record = id === null ? null : views.readViewRecord(view, id)
  if (record !== null) return { record, location: [] }
  const asked = id === null ? [raw] : [id, raw]
  const read = (other: string): ViewRecord | null => views.readViewRecord(view, other)
  const found = findOtherViewRecord(views, asked, read)
  if (found === null) return null
  const path = `${BUCKET}${encodeURIComponent(view)}/${encodeURIComponent(found.id)}.json`
  return { record: found.record, location: ['Content-Location', path] }
}

function sendAsset(options: BucketOptions, call: BucketCall, asset: ViewAsset): Promise<void> {
  const { exchange, origin, views } = call
  const { sha256, crc32c, type, gzip } = asset
  const { acceptEncoding, range } = exchange.requestHeaders
  // A part of compressed bytes is of no use to clients that decode what they get.
  const coded = range === undefined ? chooseCoding(acceptEncoding) : 'identity'
  const coding = gzip === null ? null : coded
  const form = gzip !== null && coding === 'gzip' ? gzip : asset
  const packed = form === asset && gzip?.file === asset.file ? gzip : null
  const file = openForm(options, views, asset, { ...form, packed })
  const more = [...derivedHead(asset), ...options.edge.ofViews(origin), ...partFields(origin)]
  const manner = { origin, cacheControl: PUBLIC_CACHING, type, sha256, crc32c, coding, more }
  return sendFile(exchange, file, manner).finally(() => file.release())
}

type StoredFile = Pick<ViewAsset, 'file' | 'size'>

/** The archive of everything is the mirror's own, as long as that is the one of this generation and can be read. */
function openForm(
  { served }: BucketOptions,
  views: Views,
  { sha256, crc32c }: ViewAsset,
  { file, size, packed }: StoredFile & { readonly packed: StoredFile | null },
): OpenArchive & { release(): void } {
  const published = served.reads.osv.readArchive()
  if (published?.sha256 === sha256 && published.changed === views.info.changed) {
    try {
      return { ...served.archives.current(published), release: () => undefined }
    } catch {
      // The generation has another name for the same file, which may still be there.
    }
  }
  const { changed } = views.info
  return openArchiveFile(views.folder, { file, size, sha256, crc32c, changed }, packed)
}

/** Why there is no record, or no ecosystem: what upstream lists and could not be stored may be the one that is asked for. */
function missing(reads: Reads, views: Views, place: BucketPath | null): Problem {
  const { view = null } = place ?? {}
  const id = place?.kind === 'record' ? place.id : null
  const known = id === null ? null : whyNoRecord(reads, id)
  if (known !== null) {
    const { kind, message } = known
    const isFailed = kind === 'failed'
    return { status: isFailed ? 503 : 404, error: isFailed ? 'not_ready' : 'not_found', message, fields: { id } }
  }
  if (view !== null && views.hasView(view) && id !== null) {
    const message = `${view} has no record with this id`
    return { status: 404, error: 'not_found', message, fields: { ecosystem: view, id } }
  }
  const closest = view === null ? null : views.findView(view)
  const ofReleases = closest === null && view !== null ? folderOfReleases(views, view) : null
  if (ofReleases !== null) {
    const message = `releases have no folder of their own: their records are in that of ${ofReleases}`
    return { status: 404, error: 'not_found', message, fields: { ecosystem: view, closest: ofReleases } }
  }
  const leftOut = closest === null && view !== null ? whyLeftOut(reads, view) : null
  const unknown = leftOut ?? 'no mirrored record names this ecosystem'
  const message = closest === null ? unknown : `the ecosystem is written ${closest}`
  const fields = { ecosystem: view?.slice(0, 512) ?? null, closest }
  return { status: 404, error: 'not_found', message, fields }
}

/** The folder of an ecosystem of which only a release is asked for (`Debian:12`); null: there is none, or no release is meant. */
function folderOfReleases(views: Views, view: string): string | null {
  const [ecosystem = ''] = view.split(':', 1)
  return view.includes(':') ? views.findView(ecosystem) : null
}
