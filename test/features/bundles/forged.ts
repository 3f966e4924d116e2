import { join } from 'node:path'
import type { Manifest, ManifestHead } from '../../../src/features/bundles/format/manifest.ts'
import { inspectBundle } from '../../../src/features/bundles/import/open.ts'
import { createBundleWriter } from '../../../src/features/bundles/export/writer.ts'
import { digestOf } from './fixtures.ts'
import { signer } from './air-gap.ts'

let made = 0

/** What a forger changes: the manifest, and what members hold. */
export interface Forgery {
  head?: (manifest: Manifest) => Partial<ManifestHead>
  rows?: (name: string, lines: string[]) => string[]
  /** Members that are stored, by their names. */
  stored?: (name: string, bytes: Buffer) => Buffer
}

/** A bundle with the same data, signed by the same key, that says or holds something else. */
export async function forge(
  files: readonly string[],
  to: string,
  { head = () => ({}), rows = (_, lines) => lines, stored = (_, bytes) => bytes }: Forgery,
): Promise<string[]> {
  const bundle = await inspectBundle(files)
  const writer = createBundleWriter(join(to, `forged-${++made}.zip`), { split: null, force: true })
  for (const { name, method } of bundle.manifest.members) {
    const bytes = await bundle.read(name)
    if (method === 'store') {
      const held = stored(name, bytes)
      await writer.addStored(name, held.length, [held])
    } else {
      const lines = bytes.toString().trimEnd().split('\n')
      await writer.addDeflated(name, Buffer.from(`${rows(name, lines).join('\n')}\n`))
    }
  }
  await bundle.close()
  const { members: _members, keys: _keys, ...before } = bundle.manifest
  const said = { ...before, ...head(bundle.manifest) }
  const digest = head(bundle.manifest).digest ?? digestOf(said.sources)
  await writer.complete({ ...said, digest }, [signer()])
  const out = await writer.publish()
  return out
}
