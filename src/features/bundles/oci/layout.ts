import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { isPresent, publishFile, replaceFile } from '../../../base/files.ts'
import { type Fields, eachObject, fieldsOf } from '../../../base/json/objects.ts'
import {
  ARTIFACT_TYPE,
  type DescribedManifest,
  type Descriptor,
  EMPTY,
  MANIFEST_TYPE,
  MOST_MANIFEST,
  artifactOf,
  describeBytes,
  layerOf,
} from './artifact.ts'
import { DEFAULT_TAG, type LayoutReference, isDigest, writeReference } from '../../../config/kinds/oci-reference.ts'

/** Annotation of the tag in an index (image specification, "Image Layout"). */
const REF_NAME = 'org.opencontainers.image.ref.name'
const LAYOUT = { imageLayoutVersion: '1.0.0' }

/** Makes the folders of a layout, where they are not there. Throws `usage` where that is not possible. */
export function prepareLayout({ folder }: LayoutReference): void {
  try {
    readIndex(folder)
    mkdirSync(blobsOf(folder), { recursive: true })
  } catch (error) {
    if (error instanceof MirrorError) throw error
    throw new MirrorError('usage', `the image layout ${folder} cannot be written (${messageOf(error)})`)
  }
}

/** Returns the folder of the blobs of a layout. */
function blobsOf(folder: string): string {
  return join(folder, 'blobs', 'sha256')
}

/**
 * Adds a bundle to a layout under a tag, beside what is there; the index names it when all else is complete. `file`: on the same disk;
 * it is renamed. Returns the digest of the artifact.
 */
export function addToLayout(
  { folder, name: given }: LayoutReference,
  file: string,
  layer: Pick<Descriptor, 'digest' | 'size'>,
  manifest: DescribedManifest,
): string {
  const name = given ?? DEFAULT_TAG
  const artifact = artifactOf(manifest, layer)
  const described = describeBytes(artifact, MANIFEST_TYPE)
  publishFile(file, pathOf(folder, layer.digest))
  for (const bytes of [EMPTY, artifact]) putBlob(folder, bytes)
  const others = readIndex(folder).filter((one) => fieldsOf(one['annotations'])[REF_NAME] !== name)
  const entry = { ...described, artifactType: ARTIFACT_TYPE, annotations: { [REF_NAME]: name } }
  putJson(join(folder, 'oci-layout'), LAYOUT)
  putJson(join(folder, 'index.json'), {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [...others, entry],
  })
  return described.digest
}

/** Returns the file of a bundle in a layout. Its digest is not verified here: its own signature covers its bytes. Throws `bundle`. */
export function findInLayout(reference: LayoutReference): string {
  const place = writeReference(reference)
  const { folder, name } = reference
  const entries = readIndex(folder)
  const tagOf = (one: Fields): unknown => fieldsOf(one['annotations'])[REF_NAME]
  const entry =
    entries.find((one) => isNamed(one, name)) ?? (name === null && entries.length === 1 ? entries[0] : undefined)
  if (entry === undefined) {
    const tags = entries.map(tagOf).filter((tag) => typeof tag === 'string')
    if (!isPresent(join(folder, 'index.json')))
      throw new MirrorError('bundle', `there is no image layout at ${folder}: it has no index.json`)
    const has = tags.length === 0 ? 'it names no tag' : `it has ${tags.slice(0, 10).join(', ')}`
    throw new MirrorError('bundle', `${place} is not in the index of the image layout ${folder}: ${has}`)
  }
  const digest = typeof entry['digest'] === 'string' && isDigest(entry['digest']) ? entry['digest'] : ''
  const artifact = digest === '' ? null : readBlob(folder, digest)
  if (artifact === null || `sha256:${sha256Hex(artifact)}` !== digest)
    throw new MirrorError('bundle', `${place} is refused: its manifest is missing or damaged in ${folder}`)
  const layer = layerOf(artifact, place)
  const path = pathOf(folder, layer.digest)
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === layer.size) return path
  const has = size === undefined ? 'is missing' : `has ${size} bytes, and the manifest names ${layer.size}`
  throw new MirrorError('bundle', `${place} is refused: its file ${path} ${has}: copy the layout again`)
}

/** Whether an entry of an index has a name. Some tools write the whole reference, which ends with the tag. */
function isNamed(entry: Fields, name: string | null): boolean {
  if (name !== null && isDigest(name)) return entry['digest'] === name
  const tag = fieldsOf(entry['annotations'])[REF_NAME]
  const wanted = name ?? DEFAULT_TAG
  return typeof tag === 'string' && (tag === wanted || tag.endsWith(`:${wanted}`))
}

function pathOf(folder: string, digest: string): string {
  return join(blobsOf(folder), digest.slice('sha256:'.length))
}

function putBlob(folder: string, bytes: Uint8Array): void {
  replaceFile(pathOf(folder, `sha256:${sha256Hex(bytes)}`), (write) => write(bytes))
}

function putJson(path: string, value: object): void {
  replaceFile(path, (write) => write(Buffer.from(JSON.stringify(value))))
}

function readBlob(folder: string, digest: string): Buffer | null {
  const path = pathOf(folder, digest)
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && stats.isFile() && stats.size <= MOST_MANIFEST ? readFileSync(path) : null
}

/** Returns the entries of a layout's index; none where there is no index. Throws `usage` for a folder of another kind. */
function readIndex(folder: string): readonly Fields[] {
  const path = join(folder, 'index.json')
  try {
    return eachObject(fieldsOf(JSON.parse(readFileSync(path, 'utf8')))['manifests'])
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw new MirrorError('usage', `${path} is not the index of an image layout (${messageOf(error)})`)
  }
}
