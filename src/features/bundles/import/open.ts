import { counted } from '../../../base/text.ts'
import { toIso, DAY_MS } from '../../../base/time.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { ByteSource } from '../../../archive/zip/reader.ts'
import type { KeyTrust } from '../format/keys.ts'
import { type Layout, layOut, MANIFEST_NAME, signatureName, storedHeader, zipHeaderOf } from '../format/layout.ts'
import { type Manifest, parseManifest } from '../format/manifest.ts'
import { bundleRefusal, refusalOf } from '../format/refusal.ts'
import { judgeSignatures } from '../format/signatures.ts'
import { findParts } from '../format/split-names.ts'
import { type Claims, readClaims, refuseOtherLayout } from './envelope.ts'
import { type Contents, createContents } from './members.ts'
import { openParts, readAhead } from './split-reader.ts'
import { verifyInHalves } from './verify/halves.ts'

/** An open bundle. Its structure is valid; its members are verified by `verify`, and again as they are read. */
export interface Bundle extends Omit<Contents, 'verify'> {
  readonly manifest: Manifest
  /** The id of the trusted signing key; null: unsigned, which was allowed. */
  readonly key: string | null
  readonly bytes: number
  /** Reads every member to its end against the manifest. `progress` gets the bytes so far. Throws `bundle`. */
  verify(progress?: (done: number, total: number) => void): Promise<void>
  /** Describes some of its members for another thread. */
  excerpt(isWanted: (name: string) => boolean): BundleExcerpt
  close(): Promise<void>
}

/** Members of an open bundle, in a form that survives a structured clone. */
export interface BundleExcerpt {
  readonly paths: readonly string[]
  readonly manifest: Pick<Manifest, 'kind' | 'members'>
  readonly placed: Layout['placed']
}

/**
 * Opens a bundle, given as one file, as its parts, or as one of its parts. Nothing of it is used before a signature is
 * verified. Throws `bundle` or `archive` with the reason and what to do.
 */
export async function openBundle(paths: readonly string[], trust: KeyTrust): Promise<Bundle> {
  return openFiles(findParts(paths), trust)
}

/** Works as `openBundle` for exactly these files in this order, whatever their names. */
export async function openFiles(paths: readonly string[], trust: KeyTrust): Promise<Bundle> {
  return open(paths, trust)
}

/** Opens an unverified bundle for inspection: `claims.signatures` has its claimed signatures. */
export async function inspectBundle(paths: readonly string[]): Promise<Bundle & { readonly claims: Claims }> {
  return open(findParts(paths), null)
}

async function open(found: readonly string[], trust: KeyTrust | null): Promise<Bundle & { readonly claims: Claims }> {
  const parts = await openParts(found)
  const source = readAhead(parts)
  // An error of the whole may be caused by one damaged part, which can then be copied again.
  const namingParts = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw named(error, found, await parts.fault().catch(() => null))
    }
  }
  try {
    const { manifest, key, layout, claims } = await namingParts(() => openBundleSource(source, trust))
    const contents = createContents(source, manifest, layout)
    const { read, stream, streamContent } = contents
    const excerpt: Bundle['excerpt'] = (isWanted) => {
      const members = manifest.members.filter(({ name }) => isWanted(name))
      const placed = layout.placed.filter(({ fields }) => isWanted(fields.name))
      return { paths: found, manifest: { kind: manifest.kind, members }, placed }
    }
    return {
      manifest,
      key,
      claims,
      excerpt,
      bytes: parts.size,
      source: contents.source,
      async verify(progress = () => undefined) {
        const report = (done: number): void => progress(done, parts.size)
        await namingParts(() => verifyInHalves({ manifest, contents, excerpt }, report))
        report(parts.size)
      },
      read: (name) => namingParts(() => read(name)),
      stream,
      streamContent,
      close: () => parts.close(),
    }
  } catch (error) {
    await parts.close()
    throw error
  }
}

/** Opens the members that an open bundle described. They are verified as they are read. */
export async function openExcerpt({ paths, manifest, placed }: BundleExcerpt) {
  const parts = await openParts(paths)
  const contents = createContents(readAhead(parts), manifest, { placed })
  return { ...contents, manifest, close: (): Promise<void> => parts.close() }
}

/** Works as `openBundle` for bytes from any source; with null, no signature is verified. */
export async function openBundleSource(source: ByteSource, trust: KeyTrust | null) {
  const claims = await readClaims(source)
  const { manifest, key } = judgeClaims(claims, trust)
  const signed = [...claims.signatures]
  const layout = layOut([
    ...manifest.members.map(zipHeaderOf),
    storedHeader(MANIFEST_NAME, claims.manifest),
    ...signed.map(([id, bytes]) => storedHeader(signatureName(id), bytes)),
  ])
  await refuseOtherLayout(source, layout, signed.length + 1)
  return { manifest, key, layout, claims }
}

/** Judges what a bundle says of itself: its signer, form and dates; with null, its form alone. Throws `bundle`. */
export function judgeClaims(claims: Claims, trust: KeyTrust | null): { manifest: Manifest; key: string | null } {
  const key = trust === null ? null : judgeSignatures(claims.manifest, claims.signatures, trust)
  const manifest = parseManifest(claims.manifest)
  if (trust !== null) refuseOtherTime(manifest, trust)
  if ([...claims.signatures.keys()].join() !== manifest.keys.join())
    throw new MirrorError('bundle', 'its signatures are not those that its manifest names')
  return { manifest, key }
}

/** Largest accepted difference between this clock and that of the source mirror, or its upstream, milliseconds. */
const AHEAD_MS = DAY_MS

/** Throws `bundle`, with the reason `clock`, where the dates of a bundle are too far ahead or it has expired. */
function refuseOtherTime({ expiresAt, createdAt, sources }: Manifest, { now }: KeyTrust): void {
  const time = now?.()
  if (time === undefined) return
  const here = `the clock here shows ${toIso(time)}`
  const dates = [createdAt, ...Object.values(sources).map(({ asOf }) => asOf)]
  const latest = dates.reduce((one, other) => (Date.parse(other) > Date.parse(one) ? other : one))
  const from = Date.parse(latest) - AHEAD_MS
  const until = expiresAt === null ? Infinity : Date.parse(expiresAt)
  // All later exports would be older than it, and refused.
  if (time < from)
    throw bundleRefusal(
      { kind: 'clock', from, until },
      `it is dated in the future: ${latest} (${here}). Correct the clocks; where that of the source mirror was wrong, export a new one`,
    )
  if (time < until) return
  throw bundleRefusal(
    { kind: 'clock', from, until },
    `it expired at ${expiresAt} (made at ${createdAt}; ${here}): export a new one`,
  )
}

function named(error: unknown, paths: readonly string[], fault: string | null): unknown {
  if (!(error instanceof MirrorError) || !['archive', 'bundle'].includes(error.code)) return error
  const { code, message } = error
  const [first = ''] = paths
  const which = paths.length === 1 ? first : `${first} and the other ${counted(paths.length - 1, 'part')}`
  const text = `the bundle ${which} is refused: ${message}${fault === null ? '' : `. ${fault}`}`
  const why = refusalOf(error)
  return why === null ? new MirrorError(code, text, { cause: error }) : bundleRefusal(why, text)
}
