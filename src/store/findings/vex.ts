import type { Db } from '../database/sqlite.ts'
import { queries } from '../database/query.ts'

/** A finding of a tag that VEX rules out. */
interface SuppressedRow {
  readonly component: number
  readonly tag: number
  readonly record: string
}

/** What a statement is about, as numbers: the product, and the vulnerability. */
export type VexAbout = readonly [place: number, vulnerability: number]

/** Stands for the place of any product, and marks every tag. */
export const EVERY_PLACE = 0

/** A VEX document. */
export interface StoredDocument {
  /** SHA-256, hex. */
  readonly digest: string
  /** JSON: ids of the tags whose document it is. */
  readonly tags: string
  /** JSON: the tags for which it may rule anything out; null: it rules nothing out, because its signature is not believed. */
  readonly believed: string
}

/** What VEX is asked about a tag. */
interface AskedTag {
  /** Its id in the service's list. */
  readonly owner: string
  /** JSON: for each SBOM the package URLs of what it describes, and the further names of that. */
  readonly subjects: string
  readonly images: string
  /** Of which platforms of its image the SBOMs say nothing, in words; null: of none. */
  readonly platformGap: string | null
}

/** Creates reads and writes of what VEX says about the findings of tags. */
export function createVexStore(db: Db) {
  return {
    ...createDocuments(db),
    ...createPlaces(db),
    ...createImages(db),
    ...createSuppressed(db),
    ...createNames(db),
    ...createFollowed(db),
  }
}

function createDocuments(db: Db) {
  const { all } = queries(db)
  const add = db.prepare('INSERT INTO vex_document (digest, tags, believed) VALUES (@digest, @tags, @believed)')
  const drop = db.prepare('DELETE FROM vex_document WHERE id = ?')
  const state = db.prepare('INSERT OR IGNORE INTO vex_statement (place, vulnerability, document) VALUES (?, ?, ?)')
  const unstate = db.prepare('DELETE FROM vex_statement WHERE document = ?')
  const mark = db.prepare(
    `UPDATE tag SET vex_stale = 1 WHERE vex_stale = 0 AND id IN (
       SELECT p.owner FROM vex_statement s JOIN vex_place p ON p.place = s.place AND p.kind = 1 WHERE s.document = @id
       UNION SELECT t.tag FROM vex_statement s JOIN vex_place p ON p.place = s.place AND p.kind = 0
         JOIN tag_component t ON t.component = p.owner WHERE s.document = @id
       UNION SELECT id FROM tag WHERE EXISTS (
         SELECT 1 FROM vex_statement WHERE place = ${EVERY_PLACE} AND document = @id))`,
  )
  return {
    listVexDocuments: all<[], StoredDocument & { id: number }>('SELECT id, digest, tags, believed FROM vex_document'),
    /** Adds a document with what it says anything about, and marks the tags that it may be about. */
    addVexDocument(document: StoredDocument, statements: Iterable<VexAbout>): void {
      const id = Number(add.run(document).lastInsertRowid)
      for (const [place, vulnerability] of statements) state.run(place, vulnerability, id)
      mark.run({ id })
    },
    /** Deletes a document, and marks the tags that it may have been about. */
    dropVexDocument(id: number): void {
      mark.run({ id })
      unstate.run(id)
      drop.run(id)
    },
    /** What documents may say about a product: the vulnerabilities, and the documents by their SHA-256, hex. */
    listVexAbout: all<[place: number], { vulnerability: number } & StoredDocument>(
      `SELECT s.vulnerability, d.digest, d.tags, d.believed FROM vex_statement s JOIN vex_document d ON d.id = s.document
       WHERE s.place = ?`,
    ),
  }
}

function createPlaces(db: Db) {
  const add = db.prepare('INSERT OR IGNORE INTO vex_place (place, kind, owner) VALUES (?, ?, ?)')
  const drop = db.prepare('DELETE FROM vex_place WHERE kind = 1 AND owner = ?')
  return {
    addComponentPlaces(component: number, places: readonly number[]): void {
      for (const place of places) add.run(place, 0, component)
    },
    replaceTagPlaces(tag: number, places: readonly number[]): void {
      drop.run(tag)
      for (const place of places) add.run(place, 1, tag)
    },
  }
}

function createImages(db: Db) {
  const { all, one, run } = queries(db)
  const put = db.prepare('UPDATE tag SET images = ?, platform_gap = ? WHERE id = ?')
  return {
    listAskedTags: all<[], AskedTag & { id: number }>(
      'SELECT id, owner, subjects, images, platform_gap AS platformGap FROM tag',
    ),
    readAskedTag: one<[id: number], AskedTag>(
      'SELECT owner, subjects, images, platform_gap AS platformGap FROM tag WHERE id = ?',
    ),
    putTagImages: (id: number, { images, platformGap }: Pick<AskedTag, 'images' | 'platformGap'>): void =>
      void put.run(images, platformGap, id),
    /** Marks a tag: VEX is asked about it again. */
    markTag: run<[id: number]>('UPDATE tag SET vex_stale = 1 WHERE id = ?'),
  }
}

function createSuppressed(db: Db) {
  const { all, run } = queries(db)
  return {
    listSuppressedOf: all<[component: number], SuppressedRow>(
      'SELECT component, tag, record FROM suppressed WHERE component = ?',
    ),
    listSuppressedIn: all<[tag: number], SuppressedRow>(
      `SELECT s.component, s.tag, s.record FROM tag_component t
       JOIN suppressed s ON s.component = t.component AND s.tag = t.tag WHERE t.tag = ?`,
    ),
    suppress: run<SuppressedRow>('INSERT INTO suppressed (component, tag, record) VALUES (@component, @tag, @record)'),
    unsuppress: run<SuppressedRow>(
      'DELETE FROM suppressed WHERE component = @component AND tag = @tag AND record = @record',
    ),
  }
}

function createNames(db: Db) {
  const { run } = queries(db)
  const names = db.prepare<[string], string>('SELECT names FROM record WHERE id = ?').pluck()
  const all = db.prepare<[], { id: string; names: string }>('SELECT id, names FROM record')
  return {
    /** JSON: the aliases of a record, and what it is derived from; null where no finding is about it. */
    readNames: (record: string): string | null => names.get(record) ?? null,
    eachNames: () => all.iterate(),
    putNames: run<[record: string, text: string]>(
      'INSERT INTO record (id, names) VALUES (?, ?) ON CONFLICT DO UPDATE SET names = excluded.names',
    ),
    /** Forgets the records that no finding is about any more. */
    sweepNames: run<[]>('DELETE FROM record WHERE NOT EXISTS (SELECT 1 FROM finding f WHERE f.record = record.id)'),
  }
}

/**
 * What follows the catalog, each up to a state of its own; `catalogAsOf`: upstream's date of the catalog, Unix milliseconds. `last OWNER`:
 * the findings of a tag that cannot be judged as a whole, from when it last was.
 */
type Followed =
  | (
      | 'vex'
      | 'withoutVex'
      | 'catalogAsOf'
      | 'signatures'
      | 'ecosystems'
      | 'scope'
      | 'images'
      | 'patches'
      | 'tags'
      | 'unrecorded'
    )
  | `last ${string}`

function createFollowed(db: Db) {
  const { run, value } = queries(db)
  return {
    /** Up to which state of the catalog; null: none yet. */
    readFollowed: value<[name: Followed], string>('SELECT state FROM followed WHERE name = ?'),
    putFollowed: run<[name: Followed, state: string]>(
      'INSERT INTO followed (name, state) VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state',
    ),
    dropFollowed: run<[name: Followed]>('DELETE FROM followed WHERE name = ?'),
  }
}
