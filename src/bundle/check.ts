import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { MirrorError, messageOf } from '../errors.ts'
import { verifyRows } from './check-rows.ts'
import type { SigningKey } from './keys.ts'
import { type Bundle, openFiles } from './open.ts'
import type { OnProgress } from './progress.ts'
import type { Blob } from './rows.ts'

/** Up to this many bytes of documents, as they are stored, are inflated too: with more, that would cost as much as the export. */
const INFLATED_BYTES = 64_000_000

/**
 * Opens a bundle that was just written as an import does, reads it to its end with all of its rows, and checks that blobs are
 * what their names say. Throws `bundle`, and `corrupt` for a document whose stored bytes are not what they were.
 */
export async function verifyOwn(
  drafts: readonly string[],
  keys: readonly SigningKey[],
  blobs: readonly Blob[],
  onProgress: OnProgress,
): Promise<void> {
  const trust = { keys, revoked: new Set<string>(), allowUnsigned: keys.length === 0, now: null }
  const bundle = await openFiles(drafts, trust)
  try {
    await bundle.verify((done, total) => {
      onProgress({ phase: 'check', unit: 'bytes', done, total })
    })
    await verifyRows(bundle)
    const digests = new Map(bundle.manifest.members.map(({ name, sha256 }) => [name, sha256]))
    const documents = blobs.filter((blob) => blob.kind === 'catalog-document')
    const stored = documents.reduce((sum, blob) => sum + blob.stored, 0)
    for (const blob of blobs) {
      const name = memberOf(blob)
      if (blob.kind === 'document' && digests.get(name) !== blob.name) throw damaged(blob.path)
      if (blob.kind === 'document' || stored > INFLATED_BYTES) continue
      if ((await contentDigest(bundle, name)) !== blob.name) throw damaged(`document ${blob.name}`)
    }
  } finally {
    await bundle.close()
  }
}

/** The member that holds a blob. */
export function memberOf({ name }: Blob): string {
  return `blobs/${name}.gz`
}

/** SHA-256 of what a member inflates to, hex; its own words where it does not inflate. */
async function contentDigest(bundle: Bundle, name: string): Promise<string> {
  const source = bundle.source(name)
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < source.size; at += 1 << 20)
      yield await source.read(at, Math.min(1 << 20, source.size - at))
  }
  const hash = createHash('sha256')
  const inflated = createGunzip()
  const packed = Readable.from(chunks()).on('error', (error) => inflated.destroy(error))
  try {
    for await (const chunk of packed.pipe(inflated)) hash.update(chunk as Buffer)
    return hash.digest('hex')
  } catch (error) {
    return messageOf(error)
  }
}

function damaged(what: string): MirrorError {
  return new MirrorError(
    'corrupt',
    `${what} is damaged here already, and is not exported: run "patchmirror verify --repair"`,
  )
}
