import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { type Fields, eachObject, fieldsOf } from '../../../base/json/objects.ts'
import type { Manifest } from '../format/manifest.ts'

/** What an artifact is: registries and tools show it. */
export const ARTIFACT_TYPE = 'application/vnd.patchmirror.bundle.v1'
const LAYER_TYPE = `${ARTIFACT_TYPE}+zip`
/** The type of an artifact's manifest. */
export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json'
/** Bytes of a manifest that are read: registries accept 4 MiB. */
export const MOST_MANIFEST = 4 * 2 ** 20

/** What a manifest names: a blob by its digest (`sha256:…`), with its bytes. */
export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/** What a bundle says of itself, without its members. */
export type DescribedManifest = Omit<Manifest, 'members'>

/** The empty configuration that the image specification has for artifacts. */
export const EMPTY = Buffer.from('{}')

/** Returns the descriptor of some bytes. */
export function describeBytes(bytes: Uint8Array, mediaType: string): Descriptor {
  return { mediaType, digest: `sha256:${sha256Hex(bytes)}`, size: bytes.length }
}

/**
 * Returns the OCI manifest of a bundle (image specification 1.1, "Guidelines for Artifact Usage"): the file as one layer, and in its
 * annotations what the bundle says of itself. The same bundle always has the same manifest.
 */
export function artifactOf(manifest: DescribedManifest, file: Pick<Descriptor, 'digest' | 'size'>): Buffer {
  const layer = {
    mediaType: LAYER_TYPE,
    ...file,
    annotations: { 'org.opencontainers.image.title': `patchmirror-${manifest.sequence}.zip` },
  }
  return Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      artifactType: ARTIFACT_TYPE,
      config: describeBytes(EMPTY, EMPTY_TYPE),
      layers: [layer],
      annotations: annotationsOf(manifest),
    }),
  )
}

function annotationsOf(manifest: DescribedManifest): Record<string, string> {
  const { kind, sequence, mirror, digest, base, sources, createdAt } = manifest
  const own: Record<string, string> = { kind, sequence: String(sequence), mirror, digest }
  if (base !== null) own['base'] = base.sequence === null ? base.digest : String(base.sequence)
  for (const [source, { snapshot, asOf }] of Object.entries(sources)) {
    own[`${source}.snapshot`] = snapshot
    own[`${source}.as-of`] = asOf
  }
  const named = Object.entries(own).map(([name, value]): [string, string] => [`vnd.patchmirror.${name}`, value])
  return { 'org.opencontainers.image.created': createdAt, ...Object.fromEntries(named) }
}

/**
 * Returns the layer of an artifact's manifest. Nothing in it is trusted but where the file is and how long it is: the file has its own
 * signature. Throws `bundle` for anything that is not the artifact of a bundle. `place`: for messages.
 */
export function layerOf(bytes: Buffer, place: string): Descriptor {
  const manifest = parse(bytes, place)
  if (manifest['artifactType'] !== ARTIFACT_TYPE) throw refused(place, `it is ${typeOf(manifest)}, not a bundle`)
  const [layer, ...others] = eachObject(manifest['layers'])
  if (layer === undefined || others.length > 0) throw refused(place, 'it does not have exactly one layer')
  const { mediaType, digest, size } = layer
  if (mediaType !== LAYER_TYPE) throw refused(place, `its layer is not of the type ${LAYER_TYPE}`)
  if (typeof digest !== 'string' || !/^sha256:[\da-f]{64}$/.test(digest))
    throw refused(place, 'its layer has no SHA-256 digest')
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 1) throw refused(place, 'its layer has no size')
  return { mediaType, digest, size }
}

function parse(bytes: Buffer, place: string): Fields {
  try {
    return fieldsOf(JSON.parse(bytes.toString('utf8')))
  } catch (error) {
    throw new MirrorError('bundle', `${place} is refused: its manifest is not JSON`, { cause: error })
  }
}

function typeOf(manifest: Fields): string {
  const named = manifest['artifactType'] ?? manifest['mediaType'] ?? fieldsOf(manifest['config'])['mediaType']
  if (typeof named === 'string') return `of the type ${named.slice(0, 100)}`
  return 'of no type'
}

function refused(place: string, why: string): MirrorError {
  return new MirrorError('bundle', `${place} is refused: ${why}`)
}
