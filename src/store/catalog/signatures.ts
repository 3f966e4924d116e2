import { sha256Hex } from '../../base/digest.ts'
import type { SignatureCounts, StoredSignature } from '../../base/domain/artifacts/signature.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { type CatalogAnswer, type CatalogLink, IS_VEX_PATH, answerState } from './answers.ts'

/** An answer as far as its signatures depend on it. */
type SignedAnswer = Pick<CatalogAnswer, 'status' | 'sha256' | 'links'>

/** A stored result with what it was judged by. */
export interface SignatureRow extends StoredSignature {
  readonly path: string
  /** Another one for an answer with other documents. */
  readonly answer: string
  /** Another one for other settings and keys. */
  readonly basis: string
}

/** An artifact whose signatures can be verified: its documents. */
export interface SignedPath extends SignedAnswer {
  readonly path: string
  readonly owner: string
}

type Row = Omit<SignatureRow, 'isEnforced'> & { readonly isEnforced: number }

const COLUMNS = 'path, answer, basis, state, signer, reason, subject, enforced AS isEnforced'

/** SQL: the answers about SBOMs, VEX and provenance; their paths end like this (service API, section 4). */
const IS_SIGNED = `status = 200 AND (path LIKE '/v1/%/sbom' OR path LIKE '/v1/%/vex' OR path LIKE '/v1/%/provenance'
  OR path LIKE '/packages/%/provenance/%')`

/** SQL: the row of no answer, whose text is another one whenever a result of published answers may have changed. */
const MARK = "path = '' AND fetched = 2"

/** SQL: notes there that they may have changed, for those that follow them. */
export const MARK_SIGNATURES = `INSERT OR REPLACE INTO catalog_signature (path, fetched, answer, basis, state, enforced)
  VALUES ('', 2, lower(hex(randomblob(8))), '', '', 0)`

/** Returns what identifies the documents of an answer in a stored result; null: it has none. */
export function signedState({ status, sha256, links }: SignedAnswer): string | null {
  const state = answerState({ status, sha256, links })
  return state === null ? null : sha256Hex(state)
}

/** Creates reads of what the signatures of artifacts came to; usable on any connection. */
export function createSignatureReader(db: Db) {
  const { list, value } = queries(db)
  const one = db.prepare<[string], Row>(`SELECT ${COLUMNS} FROM catalog_signature WHERE path = ? AND fetched = 0`)
  const counts = db.prepare<[], { state: keyof SignatureCounts; paths: number }>(
    'SELECT state, count(*) AS paths FROM catalog_signature WHERE fetched = 0 GROUP BY state',
  )
  const wrong = db.prepare<[number], Row>(
    `SELECT ${COLUMNS} FROM catalog_signature WHERE fetched = 0 AND state <> 'verified'
     ORDER BY state, path LIMIT ?`,
  )
  const mark = db.prepare<[], string>(`SELECT answer FROM catalog_signature WHERE ${MARK}`).pluck()
  const missing = db.prepare<[], string>(`SELECT path FROM catalog_lacking WHERE ${IS_VEX_PATH} ORDER BY path`).pluck()
  const signed = db.prepare<[], Omit<SignedPath, 'links'> & { links: string }>(
    `SELECT path, owner, status, sha256, links FROM catalog_answer WHERE ${IS_SIGNED}`,
  )
  const rowOf = (path: string): SignatureRow | null => toRow(one.get(path))
  return {
    /** The stored result of a path, whichever documents it is about. */
    readSignatureRow: rowOf,
    /** The result for the documents that an answer has now; null: they were not verified. */
    readSignature(path: string, answer: SignedAnswer): StoredSignature | null {
      const row = rowOf(path)
      return row !== null && row.answer === signedState(answer) ? row : null
    },
    /**
     * Another text whenever it may have changed what of VEX counts in the same catalog: by a result of published answers, or a
     * path that could not be fetched; '': there are none.
     */
    readVexMark(): string {
      const paths = missing.all()
      return (mark.get() ?? '') + (paths.length === 0 ? '' : ` without ${sha256Hex(paths.join('\n'))}`)
    },
    /** Numbers of artifacts by their result; null: none was verified. */
    countSignatures(): SignatureCounts | null {
      const rows = counts.all()
      if (rows.length === 0) return null
      const none = { verified: 0, failed: 0, none: 0 }
      return { ...none, ...Object.fromEntries(rows.map(({ state, paths }) => [state, paths])) }
    },
    /** Results that are not `verified`, those that failed first. */
    listUnverified: (limit: number): SignatureRow[] => wrong.all(limit).flatMap((row) => toRow(row) ?? []),
    /** Paths of the VEX of tags that is verified, and rules nothing out: the catalog names no digest to compare. */
    listUncomparedVex: list<[], string>(
      `SELECT path FROM catalog_signature WHERE fetched = 0 AND enforced = 1 AND state = 'verified' AND subject IS NULL
       AND path LIKE '/v1/tags/%/vex' ORDER BY path`,
    ),
    /** Every stored artifact. */
    *eachSignedPath(): Generator<SignedPath> {
      for (const row of signed.all()) yield { ...row, links: JSON.parse(row.links) as CatalogLink[] }
    },
    /** The item of a listed tag; null: it is not listed. */
    readTagItem: value<[id: string], Buffer>(
      `SELECT e.body FROM catalog_list l JOIN catalog_entry e ON e.list = l.id
       WHERE l.resource = 'tags' AND e.id = ? LIMIT 1`,
    ),
  }
}

function toRow(row: Row | undefined): SignatureRow | null {
  return row === undefined ? null : { ...row, isEnforced: row.isEnforced === 1 }
}

/** Creates writes of the same. */
export function createSignatureWriter(db: Db) {
  const put = db.prepare(
    `INSERT OR REPLACE INTO catalog_signature
       (path, fetched, answer, basis, state, signer, reason, subject, enforced)
     VALUES (@path, @fetched, @answer, @basis, @state, @signer, @reason, @subject, @enforced)`,
  )
  const dropAll = db.prepare('DELETE FROM catalog_signature')
  const sweep = db.prepare(
    `DELETE FROM catalog_signature WHERE (fetched = 0 AND path NOT IN (SELECT path FROM catalog_answer WHERE status = 200))
       OR (fetched = 1 AND path NOT IN (SELECT path FROM catalog_fetched))`,
  )
  const mark = db.prepare(MARK_SIGNATURES)
  return {
    ...createSignatureReader(db),
    /** Stores a result; `isFetched`: the answer is not published yet. */
    putSignature({ isEnforced, ...row }: SignatureRow, isFetched: boolean): void {
      put.run({ ...row, enforced: isEnforced ? 1 : 0, fetched: isFetched ? 1 : 0 })
      if (!isFetched) mark.run()
    },
    /** Deletes all results. Returns whether there were any. */
    dropSignatures: (): boolean => dropAll.run().changes > 0,
    /** Deletes the results of answers that are not stored any more. */
    sweepSignatures(): void {
      if (sweep.run().changes > 0) mark.run()
    },
  }
}

/** Creates reads of the trust root that the last bundle with one brought; usable on any connection. */
export function createTrustReader(db: Db) {
  const { list } = queries(db)
  return {
    /** Public keys in PEM and trusted roots of Sigstore in JSON, as the files had them; none: no bundle brought any. */
    listCarriedTrust: list<[], string>('SELECT body FROM carried_trust ORDER BY place'),
  }
}

/** Creates writes of the same. */
export function createTrustWriter(db: Db) {
  const drop = db.prepare('DELETE FROM carried_trust')
  const add = db.prepare('INSERT INTO carried_trust (place, body) VALUES (?, ?)')
  const mark = db.prepare(MARK_SIGNATURES)
  return {
    ...createTrustReader(db),
    /** Replaces what an earlier bundle brought: signatures may come to something else by it. */
    putCarriedTrust(texts: readonly string[]): void {
      mark.run()
      drop.run()
      for (const [place, text] of texts.entries()) add.run(place, text)
    },
  }
}
