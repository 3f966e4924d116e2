import { counted } from '../../../base/text.ts'
import { toIso } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { type VexGeneration, readVexGeneration } from '../store/generations.ts'
import { PRIVATE_CACHING, respond, contentTag } from '../../../server/http/response.ts'
import { openArchiveFile } from '../../../server/http/send-file.ts'
import { addPrivateRoutes } from '../../../server/access/private-routes.ts'
import type { ServerPlugin, ServerTools } from '../../../server/plugin.ts'
import type { ServedSnapshot } from '../../../server/snapshot/served.ts'
import { refuseStale } from '../../../server/snapshot/stale.ts'
import { type SnapshotOrigin, originNotAfter } from '../../../server/http/origin.ts'
import { onlyValue } from '../../../server/http/request-target.ts'
import { notReady } from '../../../server/snapshot/not-ready.ts'
import { createImageVexReader, repositoriesIn } from './image-vex.ts'
import type { PrivateRoute, RouteCall } from '../../../server/access/private-route.ts'
import type { PathOperation } from '../../../server/contract/openapi.ts'
import { IMAGE_VEX_CONTRACT, VEX_ARCHIVE_CONTRACT, VEX_MANIFEST_CONTRACT } from './contract.ts'
import { type ViewsMaker, isDamage } from './generation.ts'
import { sendFile } from '../../../server/http/zip.ts'

/** Where a client of VEX repositories begins (VEX Repository Specification, 2.2). */
export const VEX_MANIFEST = '/.well-known/vex-repository.json'
/** Path of its archive; the file name extension names the format for clients. */
export const VEX_ARCHIVE = '/vex/v0.1/vex-data.zip'

/** The VEX of one image. */
const IMAGE_VEX = '/-/vex/{digest}'

const MANIFEST = { path: VEX_MANIFEST, contract: VEX_MANIFEST_CONTRACT }
const ARCHIVE = { path: VEX_ARCHIVE, contract: VEX_ARCHIVE_CONTRACT }

/** How often clients should ask, as Go writes durations. */
const UPDATE_INTERVAL = '1h'
/** Longest value of X-Mirror-Incomplete, characters. */
const LONGEST_REASON = 500

/** What the VEX repository is answered from. */
interface VexRoutesOptions {
  readonly config: Pick<Config, 'views' | 'data'>
  /** Whether a catalog is to be mirrored; without one, there may still be one that was imported. */
  readonly expectsCatalog: boolean
  readonly maker: Pick<ViewsMaker, 'wanted' | 'damaged'>
}

/**
 * The VEX repository of the mirrored OpenVEX documents, for Trivy. It is made of the catalog, so it takes what opens
 * that: a local key.
 */
export function createVexRoutes(options: VexRoutesOptions): ServerPlugin {
  const route = (
    tools: ServerTools,
    { path, contract }: { readonly path: string; readonly contract: PathOperation },
    send: (call: RouteCall, made: VexGeneration, origin: SnapshotOrigin) => Promise<void> | undefined,
  ): PrivateRoute => ({
    path,
    contract,
    source: 'catalog',
    answer(call) {
      const made = read(options, tools, call)
      return made === null ? undefined : send(call, made, originOf(tools.served, made))
    },
  })
  const routes = (tools: ServerTools): PrivateRoute[] => [
    route(tools, MANIFEST, (call, made, origin) => {
      const body = Buffer.from(JSON.stringify(manifestOf(call.baseUrl(), made), null, 1))
      const tag = contentTag(body)
      respond(call, { body, gzip: null, tag, changed: made.changed, origin }, tools.heads)
      return undefined
    }),
    route(tools, ARCHIVE, (call, made, origin) => {
      const file = openArchiveFile(made.folder, made)
      const { sha256, crc32c } = made
      const manner = { sha256, crc32c, type: 'application/zip', coding: null, more: [] }
      const sent = sendFile(call, file, { ...manner, origin, cacheControl: PRIVATE_CACHING })
      return sent.finally(() => file.release())
    }),
    imageRoute(options, tools),
  ]
  return (app, tools, done) => {
    addPrivateRoutes(app, tools, routes(tools))
    done()
  }
}

/** What counts of the VEX about one image: it is made for each request, of the snapshot that is served. */
function imageRoute({ expectsCatalog }: VexRoutesOptions, tools: ServerTools): PrivateRoute {
  const { served, heads, now } = tools
  const reader = createImageVexReader()
  return {
    path: IMAGE_VEX,
    contract: IMAGE_VEX_CONTRACT,
    source: 'catalog',
    async answer(call) {
      const origin = served.knownOrigin('catalog')
      if (origin === null) throw whyNoCatalog(served.reads, expectsCatalog)
      const names = repositoriesIn(onlyValue(call.query, 'name'))
      const { digest = '' } = call.params
      const found = await reader.read(served.reads, { digest, names, now: now() })
      const body = Buffer.from(JSON.stringify(found.document))
      const oldest = served.reads.catalog.readVexConfirmedAt() ?? undefined
      // What counts depends also on what is gone, on signatures and on the time: no earlier date says that it is the same.
      const content = { body, tag: contentTag(body), changed: Math.floor(now() / 1000) }
      const more = incompleteFields(found.incomplete)
      respond(call, { ...content, origin: originNotAfter(origin, oldest), more }, heads)
    },
  }
}

function incompleteFields(reason: string | null): string[] {
  const text = reason?.replace(/[^\x20-\x7e]/g, '?').slice(0, LONGEST_REASON)
  return text === undefined ? [] : ['X-Mirror-Incomplete', text]
}

/** The error where there is no catalog. */
function whyNoCatalog(reads: ServedSnapshot['reads'], expectsCatalog: boolean): MirrorError {
  return expectsCatalog ? notReady(reads, 'catalog', 'the catalog') : new MirrorError('not_found', NO_VEX)
}

const NO_VEX =
  'there is no VEX here: the documents come with the catalog, by a credential (upstream.apiKey) or in a bundle'

/**
 * The snapshot that a generation shows, as of the confirmation of its VEX that is the oldest: the newest known, as long as
 * the served snapshot is the same.
 */
function originOf(
  served: Pick<ServedSnapshot, 'knownOrigin' | 'markStale' | 'reads'>,
  made: VexGeneration,
): SnapshotOrigin {
  const now = served.knownOrigin('catalog')
  const { snapshot, asOf, folder } = made
  if (now?.snapshot === snapshot) {
    const whole = Date.parse(now.asOf)
    const oldest = Math.min(whole, served.reads.catalog.readVexConfirmedAt() ?? whole)
    return { ...now, asOf: toIso(oldest) }
  }
  const origin = { source: 'catalog', snapshot, asOf: toIso(asOf), version: folder } as const
  return refuseStale(served.markStale('catalog', origin))
}

/** The repository in use; null when the request was refused. Throws `not_ready` before the first. */
function read(options: VexRoutesOptions, { served }: ServerTools, call: RouteCall): VexGeneration | null {
  const { config, maker } = options
  const reason = whyNoRepository(options, served)
  if (reason !== null) {
    call.refuse({ status: 404, error: 'not_found', message: reason })
    return null
  }
  try {
    const made = readVexGeneration(config.data.dir)
    if (made !== null) return made
  } catch (error) {
    if (isDamage(error)) maker.damaged('vex')
    throw error
  }
  maker.wanted()
  throw new MirrorError('not_ready', 'the VEX repository is being built: try again later')
}

/** Returns why there will be no VEX repository here; null: there is one, or will be. */
function whyNoRepository(
  { config, expectsCatalog }: VexRoutesOptions,
  served: Pick<ServedSnapshot, 'knownOrigin'>,
): string | null {
  if (!config.views.vex) return 'this mirror offers no VEX repository: views.serve has no vex'
  const hasCatalog = expectsCatalog || served.knownOrigin('catalog') !== null
  return hasCatalog ? null : NO_VEX
}

/** The manifest (VEX Repository Specification, 2; `versions` is a list, as Trivy and VEX Hub have it). */
function manifestOf(baseUrl: string, { documents, packages }: VexGeneration): object {
  return {
    name: 'patchmirror',
    description: `OpenVEX documents mirrored by Patchmirror: ${counted(documents, 'document')} on ${counted(packages, 'package')}`,
    versions: [
      {
        spec_version: '0.1',
        locations: [{ url: `${baseUrl}${VEX_ARCHIVE}` }],
        update_interval: UPDATE_INTERVAL,
      },
    ],
  }
}
