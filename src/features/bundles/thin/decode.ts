import { createHash } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { crc32, inflateRawSync } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { PRIVATE_FILE } from '../../../base/files.ts'
import { faultOfRecordId } from '../../../base/domain/record-id.ts'
import { SOURCES } from '../../../base/domain/sources.ts'
import { deflate } from '../../../base/gzip/member.ts'
import { createZipWriter } from '../../../archive/zip/writer.ts'
import { type Layout, type Placed, MANIFEST_NAME, layOut, localHeader } from '../format/layout.ts'
import { signatureName, storedHeader, zipHeaderOf } from '../format/layout.ts'
import { type BundleMember, type Manifest, CAPS, parseManifest } from '../format/manifest.ts'
import {
  type Check,
  integerField,
  listField,
  choiceField,
  orNull,
  recordOf,
  shape,
  textField,
  truth,
} from '../../../base/json/shapes.ts'
import type { Claims } from '../import/envelope.ts'
import { compressAgain } from './encode.ts'
import { type BaseContents, type Frames, type GroupEntry, type Recipe, type ThinHead } from './format.ts'
import { GROUP_BYTES, MOST_BYTES, STORED_PIECE, deflaterId, expand, openFrames } from './format.ts'
import { type Prediction, createPrediction, dictionaryOf, hasRecords } from './predicted.ts'

/** What a thin bundle says of itself. Nothing of it is verified. */
export interface ThinClaims {
  readonly head: ThinHead
  readonly manifest: Manifest
  readonly claims: Claims
}

const NONE = Buffer.alloc(0)
const ANY = /^[^]*$/
const RECORD_ID = { test: (id: string) => faultOfRecordId(id) === null }

const head = shape<ThinHead>({
  base: recordOf(
    new RegExp(`^(?:${SOURCES.join('|')})$`),
    textField(/^[\da-f]{64}$/, 'a SHA-256 in hex'),
    SOURCES.length,
  ),
  deflater: textField(/^[\da-f]{16}$/, 'what compresses alike'),
  manifest: textField(ANY, 'a text'),
  signatures: listField(
    shape({ key: textField(/^[\da-f]{16}$/, 'the id of a key'), bytes: textField(/^[\w+/=]{88}$/, 'a signature') }),
    CAPS.keys,
  ),
  recipes: listField(
    shape<Recipe>({
      kind: choiceField('rows', 'records', 'packed', 'gzip', 'stored'),
      path: orNull(textField(/^\/.{0,4000}$/, 'a path')),
      gzip: orNull(shape({ level: integerField(1, 9), header: textField(/^[\da-f]{20}$/, 'how gzip begins') })),
    }),
    CAPS.members,
  ),
})

const group: Check<{ isLast: boolean; entries: GroupEntry[] }> = shape({
  isLast: truth,
  entries: listField(
    shape<GroupEntry>({
      id: textField(RECORD_ID, 'the id of a record'),
      size: integerField(0),
      known: truth,
      carried: truth,
    }),
    CAPS.members,
  ),
})

/** Reads what a thin bundle says of itself. Throws `bundle`. */
export function readThinClaims(path: string): ThinClaims {
  const frames = openFrames(path)
  try {
    return claimsIn(frames)
  } finally {
    frames.close()
  }
}

function claimsIn(frames: Frames): ThinClaims {
  const said = head(jsonIn(frames, CAPS.manifestBytes), 'its head')
  const text = Buffer.from(said.manifest)
  const manifest = parseManifest(text)
  if (manifest.members.length !== said.recipes.length)
    throw new MirrorError('bundle', 'its manifest has other members than it carries')
  const signatures = new Map(said.signatures.map(({ key, bytes }) => [key, Buffer.from(bytes, 'base64')]))
  return { head: said, manifest, claims: { manifest: text, signatures } }
}

function jsonIn(frames: Frames, most: number): unknown {
  try {
    return JSON.parse(expand(frames.next(most), NONE, 2 * most).toString())
  } catch (error) {
    if (error instanceof MirrorError) throw error
    throw new MirrorError('bundle', `a part of it is not JSON (${messageOf(error)}): copy it again`)
  }
}

interface Decoder extends ThinClaims {
  readonly frames: Frames
  readonly base: BaseContents
  readonly compress: typeof compressAgain
  readonly prediction: Prediction
  /** Writes bytes at a position of the whole bundle. */
  readonly put: (position: number, bytes: Uint8Array) => void
}

/**
 * Makes the whole bundle of a thin one and of the base's contents, in a new file. Each member is compared with the manifest.
 * Throws `bundle` where the bytes are not those that were signed.
 */
export function decodeThin(path: string, base: BaseContents, whole: string, compress = compressAgain): void {
  const frames = openFrames(path)
  const file = openSync(whole, 'wx', PRIVATE_FILE)
  const put = (position: number, bytes: Uint8Array): void => {
    for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, position + done)
  }
  try {
    const said = claimsIn(frames)
    decodeMembers({ ...said, frames, base, compress, put, prediction: createPrediction() })
    frames.end()
  } finally {
    closeSync(file)
    frames.close()
  }
}

function decodeMembers(decoder: Decoder): void {
  const { manifest, claims, head: said, put } = decoder
  const signed = [...claims.signatures]
  const layout = layOut([
    ...manifest.members.map(zipHeaderOf),
    storedHeader(MANIFEST_NAME, claims.manifest),
    ...signed.map(([id, bytes]) => storedHeader(signatureName(id), bytes)),
  ])
  const parts = manifest.members.map((member, i) => {
    return { member, recipe: said.recipes[i] ?? refuseRecipe(member), place: placeOf(layout, i) }
  })
  for (const part of parts) if (part.recipe.kind === 'records') decodeRecords(decoder, part)
  for (const part of parts) {
    put(part.place.fields.offset, localHeader(part.place))
    decodeMember(decoder, part)
  }
  const rest = [claims.manifest, ...signed.map(([, bytes]) => bytes)]
  for (const [i, bytes] of rest.entries()) {
    const place = placeOf(layout, parts.length + i)
    put(place.fields.offset, localHeader(place))
    put(place.dataAt, bytes)
  }
  let at = layout.directoryAt
  for (const piece of layout.tail()) {
    put(at, piece)
    at += piece.length
  }
}

/** A member, how it is made again, and where it lies in the whole bundle. */
interface Part {
  readonly member: BundleMember
  readonly recipe: Recipe
  readonly place: Placed
}

function placeOf({ placed }: Layout, i: number): Placed {
  const place = placed[i]
  if (place === undefined) throw new RangeError(`no member ${i}`)
  return place
}

function refuseRecipe({ name }: BundleMember): never {
  throw new MirrorError('bundle', `it does not say how ${name} is made`)
}

function decodeMember(decoder: Decoder, { member, recipe, place }: Part): void {
  const { frames, base, compress, prediction, put } = decoder
  const { name, size } = member
  if (recipe.kind === 'records') return
  if (recipe.kind === 'stored') return copyStored(decoder, { member, recipe, place })
  const dictionary = dictionaryOf({ name, recipe }, base, prediction)
  const content = expand(frames.next(MOST_BYTES), dictionary, recipe.kind === 'rows' ? size : MOST_BYTES)
  if (hasRecords(name)) prediction.pass(content)
  const bytes = compress(recipe, content)
  const digest = member.method === 'deflate' ? member.packedSha256 : member.sha256
  if (bytes.length !== place.end - place.dataAt || sha256Hex(bytes) !== digest) throw others(decoder, name)
  put(place.dataAt, bytes)
}

function copyStored({ frames, put, ...decoder }: Decoder, { member, place }: Part): void {
  const hash = createHash('sha256')
  for (let at = place.dataAt; at < place.end;) {
    const bytes = frames.next(STORED_PIECE)
    if (bytes.length === 0 || bytes.length > place.end - at) throw others(decoder, member.name)
    hash.update(bytes)
    put(at, bytes)
    at += bytes.length
  }
  if (hash.digest('hex') !== member.sha256) throw others(decoder, member.name)
}

/** Makes the archive of the records again, group by group. */
function decodeRecords(decoder: Decoder, { member, place }: Part): void {
  const { frames, prediction, put } = decoder
  const hash = createHash('sha256')
  let at = place.dataAt
  const archive = createZipWriter((chunk) => {
    if (at + chunk.length > place.end) throw others(decoder, member.name)
    hash.update(chunk)
    put(at, chunk)
    at += chunk.length
  })
  for (let isLast = false; !isLast;) {
    const next = group(jsonIn(frames, GROUP_BYTES), 'a group of its records')
    if (next.entries.length === 0 && !next.isLast) throw others(decoder, member.name)
    for (const { id, content, deflated } of recordsIn(decoder, next.entries)) {
      const sum = crc32(content)
      archive.add({ name: `${id}.json`, crc32: sum, size: content.length, deflated })
      prediction.add({ id, crc32: sum, content })
    }
    isLast = next.isLast
  }
  archive.finish()
  if (at !== place.end || hash.digest('hex') !== member.sha256) throw others(decoder, member.name)
}

function* recordsIn(decoder: Decoder, entries: readonly GroupEntry[]) {
  const { frames, base } = decoder
  const earlier: Buffer[] = []
  for (const { id } of entries.filter(({ known }) => known)) {
    const one = base.record(id)
    if (one === null) throw others(decoder, id)
    earlier.push(one)
  }
  const bytes = expand(frames.next(MOST_BYTES), Buffer.concat(earlier), MOST_BYTES)
  let from = 0
  for (const { id, size, carried } of entries) {
    const one = bytes.subarray(from, from + size)
    from += size
    if (one.length < size) throw others(decoder, id)
    const content = carried ? inflated(one, id) : one
    yield { id, content, deflated: carried ? one : deflate(one) }
  }
}

function inflated(deflated: Buffer, id: string): Buffer {
  try {
    return inflateRawSync(deflated, { maxOutputLength: MOST_BYTES })
  } catch (error) {
    throw new MirrorError('bundle', `its record ${id} does not inflate (${messageOf(error)}): copy it again`)
  }
}

/** What was made differs from what was signed. */
function others({ head: { deflater } }: Pick<Decoder, 'head'>, name: string): MirrorError {
  if (deflater !== deflaterId())
    return new MirrorError(
      'bundle',
      `${name}: this program compresses in another way than the one that made it: export it without --thin, or run both with the same Node.js`,
    )
  return new MirrorError(
    'bundle',
    `${name} is not what was signed: it is damaged, or was made for another state. Copy it again, or export it without --thin`,
  )
}
