import { randomBytes } from 'node:crypto'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Document } from '../feeds/documents.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { combineDigests } from './rows.ts'

/** The identity of a source in an exported state. `asOf` in Unix milliseconds. */
interface ExportedSource {
  digest: string
  snapshot: string
  asOf: number
}

/** A state that was exported. */
export interface ExportedState {
  sequence: number
  /** Digest over its sources, hex. */
  digest: string
  sources: Partial<Record<SourceName, ExportedSource>>
  exportedAt: number
  /** Whether its summary is stored: then a delta can build on it. */
  kept: boolean
}

/** An import of a source under one sequence number of a source mirror. */
export interface NumberedImport {
  /** The state digest that was imported. */
  digest: string
  /** False before the last rollback, after which the source mirror may reuse its sequence numbers. */
  current: boolean
}

/** A bundle that was applied. */
export interface ImportedBundle {
  mirror: string
  sequence: number
  kind: 'full' | 'delta'
  digest: string
  /** The state digests that it contained, by source. */
  sources: Partial<Record<SourceName, string>>
  /** The trusted key that signed it; null: unsigned. */
  keyId: string | null
  /** Unix milliseconds, as `asOf` (the earliest of its sources) and `importedAt`. */
  createdAt: number
  asOf: number
  importedAt: number
  /** Whether it was older than the stored data. */
  rollback: boolean
  file: string
}

type ExportRow = Omit<ExportedState, 'sources' | 'kept'> & { sources: string; kept: number }
type ImportRow = Omit<ImportedBundle, 'sources' | 'rollback'> & {
  sources: string
  rollback: number
}

const EXPORT = 'sequence, digest, sources, exported_at AS exportedAt, summary IS NOT NULL AS kept'
const IMPORT = `mirror, sequence, kind, digest, sources, key_id AS keyId, created_at AS createdAt, as_of AS asOf,
  imported_at AS importedAt, rollback, file`

/** Creates reads of exports and imports; usable on any connection. */
export function createLedgerReader(db: Db) {
  const { value } = queries(db)
  const identity = db.prepare<[], string>('SELECT id FROM mirror_identity').pluck()
  const exported = db.prepare<[string], ExportRow>(
    `SELECT ${EXPORT} FROM bundle_export WHERE digest = ? ORDER BY sequence DESC LIMIT 1`,
  )
  const bySequence = db.prepare<[number], ExportRow>(`SELECT ${EXPORT} FROM bundle_export WHERE sequence = ?`)
  const exports = db.prepare<[number], ExportRow>(
    `SELECT ${EXPORT} FROM bundle_export WHERE sequence >= ? ORDER BY sequence`,
  )
  const newestExports = db.prepare<[number, number], ExportRow>(
    `SELECT ${EXPORT} FROM bundle_export WHERE sequence < ? ORDER BY sequence DESC LIMIT ?`,
  )
  const last = db.prepare<[], ImportRow>(`SELECT ${IMPORT} FROM bundle_import ORDER BY id DESC LIMIT 1`)
  const lastOf = db.prepare<[string], ImportRow>(
    `SELECT ${IMPORT} FROM bundle_import WHERE json_extract(sources, '$.' || ?) IS NOT NULL
     ORDER BY id DESC LIMIT 1`,
  )
  const numbered = db.prepare<
    { mirror: string; sequence: number; source: string },
    { digest: string; current: number }
  >(
    `SELECT json_extract(sources, '$.' || @source) AS digest, id >= coalesce((
       SELECT max(id) FROM bundle_import WHERE rollback = 1 AND mirror = @mirror
         AND json_extract(sources, '$.' || @source) IS NOT NULL), 0) AS current
     FROM bundle_import
     WHERE mirror = @mirror AND sequence = @sequence AND json_extract(sources, '$.' || @source) IS NOT NULL`,
  )
  const imports = db.prepare<[number], ImportRow>(`SELECT ${IMPORT} FROM bundle_import ORDER BY id DESC LIMIT ?`)
  return {
    /** Returns the identity of this mirror in its bundles: 32 hex digits. */
    readIdentity(): string {
      const id = identity.get()
      if (id === undefined) throw new Error('the database has lost its identity')
      return id
    },
    /** The newest export of exactly this state (a digest over its sources); null: never exported. */
    findExport: (digest: string): ExportedState | null => mapExport(exported.get(digest)),
    readExport: (sequence: number): ExportedState | null => mapExport(bySequence.get(sequence)),
    /** Exported states from a sequence on, oldest first. */
    listExports: (from = 1): ExportedState[] => exports.all(from).flatMap((row) => mapExport(row) ?? []),
    /** Exported states with numbers below `before`, newest first. */
    listNewestExports: (before: number, limit: number): ExportedState[] =>
      newestExports.all(before, limit).flatMap((row) => mapExport(row) ?? []),
    /** The gzipped summary of an exported state (`readSummary`); null: deleted, or never exported. */
    readExportSummary: value<[sequence: number], Buffer>('SELECT summary FROM bundle_export WHERE sequence = ?'),
    /** A document of an exported state, as a gzip member; null: it was not kept. */
    readExportedDocument: value<[sequence: number, path: string], Buffer>(
      `SELECT bytes FROM exported_document d JOIN exported_body b ON b.digest = d.digest
       WHERE d.sequence = ? AND d.path = ?`,
    ),
    /** The bundle that was applied last. */
    readLastImport: (): ImportedBundle | null => mapImport(last.get()),
    /** The last import that contained this source. */
    readLastImportOf: (source: SourceName): ImportedBundle | null => mapImport(lastOf.get(source)),
    /** All imports of a source from a mirror under one sequence number. */
    listNumbered: (mirror: string, sequence: number, source: SourceName): NumberedImport[] =>
      numbered.all({ mirror, sequence, source }).map(({ digest, current }) => ({ digest, current: current === 1 })),
    /** Newest first. */
    listImports: (limit: number): ImportedBundle[] => imports.all(limit).flatMap((row) => mapImport(row) ?? []),
  }
}

function mapExport(row: ExportRow | undefined): ExportedState | null {
  if (row === undefined) return null
  const sources = JSON.parse(row.sources) as ExportedState['sources']
  return { ...row, sources, kept: row.kept === 1 }
}

function mapImport(row: ImportRow | undefined): ImportedBundle | null {
  if (row === undefined) return null
  const sources = JSON.parse(row.sources) as ImportedBundle['sources']
  return { ...row, sources, rollback: row.rollback === 1 }
}

/** Creates writes of exports and imports. Call inside a transaction of the caller's. */
export function createLedgerWriter(db: Db) {
  const reader = createLedgerReader(db)
  const add = db.prepare('INSERT INTO bundle_export (digest, sources, exported_at, summary) VALUES (?, ?, ?, ?)')
  const keep = db.prepare('UPDATE bundle_export SET summary = ?, exported_at = ? WHERE sequence = ?')
  const forget = db.prepare(
    `UPDATE bundle_export SET summary = NULL WHERE summary IS NOT NULL AND sequence NOT IN (
       SELECT value FROM json_each(@spared)) AND sequence NOT IN (
       SELECT sequence FROM bundle_export WHERE summary IS NOT NULL ORDER BY sequence DESC LIMIT @keep)`,
  )
  const documents = createDocumentKeeper(db)
  const rename = db.prepare('UPDATE mirror_identity SET id = ?')
  const record = db.prepare(
    `INSERT INTO bundle_import
       (mirror, sequence, kind, digest, sources, key_id, created_at, as_of, imported_at, rollback, file)
     VALUES (@mirror, @sequence, @kind, @digest, @sources, @keyId, @createdAt, @asOf, @importedAt, @rollback, @file)`,
  )
  return {
    ...reader,
    /**
     * Returns the sequence of a state that is being exported: a new one, or that of its last export if none of its
     * sources was exported since. Stores its summary.
     */
    recordExport(
      sources: Partial<Readonly<Record<SourceName, ExportedSource>>>,
      exportedAt: number,
      summary: Buffer,
    ): number {
      const digest = combineDigests(
        Object.fromEntries(Object.entries(sources).map(([source, one]) => [source, one.digest])),
      )
      const known = reader.findExport(digest)
      const newer = known === null ? [] : newerExport(reader, known)
      if (known !== null && newer.length === 0) {
        keep.run(summary, exportedAt, known.sequence)
        return known.sequence
      }
      return Number(add.run(digest, JSON.stringify(sources), exportedAt, summary).lastInsertRowid)
    },
    keepDocument: (sequence: number, document: KeptDocument): void => documents.keep(sequence, document),
    /**
     * Deletes all summaries except those of the newest exports and of `spared`: deltas cannot build on the others any
     * more.
     */
    forgetSummaries(newest: number, spared: readonly number[] = []): void {
      forget.run({ keep: newest, spared: JSON.stringify(spared) })
      documents.forget()
    },
    /** Gives this mirror a new identity: targets then compare its bundles with earlier ones by date, not by sequence. */
    renewIdentity(): string {
      const id = randomBytes(16).toString('hex')
      rename.run(id)
      return id
    },
    recordImport(bundle: ImportedBundle): void {
      record.run({
        ...bundle,
        sources: JSON.stringify(bundle.sources),
        rollback: bundle.rollback ? 1 : 0,
      })
    },
  }
}

type KeptDocument = Pick<Document, 'path' | 'sha256' | 'body'>

/** Creates the writes of the documents of exported states, on which thin bundles build. */
function createDocumentKeeper(db: Db) {
  const add = db.prepare('INSERT OR REPLACE INTO exported_document (sequence, path, digest) VALUES (?, ?, ?)')
  const addBody = db.prepare('INSERT OR IGNORE INTO exported_body (digest, bytes) VALUES (?, ?)')
  const forget = db.prepare(
    'DELETE FROM exported_document WHERE sequence NOT IN (SELECT sequence FROM bundle_export WHERE summary IS NOT NULL)',
  )
  const forgetBodies = db.prepare(
    'DELETE FROM exported_body WHERE digest NOT IN (SELECT digest FROM exported_document)',
  )
  return {
    /** Keeps a document of an exported state while its summary is stored. */
    keep(sequence: number, { path, sha256, body }: KeptDocument): void {
      add.run(sequence, path, sha256)
      addBody.run(sha256, body)
    },
    /** Deletes those of states whose summary is not stored. */
    forget(): void {
      forget.run()
      forgetBodies.run()
    },
  }
}

/**
 * Returns later exports that contain a source of this one: sequences increase, and a delta since one of them cannot have
 * a lower one.
 */
function newerExport({ listExports }: ReturnType<typeof createLedgerReader>, known: ExportedState): ExportedState[] {
  return listExports(known.sequence + 1).filter(({ sources }) =>
    Object.keys(known.sources).some((name) => sources[name as SourceName] !== undefined),
  )
}

export type LedgerReader = ReturnType<typeof createLedgerReader>
