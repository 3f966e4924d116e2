import { MirrorError } from '../../../base/errors.ts'
import { type SourceName, SOURCES } from '../../../base/domain/sources.ts'
import { combineDigests } from '../../../store/replication/rows.ts'
import {
  type Check,
  date,
  integerField,
  listField,
  choiceField,
  orNull,
  recordOf,
  shape,
  textField,
  truth,
  sha256,
} from '../../../base/json/shapes.ts'

/** Version of the format that this program writes and reads; docs/bundle-format.md. */
export const FORMAT = 1

/** One source in a bundle. */
export interface ManifestSource {
  /** The id of the snapshot, hex. */
  snapshot: string
  /** The state digest of the source after the bundle is applied: 64 hex digits. */
  digest: string
  /** Upstream's date of the data. */
  asOf: string
  records: number
  /** False: data was missing or stale on the source mirror already. */
  whole: boolean
  /** In a delta, the digests of all states of this source that it applies to; empty in a full bundle. */
  bases: string[]
}

/** A data member: size, CRC-32 (8 hex digits) and SHA-256 of its content. */
export interface StoredMember {
  name: string
  method: 'store'
  size: number
  crc32: string
  sha256: string
}

/** A deflated data member: `packed` and `packedSha256` describe its bytes in the bundle. */
export interface DeflatedMember extends Omit<StoredMember, 'method'> {
  method: 'deflate'
  packed: number
  packedSha256: string
}

/** A data member in the manifest, in file order. */
export type BundleMember = StoredMember | DeflatedMember

/** The base of a delta: the exported state of the same mirror with this sequence. */
export interface ManifestBase {
  /** Null if the mirror never exported that state itself. */
  sequence: number | null
  digest: string
  /** State digests by source. */
  sources: Partial<Record<SourceName, string>>
}

/** The manifest without what the writer adds: the members and the keys that sign. */
export interface ManifestHead {
  format: typeof FORMAT
  /** The identity of the mirror that exported, hex. */
  mirror: string
  /** Counts up with each exported state of that mirror. */
  sequence: number
  kind: 'full' | 'delta'
  createdAt: string
  expiresAt: string | null
  program: string
  /** The combined state digest of the exported sources: 64 hex digits. */
  digest: string
  sources: Partial<Record<SourceName, ManifestSource>>
  base: ManifestBase | null
  /** Numbers of rows put and removed, by kind of row. */
  counts: Partial<Record<string, { put: number; removed: number }>>
}

/** The content of `manifest.json`. */
export interface Manifest extends ManifestHead {
  /** The ids of the keys that signed, in the order of their signatures. */
  keys: string[]
  members: BundleMember[]
}

/** Limits against hostile bundles: bytes of the manifest, members, signatures, and bytes of one pack of rows. */
export const CAPS = {
  manifestBytes: 128 * 2 ** 20,
  members: 500_000,
  keys: 16,
  packBytes: 64 * 2 ** 20,
} as const

const size = integerField(0, 2 ** 50)

/** Valid names of members. None of them leads out of a folder. */
const NAME = /^(?:osv\/(?:all|changed)\.zip|blobs\/[\da-f]{64}\.gz|rows\/[a-z]{1,16}\/[a-z-]{1,32}-\d{5,9}\.jsonl)$/
const name = textField(NAME, 'a name that a member of this format has')

const common = {
  name,
  size,
  crc32: textField(/^[\da-f]{8}$/, 'a CRC-32 in hex'),
  sha256,
}
const stored = shape<StoredMember>({ ...common, method: choiceField('store') })
const deflated = shape<DeflatedMember>({
  ...common,
  method: choiceField('deflate'),
  packed: size,
  packedSha256: sha256,
})
const member: Check<BundleMember> = (value, place) =>
  typeof value === 'object' && value !== null && 'packed' in value ? deflated(value, place) : stored(value, place)

const bySource = new RegExp(`^(?:${SOURCES.join('|')})$`)

/** Accepts a value for each of some sources. */
export const perSource = <T>(check: Check<T>): Check<Partial<Record<string, T>>> =>
  recordOf(bySource, check, SOURCES.length)

const manifest = shape<Manifest>({
  format: choiceField(FORMAT),
  mirror: textField(/^[\da-f]{16,64}$/, "a mirror's identity"),
  sequence: integerField(1),
  kind: choiceField('full', 'delta'),
  createdAt: date,
  expiresAt: orNull(date),
  program: textField(/^[\x21-\x7e]{1,100}$/, 'the name of a program'),
  digest: sha256,
  sources: recordOf(
    bySource,
    shape<ManifestSource>({
      snapshot: textField(/^[\da-f]{1,128}$/, 'the id of a snapshot'),
      digest: sha256,
      asOf: date,
      records: integerField(0),
      whole: truth,
      bases: listField(sha256, 1000),
    }),
    SOURCES.length,
  ),
  base: orNull(
    shape<ManifestBase>({
      sequence: orNull(integerField(1)),
      digest: sha256,
      sources: perSource(sha256),
    }),
  ),
  counts: recordOf(
    /^[a-z-]{1,32}$/,
    shape<{ put: number; removed: number }>({ put: integerField(0), removed: integerField(0) }),
    100,
  ),
  keys: listField(textField(/^[\da-f]{16}$/, 'the id of a key'), CAPS.keys),
  members: listField(member, CAPS.members),
})

/**
 * Parses an untrusted manifest. The result conforms to the types, the limits, and the relations between fields. Throws
 * `bundle` with the position.
 */
export function parseManifest(bytes: Buffer): Manifest {
  if (bytes.length > CAPS.manifestBytes)
    throw new MirrorError('bundle', `its manifest of ${bytes.length} bytes is over the cap`)
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    throw new MirrorError('bundle', 'manifest.json is not JSON in UTF-8', { cause: error })
  }
  refuseOtherFormat(json)
  const read = manifest(json, 'manifest.json:')
  const fault = faultOf(read)
  if (fault !== null) throw new MirrorError('bundle', `manifest.json: ${fault}`)
  return read
}

function refuseOtherFormat(json: unknown): void {
  if (typeof json !== 'object' || json === null || !('format' in json)) return
  if (typeof json.format === 'number' && json.format > FORMAT)
    throw new MirrorError(
      'bundle',
      `it has format ${json.format}, and this program reads ${FORMAT}: import it with a newer Patchmirror`,
    )
}

function faultOf({ kind, base, sequence, sources, members, keys, ...rest }: Manifest): string | null {
  const given = Object.keys(sources)
  if (given.length === 0) return 'it has no source'
  if (rest.digest !== combineDigests(digestsOf(sources))) return 'its digest is not that of its sources'
  if (base !== null && base.digest !== combineDigests(base.sources))
    return 'the digest of its base is not that of the sources of its base'
  if ((kind === 'delta') !== (base !== null)) return `a ${kind} bundle with base ${base === null ? 'null' : 'given'}`
  if ((base?.sequence ?? 0) > sequence) return 'its base is newer than itself'
  if (kind === 'full' && Object.values(sources).some(({ bases }) => bases.length > 0)) return 'a full bundle with bases'
  if (rest.expiresAt !== null && rest.expiresAt <= rest.createdAt) return 'expires before it was made'
  if (new Set(keys).size < keys.length) return 'names a key twice'
  const names = new Set(members.map((one) => one.name))
  if (names.size < members.length) return 'names a member twice'
  for (const one of members) {
    const fault = memberFault(one, given)
    if (fault !== null) return `${one.name} ${fault}`
  }
  return null
}

/** Returns the state digests of sources. */
export function digestsOf(
  sources: Partial<Record<SourceName, { readonly digest: string }>>,
): Partial<Record<SourceName, string>> {
  return Object.fromEntries(Object.entries(sources).map(([name, { digest }]) => [name, digest]))
}

/**
 * Returns why a member is invalid, or null: rows are deflated and all others stored; each belongs to a source of the
 * bundle.
 */
function memberFault({ name, method, size }: BundleMember, sources: readonly string[]): string | null {
  const [folder] = name.split('/')
  if ((folder === 'rows') !== (method === 'deflate')) return `is not to be method ${method}`
  if (folder === 'rows' && size > CAPS.packBytes) return `has ${size} bytes, over the cap`
  const source = sourceOf(name)
  return source === null || sources.includes(source) ? null : `belongs to no source of the bundle`
}

/** Returns the source that the name of a member says; null: it belongs to the bundle as a whole. */
function sourceOf(name: string): string | null {
  const [folder, second = ''] = name.split('/')
  if (folder === 'rows') return second
  return folder === 'osv' ? 'osv' : null
}
