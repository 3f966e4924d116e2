import { statSync } from 'node:fs'
import { MirrorError } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { nameStorageError } from '../../../store/database/faults.ts'
import { openReader } from '../../../store/database/open.ts'
import { type Reads, createReads } from '../../../store/reads.ts'
import { createCarriedReader } from '../../../store/replication/reader.ts'
import type { Writes } from '../../../store/writes.ts'
import type { KeyTrust } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { bundleRefusal, refusalOf } from '../format/refusal.ts'
import { manifestSources } from '../import/admission.ts'
import { type Bundle, judgeClaims, openFiles } from '../import/open.ts'
import { contentsStored } from './base.ts'
import { type ThinClaims, decodeThin, readThinClaims } from './decode.ts'

/** Where a whole bundle is made, and whom it may come from. */
interface WholeOptions {
  readonly dataDir: string
  /** What reads the data folder: it then knows the digests that an import asks for next. Not given: a connection of its own. */
  readonly store?: Writes
  /** Whether `store` has a transaction open, whose state is read. */
  readonly within?: boolean
  /** A file that is not there yet; a caller removes it. */
  readonly whole: string
  readonly trust: KeyTrust
}

/** Reads what a thin bundle says of itself, for inspection: nothing of it is verified. Throws `bundle` with its name. */
export function inspectThin(path: string): ThinClaims {
  try {
    return readThinClaims(path)
  } catch (error) {
    throw naming(path, error)
  }
}

/** Judges what a thin bundle says of itself, as a whole one is judged before its members are read. Throws `bundle`. */
export function judgeThin(path: string, trust: KeyTrust): ThinClaims & Pick<Bundle, 'key'> {
  try {
    const said = readThinClaims(path)
    return { ...said, key: judgeClaims(said.claims, trust).key }
  } catch (error) {
    throw naming(path, error)
  }
}

/**
 * Opens a thin bundle as its whole one, which is made of it and of what is stored. Where another state is stored than its base,
 * all is known but its content, whose first use throws `bundle`: what is stored already needs none. Throws as `judgeThin`,
 * `bundle` for damage, and `storage`.
 */
export async function openThin(path: string, options: WholeOptions): Promise<Bundle> {
  const { dataDir, whole, trust } = options
  const said = judgeThin(path, trust)
  try {
    const other = await readState(options, (reads) => decodeStored(path, said, reads, whole))
    return other === null ? await openFiles([whole], trust) : withoutContent(path, said, other)
  } catch (error) {
    throw naming(path, nameStorageError(error, dataDir))
  }
}

/** The state digests of stored sources. */
type Digests = ReadonlyMap<SourceName, string>

/** Reads of one state that is stored. */
interface Stored extends Pick<Reads, 'feeds' | 'osv'> {
  readonly digestOf: (source: SourceName) => string
}

async function readState(
  { dataDir, store, within = false }: WholeOptions,
  work: (stored: Stored) => Digests | null,
): Promise<Digests | null> {
  if (store === undefined) return readFolder(dataDir, work)
  return within ? work(storedIn(store)) : store.reading(() => work(storedIn(store)))
}

function storedIn({ feeds, osv, carried }: Writes): Stored {
  return { feeds, osv, digestOf: (source) => carried.known.digestOf(source) }
}

function readFolder(dataDir: string, work: (stored: Stored) => Digests | null): Digests | null {
  const db = openReader(dataDir)
  if (db === null) return new Map()
  try {
    db.exec('BEGIN')
    return work({ ...createReads(db), digestOf: createCarriedReader(db).digestOf })
  } finally {
    db.close()
  }
}

/** Makes the whole bundle. Returns the stored state where it is another one than the base: then nothing is made. */
function decodeStored(path: string, said: ThinClaims, reads: Stored, whole: string): Digests | null {
  const stored = new Map(manifestSources(said.manifest).map(([source]) => [source, reads.digestOf(source)]))
  if ([...stored].some(([source, digest]) => digest !== said.head.base[source])) return stored
  decodeThin(path, contentsStored(reads), whole)
  return null
}

/** What needs the content refuses the state that is stored, with better words than those for a whole delta. */
function withoutContent(path: string, { manifest, key }: ReturnType<typeof judgeThin>, stored: Digests): Bundle {
  const refuse = (): never => {
    throw otherBase(manifest)
  }
  const { 'trust-root': _, ...counts } = manifest.counts // it cannot be read, so it is none
  const sources = manifestSources(manifest).map(([name, source]) => {
    return [name, { ...source, bases: [stored.get(name) ?? ''] }] as const
  })
  return {
    manifest: { ...manifest, counts, sources: Object.fromEntries(sources) },
    key,
    bytes: statSync(path).size,
    verify: refuse,
    read: refuse,
    stream: refuse,
    streamContent: refuse,
    source: refuse,
    excerpt: refuse,
    close: () => Promise.resolve(),
  }
}

function naming(path: string, error: unknown): unknown {
  if (!(error instanceof MirrorError) || !['archive', 'bundle'].includes(error.code)) return error
  const text = `the thin bundle ${path} is refused: ${error.message}`
  const why = refusalOf(error)
  return why === null ? new MirrorError(error.code, text, { cause: error }) : bundleRefusal(why, text)
}

function otherBase({ base }: Manifest): MirrorError {
  const sequence = base?.sequence ?? null
  return bundleRefusal(
    { kind: 'base', sequence },
    `it was made for a mirror with exactly the state of bundle ${String(sequence)}, and here is another one. Import what comes before it, ` +
      'or run "patchmirror bundle need FILE" here and "patchmirror bundle export OUT --for FILE --thin" on the source mirror',
  )
}
