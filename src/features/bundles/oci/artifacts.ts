import { createReadStream, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../../config/schema.ts'
import { digestOfChunks } from '../../../base/digest.ts'
import { refuseFullDisk } from '../../../base/disk-space.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import { makeFolder } from '../../../base/files.ts'
import { makeTemporary } from '../../../store/temporary.ts'
import { type Descriptor, type DescribedManifest, artifactOf, layerOf } from './artifact.ts'
import { addToLayout, findInLayout, prepareLayout } from './layout.ts'
import {
  type LayoutReference,
  type OciReference,
  type RegistryReference,
  writeReference,
} from '../../../config/kinds/oci-reference.ts'
import { hasManifest, openRepository, pullBlob, pushFile, pushManifest, readManifest } from './registry.ts'

/** The settings that registries and layouts need. */
export type ArtifactSettings = Pick<Config, 'data' | 'upstream' | 'network'>

/** Where an export writes, and what makes an artifact of it. */
export interface ArtifactTarget {
  /** The file to write first. */
  readonly path: string
  /** Takes the file over; returns the digest of the artifact. Throws as the calls of a registry do. */
  publish(manifest: DescribedManifest, onProgress: OnProgress): Promise<string>
  /** Removes what is not published. */
  close(): Promise<void>
}

/** Opens the place of an artifact for writing: whether that is possible is known before an export begins. */
export function openArtifactTarget(reference: OciReference, settings: ArtifactSettings): Promise<ArtifactTarget> {
  return reference.kind === 'layout' ? layoutTarget(reference) : registryTarget(reference, settings)
}

async function layoutTarget(reference: LayoutReference): Promise<ArtifactTarget> {
  prepareLayout(reference)
  const temporary = makeTemporary(reference.folder)
  const path = join(temporary.folder, 'bundle.zip')
  return Promise.resolve({
    path,
    publish: async (manifest) => addToLayout(reference, path, await describeFile(path), manifest),
    close: () => Promise.resolve(temporary.remove()),
  })
}

async function registryTarget(reference: RegistryReference, settings: ArtifactSettings): Promise<ArtifactTarget> {
  const repository = openRepository(settings, reference, 'pull,push')
  try {
    await hasManifest(repository)
    makeFolder(settings.data.dir)
    const temporary = makeTemporary(settings.data.dir)
    const path = join(temporary.folder, 'bundle.zip')
    return {
      path,
      async publish(manifest, onProgress) {
        const layer = await describeFile(path)
        const total = layer.size
        await pushFile(repository, path, layer.digest, (done) =>
          onProgress({ phase: 'upload', unit: 'bytes', done, total }),
        )
        return pushManifest(repository, artifactOf(manifest, layer))
      },
      async close() {
        temporary.remove()
        await repository.session.close()
      },
    }
  } catch (error) {
    await repository.session.close()
    throw error
  }
}

async function describeFile(path: string): Promise<Pick<Descriptor, 'digest' | 'size'>> {
  return { digest: `sha256:${await digestOfChunks(createReadStream(path))}`, size: statSync(path).size }
}

/** A bundle of an artifact as a file. */
export interface FetchedBundle {
  readonly path: string
  /** Removes the file, where it is a copy. */
  readonly close: () => void
}

/** Returns the file of the bundle that a reference names: one in a layout as it is, one of a registry downloaded. */
export async function fetchArtifact(
  reference: OciReference,
  settings: ArtifactSettings,
  onProgress: OnProgress,
): Promise<FetchedBundle> {
  if (reference.kind === 'layout') return { path: findInLayout(reference), close: () => undefined }
  const repository = openRepository(settings, reference, 'pull')
  try {
    const bytes = await readManifest(repository)
    const layer = layerOf(bytes, writeReference(reference))
    makeFolder(settings.data.dir)
    await refuseFullDisk(settings.data.dir, layer.size)
    const temporary = makeTemporary(settings.data.dir)
    const path = join(temporary.folder, 'bundle.zip')
    try {
      const total = layer.size
      await pullBlob(repository, layer, path, (done) => onProgress({ phase: 'download', unit: 'bytes', done, total }))
      return { path, close: () => temporary.remove() }
    } catch (error) {
      temporary.remove()
      throw error
    }
  } finally {
    await repository.session.close()
  }
}
