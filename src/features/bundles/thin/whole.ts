import { join } from 'node:path'
import { MirrorError } from '../../../base/errors.ts'
import { openReader } from '../../../store/database/open.ts'
import { createReads } from '../../../store/reads.ts'
import { createCarriedReader } from '../../../store/replication/reader.ts'
import { type Temporary, makeTemporary } from '../../../store/temporary.ts'
import type { KeyTrust } from '../format/keys.ts'
import { bundleRefusal, refusalOf } from '../format/refusal.ts'
import { manifestSources } from '../import/admission.ts'
import { judgeSignatures } from '../format/signatures.ts'
import { contentsStored } from './base.ts'
import { type ThinClaims, decodeThin, readThinClaims } from './decode.ts'

/** A whole bundle in a file of its own. */
interface WholeBundle {
  readonly path: string
  /** Removes it. */
  close(): void
}

/**
 * Makes the whole bundle of a thin one, by what is stored in the data folder. Its signature is verified before. Returns null, and
 * says so, where its state is stored already. Throws `bundle` for another base, another signer, and damage.
 */
export function wholeOf(path: string, dataDir: string, trust: KeyTrust): WholeBundle | null {
  try {
    const said = readThinClaims(path)
    judgeSignatures(said.claims.manifest, said.claims.signatures, trust)
    return madeWhole(path, said, dataDir)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const text = `the thin bundle ${path} is refused: ${error.message}`
    const why = refusalOf(error)
    throw why === null ? new MirrorError(error.code, text, { cause: error }) : bundleRefusal(why, text)
  }
}

function madeWhole(path: string, said: ThinClaims, dataDir: string): WholeBundle | null {
  const db = openReader(dataDir)
  if (db === null) throw otherBase(said)
  try {
    db.exec('BEGIN')
    const carried = createCarriedReader(db)
    const sources = manifestSources(said.manifest)
    const stored = new Map(sources.map(([source]) => [source, carried.digestOf(source)]))
    if (sources.every(([source, { digest }]) => digest === stored.get(source))) {
      process.stderr.write(`patchmirror: ${path}: its state is stored already: nothing to do\n`)
      return null
    }
    if (sources.some(([source]) => stored.get(source) !== said.head.base[source])) throw otherBase(said)
    return decodedTo(makeTemporary(dataDir), (whole) => decodeThin(path, contentsStored(createReads(db)), whole))
  } finally {
    db.close()
  }
}

function decodedTo(temporary: Temporary, decode: (whole: string) => void): WholeBundle {
  const path = join(temporary.folder, 'bundle.zip')
  try {
    decode(path)
    return { path, close: () => temporary.remove() }
  } catch (error) {
    temporary.remove()
    throw error
  }
}

function otherBase({ manifest: { base } }: ThinClaims): MirrorError {
  const sequence = base?.sequence ?? null
  return bundleRefusal(
    { kind: 'base', sequence },
    `it was made for a mirror with exactly the state of bundle ${String(sequence)}, and here is another one. Import what comes before it, ` +
      'or run "patchmirror bundle need FILE" here and "patchmirror bundle export OUT --for FILE --thin" on the source mirror',
  )
}
