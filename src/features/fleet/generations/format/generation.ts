import { sha256Hex } from '../../../../base/digest.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { DAY_MS, HOUR_MS } from '../../../../base/time.ts'
import { type SourceName, SOURCES } from '../../../../base/domain/sources.ts'
import { combineDigests } from '../../../../store/replication/rows.ts'
import { type ManifestSource, digestsOf, perSource } from '../../../bundles/format/manifest.ts'
import {
  date,
  integerField,
  listField,
  choiceField,
  orAbsent,
  orNull,
  shape,
  textField,
  truth,
  sha256,
} from '../../../../base/json/shapes.ts'
import { bundleKey, changesKey } from './object-names.ts'

/** Version of the format on the store that this program writes and reads; docs/fleet-format.md. */
export const GENERATION_FORMAT = 1

/** Largest accepted difference between the clock here and the publisher's, milliseconds. */
export const AHEAD_MS = DAY_MS

/** One source in a generation, as its bundles describe it. */
type GenerationSource = Omit<ManifestSource, 'bases'>

/** An object that a generation names: its key on the store and its exact bytes. */
export interface NamedObject {
  key: string
  sha256: string
  size: number
}

/** A full bundle on the store. */
export interface NamedFull extends NamedObject {
  /** The combined state digest after it is applied; that of the generation unless a delta builds on it. */
  digest: string
  createdAt: string
}

/** A delta on the store. */
export interface NamedDelta extends NamedObject {
  /** The state digests of each source that it applies to. */
  bases: Partial<Record<SourceName, string[]>>
}

/** A thin bundle on the store. */
export interface NamedThin extends NamedObject {
  /** The combined state digest to which it applies, and that after it. */
  base: string
  digest: string
}

/** Numbers of names that a generation added, removed and changed. */
export interface ChangeCounts {
  added: number
  removed: number
  changed: number
}

/** A published state of a fleet: the payload of `gen/<N>.json`. Times in ISO 8601 UTC. */
export interface Generation {
  format: typeof GENERATION_FORMAT
  /** Identity of the fleet: 32 hex digits, as in `format.json`. */
  fleet: string
  /** Counts up by one. */
  generation: number
  /** SHA-256 of the whole object of the generation before; null in the first. */
  previous: string | null
  /** The lease under which it was published. It never decreases. */
  epoch: number
  /** The identity of the mirror that published it, and its name; absent: an earlier version published it. */
  mirror: string
  name?: string
  /** The combined state digest of its sources: 64 hex digits. */
  digest: string
  /** Digest of the decoded content; absent and null: not computed. */
  contentDigest?: string | null
  sources: Partial<Record<SourceName, GenerationSource>>
  full: NamedFull
  /** Null: nothing builds on the full bundle but thin ones. */
  delta: NamedDelta | null
  /** What leads from the full bundle, or the delta on it, to the generation, in order; absent: these do. */
  thin?: readonly NamedThin[]
  /** The rows that it added to the change log; null: none. */
  changes: NamedObject | null
  /** Number of the last row of the fleet's change log; 0: it has none yet. */
  log: number
  /** Null: everything may have changed. */
  counts: ChangeCounts | null
  publishedAt: string
  /** When all readers begin to serve it. */
  activateAt: string
  /** Null: it never expires. */
  expiresAt: string | null
  /** `date`: the same content, confirmed later or bundled again. `rollback`: the content of an older generation. */
  reason: 'publish' | 'date' | 'rollback'
  /** Ids of the keys that sign it, in the order of its signatures. */
  keys: string[]
}

/** A generation with the SHA-256 of its whole object, by which the next one names it. */
export interface KnownGeneration {
  readonly generation: Generation
  readonly sha256: string
}

/** Most bytes of the object of a generation, and most signatures. */
export const GENERATION_CAPS = { bytes: 256 * 1024, keys: 16, thin: 64 } as const

const named = {
  key: textField(/^[\w./-]{1,200}$/, 'a key'),
  sha256,
  size: integerField(0, 2 ** 50),
}

const generation = shape<Generation>({
  format: choiceField(GENERATION_FORMAT),
  fleet: textField(/^[\da-f]{32}$/, "a fleet's identity"),
  generation: integerField(1),
  previous: orNull(sha256),
  epoch: integerField(0),
  mirror: textField(/^[\da-f]{16,64}$/, "a mirror's identity"),
  name: orAbsent(textField(/^.{1,500}$/s, "a mirror's name")),
  digest: sha256,
  contentDigest: orAbsent(orNull(sha256)),
  sources: perSource(
    shape<GenerationSource>({
      snapshot: textField(/^[\da-f]{1,128}$/, 'the id of a snapshot'),
      digest: sha256,
      asOf: date,
      records: integerField(0),
      whole: truth,
    }),
  ),
  full: shape<NamedFull>({ ...named, digest: sha256, createdAt: date }),
  delta: orNull(shape<NamedDelta>({ ...named, bases: perSource(listField(sha256, 1000)) })),
  thin: orAbsent(listField(shape<NamedThin>({ ...named, base: sha256, digest: sha256 }), GENERATION_CAPS.thin)),
  changes: orNull(shape<NamedObject>(named)),
  log: integerField(0),
  counts: orNull(
    shape<ChangeCounts>({
      added: integerField(0),
      removed: integerField(0),
      changed: integerField(0),
    }),
  ),
  publishedAt: date,
  activateAt: date,
  expiresAt: orNull(date),
  reason: choiceField('publish', 'date', 'rollback'),
  keys: listField(textField(/^[\da-f]{16}$/, 'the id of a key'), GENERATION_CAPS.keys),
})

/** Parses the payload of a generation. Throws `bundle` with the position of what is invalid. */
export function parseGeneration(payload: string): Generation {
  let json: unknown
  try {
    json = JSON.parse(payload)
  } catch (error) {
    throw new MirrorError('bundle', 'its payload is not JSON', { cause: error })
  }
  refuseNewer(json)
  const read = generation(json, 'payload:')
  const fault = faultOf(read)
  if (fault !== null) throw new MirrorError('bundle', `payload: ${fault}`)
  return read
}

function refuseNewer(json: unknown): void {
  if (typeof json !== 'object' || json === null || !('format' in json)) return
  if (typeof json.format === 'number' && json.format > GENERATION_FORMAT)
    throw new MirrorError(
      'bundle',
      `it has format ${json.format}, and this program reads ${GENERATION_FORMAT}: update Patchmirror on this node`,
    )
}

/** The longest time from the publication to the activation, milliseconds: a publisher waits two polls. */
const LONGEST_DELAY_MS = 2 * HOUR_MS

function faultOf(read: Generation): string | null {
  const { previous, sources, changes, digest, keys } = read
  if ((previous === null) !== (read.generation === 1)) return 'only the first generation has no previous one'
  if (digest !== combineDigests(digestsOf(sources))) return 'its digest is not that of its sources'
  if (Object.keys(sources).length === 0) return 'it has no source'
  for (const one of bundlesOf(read))
    if (one.key !== bundleKey(one.sha256)) return `${one.key} is not the key of its bundle`
  const broken = faultOfPath(read)
  if (broken !== null) return broken
  if (changes !== null && changes.key !== changesKey(read.generation, changes.sha256))
    return `${changes.key} is not the key of its changes`
  const delay = Date.parse(read.activateAt) - Date.parse(read.publishedAt)
  if (delay < 0) return 'it is activated before it was published'
  if (delay > LONGEST_DELAY_MS)
    return `it is activated at ${read.activateAt}, more than ${LONGEST_DELAY_MS / HOUR_MS} hours after it was published (${read.publishedAt})`
  return new Set(keys).size < keys.length ? 'names a key twice' : null
}

/** Returns why the bundles of a generation do not lead to it; null: they do, as far as it says. */
function faultOfPath({ full, delta, thin = [], digest }: Generation): string | null {
  let state = delta === null ? full.digest : (thin[0]?.base ?? digest)
  for (const one of thin) {
    if (one.base !== state) return `${one.key} does not build on what is before it`
    state = one.digest
  }
  return state === digest ? null : 'its bundles do not lead to its digest'
}

/** Returns all bundles that a generation names. */
export function bundlesOf({ full, delta, thin = [] }: Pick<Generation, 'full' | 'delta' | 'thin'>): NamedObject[] {
  return [full, ...(delta === null ? [] : [delta]), ...thin]
}

/** Returns the names of the sources of a generation, in the order of `SOURCES`. */
export function sourcesOf(sources: Generation['sources']): [SourceName, GenerationSource][] {
  return SOURCES.flatMap((name): [SourceName, GenerationSource][] => {
    const one = sources[name]
    return one === undefined ? [] : [[name, one]]
  })
}

/** Returns the digest by which the next generation names the object of this one. */
export function digestOfObject(bytes: Uint8Array): string {
  return sha256Hex(bytes)
}
