import { deflateRawSync, gunzipSync, gzipSync, inflateRawSync } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { BLOCK_BYTES, BLOCK_END, createPacker } from '../../../base/gzip/pieces.ts'
import { trailerSize } from '../../../base/gzip/member.ts'
import { packedBytes } from '../../../archive/zip/member.ts'
import { deflate } from '../../../base/gzip/member.ts'
import { type ByteSource, openSource } from '../../../archive/zip/reader.ts'
import type { BundleMember } from '../format/manifest.ts'
import type { OutputFile } from '../export/output-file.ts'
import type { Blob } from '../export/rows.ts'
import { ARCHIVE_LIMITS, archiveName } from '../import/records/members.ts'
import type { Claims } from '../import/envelope.ts'
import type { Bundle } from '../import/open.ts'
import {
  type BaseContents,
  type GroupEntry,
  type Recipe,
  type ThinHead,
  GROUP_BYTES,
  MOST_BYTES,
  STORED_PIECE,
  deflaterId,
  frameOf,
  magic,
  squeeze,
} from './format.ts'
import { type Prediction, createPrediction, dictionaryOf, hasRecords } from './predicted.ts'

/** What a thin bundle is made of. */
interface ThinSource {
  /** The whole bundle, verified. */
  readonly bundle: Bundle & { readonly claims: Claims }
  readonly base: BaseContents
  /** The state digests of the base. */
  readonly digests: ThinHead['base']
  /** What the members with blobs have, by the member's name. */
  readonly blobs: ReadonlyMap<string, Blob>
  readonly compress: typeof compressAgain
}

const NONE = Buffer.alloc(0)
/** Bytes that are remembered at most. */
const MOST_REMEMBERED = 2 ** 24

/** Creates a memory of what is made under a name, as far as there is room. */
export function createMemory() {
  const made = new Map<string, Buffer>()
  let bytes = 0
  return <T extends Buffer | null>(name: string, make: () => T): T | Buffer => {
    const before = made.get(name)
    if (before !== undefined) return before
    const one = make()
    if (one !== null && bytes + one.length <= MOST_REMEMBERED) {
      made.set(name, one)
      bytes += one.length
    }
    return one
  }
}

/** Writes a bundle as what its base lacks. Throws as `bundle.read` does, and `storage`. */
export async function encodeThin(given: ThinSource, target: OutputFile): Promise<void> {
  let at = 0
  const write = async (bytes: Buffer): Promise<void> => {
    await target.write(at, bytes)
    at += bytes.length
  }
  const remembered = createMemory()
  const source = { ...given, inflate: (name: string, packed: Buffer) => remembered(name, () => gunzipSync(packed)) }
  const { bundle, digests } = source
  const { manifest, claims } = bundle
  const recipes: Recipe[] = []
  for (const member of manifest.members) recipes.push(await recipeFor(member, source)) // one content in memory at a time
  const head: ThinHead = {
    base: digests,
    deflater: deflaterId(),
    manifest: claims.manifest.toString(),
    signatures: [...claims.signatures].map(([key, bytes]) => ({ key, bytes: bytes.toString('base64') })),
    recipes,
  }
  await write(magic())
  await write(frameOf(squeeze(Buffer.from(JSON.stringify(head)), NONE)))
  const prediction = createPrediction()
  const encoder = { ...source, write, prediction }
  const members = manifest.members.map((member, i) => ({ member, recipe: recipes[i] ?? STORED }))
  // Rows follow from records, so these come first.
  for (const { recipe } of members) if (recipe.kind === 'records') await writeRecords(encoder)
  for (const { member, recipe } of members) await writeMember(encoder, member, recipe)
}

const STORED: Recipe = { kind: 'stored', path: null, gzip: null }

/** Chooses how a member is made again; it is stored where this program would make other bytes of its content. */
async function recipeFor({ name, size }: BundleMember, source: Inflating): Promise<Recipe> {
  const { bundle, blobs } = source
  if (name.startsWith('rows/')) return { ...STORED, kind: 'rows' }
  if (name === archiveName(bundle.manifest)) return recipeOfRecords(bundle.source(name))
  const blob = blobs.get(name)
  // Documents of the catalog have no earlier version.
  if (size > MOST_BYTES || blob?.kind === 'catalog-document') return STORED
  const packed = await bundle.read(name)
  if ((trailerSize(packed) ?? 0) > MOST_BYTES) return STORED
  const path = blob?.path ?? null
  try {
    return recipeOf(source, { packed, content: source.inflate(name, packed), path })
  } catch (error) {
    const why = `${path ?? name} does not inflate (${messageOf(error)}): run "patchmirror doctor --data --repair"`
    throw new MirrorError('bundle', why, { cause: error })
  }
}

/** An archive with a record that is too large for a dictionary is carried as it is; its rows are not predicted then. */
async function recipeOfRecords(archive: ByteSource): Promise<Recipe> {
  const { directory } = await openSource(archive, ARCHIVE_LIMITS)
  for (let i = 0; i < directory.count; i++) if (directory.entry(i).size > MOST_BYTES) return STORED
  return { ...STORED, kind: 'records' }
}

/** Levels of zlib, those that servers use first. */
const LEVELS = [6, 9, 1, 5, 4, 3, 2, 7, 8]
/** Bytes of gzip before the deflate stream, where the header has no names. */
const GZIP_HEADER = 10

/** A member that is gzip, and the path of its document. */
interface GzipMember {
  readonly packed: Buffer
  readonly content: Buffer
  readonly path: string | null
}

/** Finds how a member is made again; where no way gives its bytes, it is stored. */
export function recipeOf({ compress }: Pick<ThinSource, 'compress'>, { packed, content, path }: GzipMember): Recipe {
  const header = packed.toString('hex', 0, GZIP_HEADER)
  const isPacked = content.length <= BLOCK_BYTES || packed.includes(BLOCK_END)
  const recipes: Recipe[] = isPacked ? [{ kind: 'packed', path, gzip: null }] : []
  for (const level of LEVELS) recipes.push({ kind: 'gzip', path, gzip: { level, header } })
  const isMade = (recipe: Recipe): boolean =>
    beginsSo(recipe, content, packed) && compress(recipe, content).equals(packed)
  return recipes.find(isMade) ?? STORED
}

/** Bytes of content that show most wrong levels. */
const BEGIN = 2 ** 20
/** Bytes at the end of what is compressed that depend on what follows: more than a block of zlib's has. */
const UNSETTLED = 2 ** 16

/** Reports whether a recipe makes the begin of a member, as far as that is worth a look; the rest is to be compared too. */
function beginsSo(recipe: Recipe, content: Buffer, packed: Buffer): boolean {
  const level = recipe.gzip?.level ?? LEVELS[0]
  if (content.length <= BEGIN || level === LEVELS[0]) return true // it is the usual one
  const made = compressAgain(recipe, content.subarray(0, BEGIN))
  const settled = Math.max(0, made.length - UNSETTLED)
  return made.subarray(0, settled).equals(packed.subarray(0, settled))
}

/** Compresses the content of a member as its recipe says. */
export function compressAgain({ kind, gzip }: Recipe, content: Buffer): Buffer {
  if (kind === 'rows') return deflateRawSync(content)
  if (gzip !== null) {
    const made = gzipSync(content, { level: gzip.level })
    return Buffer.concat([Buffer.from(gzip.header, 'hex'), made.subarray(GZIP_HEADER)])
  }
  const packer = createPacker()
  packer.push(content)
  return packer.end()
}

/** Creates a `compressAgain` that compresses a content once: an export finds the recipe by it, and checks what is made of it. */
export function createCompressor(): typeof compressAgain {
  const remembered = createMemory()
  return (recipe, content) =>
    remembered(`${sha256Hex(content)} ${JSON.stringify(recipe)}`, () => compressAgain(recipe, content))
}

interface Inflating extends ThinSource {
  /** Inflates a member. */
  readonly inflate: (name: string, packed: Buffer) => Buffer
}

interface Encoder extends Inflating {
  readonly write: (bytes: Buffer) => Promise<void>
  readonly prediction: Prediction
}

async function writeMember(encoder: Encoder, { name, size }: BundleMember, recipe: Recipe): Promise<void> {
  const { bundle, base, inflate, prediction, write } = encoder
  if (recipe.kind === 'records') return
  if (recipe.kind === 'stored') {
    const source = bundle.source(name)
    for (let at = 0; at < size; at += STORED_PIECE)
      await write(frameOf(await source.read(at, Math.min(STORED_PIECE, size - at))))
    return
  }
  const bytes = await bundle.read(name)
  const content = recipe.kind === 'rows' ? bytes : inflate(name, bytes)
  await write(frameOf(squeeze(content, dictionaryOf({ name, recipe }, base, prediction))))
  if (hasRecords(name)) prediction.pass(content)
}

/** Records of one frame. */
interface Group {
  entries: GroupEntry[]
  earlier: Buffer[]
  bytes: Buffer[]
  size: number
}

const emptyGroup = (): Group => ({ entries: [], earlier: [], bytes: [], size: 0 })

/** Writes the records in groups: what each is, then their bytes against the earlier versions of the group. */
async function writeRecords({ bundle, base, prediction, write }: Encoder): Promise<void> {
  const archive = bundle.source(archiveName(bundle.manifest))
  const { directory } = await openSource(archive, ARCHIVE_LIMITS)
  let group = emptyGroup()
  const flush = async (isLast: boolean): Promise<void> => {
    await write(frameOf(squeeze(Buffer.from(JSON.stringify({ isLast, entries: group.entries })), NONE)))
    await write(frameOf(squeeze(Buffer.concat(group.bytes), Buffer.concat(group.earlier))))
    group = emptyGroup()
  }
  for (let i = 0; i < directory.count; i++) {
    const entry = directory.entry(i)
    const region = await archive.read(entry.offset, directory.regionEnd(i) - entry.offset)
    const packed = packedBytes(entry, region, ARCHIVE_LIMITS.maxMemberBytes)
    if ('refused' in packed) throw new MirrorError('bundle', `its ${entry.name}: ${packed.refused}`)
    const content = inflateRawSync(packed, { maxOutputLength: Math.max(1, entry.size) })
    const id = entry.name.slice(0, -'.json'.length)
    const earlier = base.record(id)
    const carried = !deflate(content).equals(packed)
    const bytes = carried ? packed : content
    if (group.size > 0 && group.size + bytes.length + (earlier?.length ?? 0) > GROUP_BYTES) await flush(false)
    group.entries.push({ id, size: bytes.length, known: earlier !== null, carried })
    group.bytes.push(Buffer.from(bytes))
    group.size += bytes.length + (earlier?.length ?? 0)
    if (earlier !== null) group.earlier.push(earlier)
    prediction.add({ id, crc32: entry.crc32, content })
  }
  await flush(true)
}
