import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import { MirrorError } from '../../../base/errors.ts'
import { type Db, openViewsReader } from '../../../store/database/open.ts'
import { queries } from '../../../store/database/query.ts'
import { folderOf, viewsPath } from './generations.ts'
import { type Archive, type MemberPlace, createArchives, partOf } from './archives.ts'
import { createViewSearch } from './search.ts'
import { listUntidy } from '../../../store/database/schema/untidy-ids.ts'
import { packageKey, packageKeys } from '../../../base/identity/names.ts'
import { NUMBER_UP_TO } from './numbers.ts'

/** The snapshot that a generation shows. */
export interface GenerationInfo {
  readonly snapshot: string
  /** Unix milliseconds, upstream's date. */
  readonly asOf: number
  /** Last-Modified of everything in it, unix seconds. */
  readonly changed: number
  readonly records: number
  /** Number of records with malformed parts, which are listed by their valid parts. */
  readonly odd: number
}

/** An ecosystem's folder. */
interface ViewInfo {
  readonly name: string
  readonly records: number
  /** Vendor prefixes that were removed in it; empty: only upstream's bytes. */
  readonly prefixes: readonly string[]
}

/** A file of the bucket. */
export interface ViewAsset {
  /** Name in the generation's folder; that of the gzip form when the content is stored only so. */
  readonly file: string
  readonly type: string
  /** Bytes of the content. */
  readonly size: number
  /** Hex. */
  readonly sha256: string
  readonly crc32c: number
  /** The same content as gzip; null if it is served uncompressed only. */
  readonly gzip: { readonly file: string; readonly size: number } | null
  readonly prefixes: readonly string[]
}

/** A record as shown by one view. */
export interface ViewRecord {
  readonly content: Buffer
  /** CRC-32 of the content. */
  readonly crc32: number
  /** Its raw deflate stream, as in the view's archive. */
  readonly deflated: Buffer
  /** Vendor prefixes that were removed; empty: upstream's bytes. */
  readonly prefixes: readonly string[]
}

type Place = [file: string, offset: number, length: number, size: number, crc32: number, prefixes: string]

/** One generation of views, open for reading. All reads are synchronous. */
export type Views = ReturnType<typeof openViews>

/**
 * Opens the generation in `folder`. Throws `corrupt` or `storage` if it cannot be read: then it must be rebuilt. A
 * record's bytes are verified at each read.
 */
export function openViews(folder: string) {
  const db = openViewsReader(viewsPath(folder))
  const files = createFiles(folder)
  try {
    return {
      folder,
      ...createInfoReader(db),
      ...createMemberReader(db, files),
      ...createCandidateReader(db),
      ...createViewSearch(db),
      close(): void {
        db.close()
        files.close()
      },
    }
  } catch (error) {
    db.close()
    throw error
  }
}

function createInfoReader(db: Db) {
  const { list, value, exists } = queries(db)
  const generation = db.prepare<[], GenerationInfo & { readonly form: string }>(
    'SELECT snapshot, as_of AS asOf, changed, records, odd, form FROM generation',
  )
  const views = db.prepare<[], { name: string; records: number; prefixes: string }>(
    'SELECT name, records, prefixes FROM view ORDER BY name',
  )
  const asset = db.prepare<[string], AssetRow>(`SELECT ${ASSET} FROM asset WHERE path = ?`)
  const info = generation.get()
  if (info === undefined) throw new MirrorError('corrupt', 'the views are incomplete')
  return {
    info,
    /** All ecosystems, in the order of their names. */
    listViews: (): ViewInfo[] => views.all().map((row) => ({ ...row, prefixes: toPrefixes(row.prefixes) })),
    /** Whether there is an ecosystem of exactly this name. */
    hasView: exists<[name: string]>('SELECT 1 FROM view WHERE name = ?'),
    /** Ecosystems as records name them, such as `Debian:12` and `npm`. */
    listEcosystems: list<[], string>('SELECT name FROM ecosystem ORDER BY name'),
    /** Ids that contain a space or a percent sign, or begin or end with white space; at most `limit`. */
    listUntidyIds: list<[limit: number], string>(listUntidy('record')),
    /** An ecosystem of this name in any case of ASCII letters; null when there is none. */
    findView: value<[name: string], string>(
      'SELECT name FROM view WHERE name = ? COLLATE NOCASE ORDER BY name LIMIT 1',
    ),
    /** The file at a path under /osv/, such as `Debian/all.zip`; null when there is none. */
    readAsset: (path: string): ViewAsset | null => toAsset(asset.get(path)),
  }
}

interface AssetRow extends Omit<ViewAsset, 'gzip' | 'prefixes'> {
  gzipFile: string | null
  gzipSize: number
  prefixes: string
}

const ASSET = 'file, type, size, sha256, crc32c, gzip_file AS gzipFile, gzip_size AS gzipSize, prefixes'

function toAsset(row: AssetRow | undefined): ViewAsset | null {
  if (row === undefined) return null
  const { gzipFile, gzipSize, prefixes, ...asset } = row
  const gzip = gzipFile === null ? null : { file: gzipFile, size: gzipSize }
  return { ...asset, gzip, prefixes: toPrefixes(prefixes) }
}

function toPrefixes(json: string): readonly string[] {
  return json === '[]' ? NONE : (JSON.parse(json) as string[])
}

const NONE: readonly string[] = []

const PLACE = `SELECT a.file, p.at + m.place, m.length, m.size, m.crc32, iif(m.derived, r.prefixes, '[]')`
const MEMBER = `JOIN member m ON m.view = v.id AND m.num = r.num JOIN asset a ON a.path = v.name || '/all.zip'
  JOIN part p ON p.view = m.view AND p.first =
    (SELECT max(first) FROM part WHERE view = m.view AND first <= m.num)`

/** Reads the record at a place. Throws `corrupt` for damaged bytes. */
function readPlace(files: Files, [file, offset, length, size, crc, prefixes]: Place): ViewRecord {
  const deflated = files.read(file, offset, length)
  const content = inflate(deflated, size)
  if (content === null || crc32(content) !== crc)
    throw new MirrorError('corrupt', `${file} is damaged: the views must be rebuilt`)
  return { content, crc32: crc, deflated, prefixes: toPrefixes(prefixes) }
}

function createMemberReader(db: Db, files: Files) {
  const archiveOf = createArchives(db)
  const member = db
    .prepare<[number, string], MemberPlace>(
      `SELECT m.num, m.place, m.length, m.size, m.crc32, iif(m.derived, r.prefixes, '[]')
       FROM record r JOIN member m ON m.view = ? AND m.num = r.num WHERE r.id = ?`,
    )
    .raw()
  const inView = (name: string, id: string): Place | undefined => {
    const archive = archiveOf(name)
    const found = archive === null ? undefined : member.get(archive.view, id)
    return archive === null || found === undefined ? undefined : inArchive(archive, found)
  }
  const members = db
    .prepare<[number, number], MemberPlace>(
      `SELECT m.num, m.place, m.length, m.size, m.crc32, iif(m.derived, r.prefixes, '[]')
       FROM member m JOIN record r ON r.num = m.num WHERE m.view = ? AND m.num > ? ORDER BY m.num LIMIT 1000`,
    )
    .raw()
  const upstreams = db
    .prepare<[string], Place>(
      `${PLACE} FROM record r JOIN json_each(r.views) e JOIN view v ON v.id = e.value ${MEMBER}
       WHERE r.id = ? AND m.derived = 0 LIMIT 1`,
    )
    .raw()
  const deriveds = db
    .prepare<[string], Place>(
      `${PLACE} FROM record r JOIN json_each(r.views) e JOIN view v ON v.id = e.value ${MEMBER}
       WHERE r.id = ? AND r.prefixes <> '[]' AND m.derived = 1 LIMIT 1`,
    )
    .raw()
  const read = (place: Place | undefined): ViewRecord | null => (place === undefined ? null : readPlace(files, place))
  return {
    ...createPackageRecords(db, archiveOf, (archive, place) => read(inArchive(archive, place))),
    /** Returns every record as an ecosystem's view shows it, in id order. Throws `corrupt` for damaged bytes. */
    *eachViewRecord(view: string): Generator<ViewRecord> {
      const archive = archiveOf(view)
      let last = Number.MIN_SAFE_INTEGER
      for (;;) {
        const places = archive === null ? [] : members.all(archive.view, last)
        for (const place of places) {
          const found = archive && read(inArchive(archive, place))
          if (found === null) throw new MirrorError('corrupt', `the views have no record at ${place[0]} of ${view}`)
          yield found
          last = place[0]
        }
        if (places.length === 0) return
      }
    },
    /** A record as shown by an ecosystem's view; null if it is not in it. Throws `corrupt` for damaged bytes. */
    readViewRecord: (view: string, id: string): ViewRecord | null => read(inView(view, id)),
    /** A record in upstream's bytes, whatever ecosystems it names; null if there is none. Throws as above. */
    readUpstreamRecord: (id: string): ViewRecord | null => read(upstreams.get(id)),
    /** The derived form of a record, one for all views; null if it has none. Throws as above. */
    readDerivedRecord: (id: string): ViewRecord | null => read(deriveds.get(id)),
  }
}

function inArchive(archive: Archive, [num, place, ...rest]: MemberPlace): Place | undefined {
  const at = partOf(archive, num)
  return at === undefined ? undefined : [archive.file, at + place, ...rest]
}

function inflate(deflated: Buffer, size: number): Buffer | null {
  try {
    const content = inflateRawSync(deflated, { chunkSize: size + 64, maxOutputLength: size + 64 })
    return content.length === size ? content : null
  } catch {
    return null
  }
}

type Files = ReturnType<typeof createFiles>

/** Creates reads of ranges of the generation's files; each file is opened at its first read. */
function createFiles(folder: string) {
  const open = new Map<string, number>()
  const descriptor = (file: string): number => {
    const known = open.get(file)
    if (known !== undefined) return known
    const opened = openSync(join(folder, file), 'r')
    open.set(file, opened)
    return opened
  }
  return {
    read(file: string, offset: number, length: number): Buffer {
      const bytes = Buffer.allocUnsafe(length)
      const read = readSync(descriptor(file), bytes, 0, length, offset)
      if (read < length) throw new MirrorError('corrupt', `${file} is truncated`)
      return bytes
    },
    close(): void {
      for (const fd of open.values()) closeSync(fd)
      open.clear()
    },
  }
}

/** A record that may affect a package; `derived` determines which form of it the ecosystem's view shows. */
interface Candidate {
  readonly id: string
  readonly derived: boolean
}

/** Creates reads of the packages that records name. */
function createCandidateReader(db: Db) {
  const candidates = db
    .prepare<[string, string, string, number], [string, number]>(
      `SELECT r.id, m.derived FROM view v JOIN affected a ON a.view = v.id
       JOIN member m ON m.view = a.view AND m.num = a.num JOIN record r ON r.num = a.num
       WHERE v.name = ? AND a.name = ? AND a.num > ${NUMBER_UP_TO} ORDER BY a.num LIMIT ?`,
    )
    .raw()
  const recorded = db
    .prepare<[string, string], string>(
      `SELECT n.value FROM view v CROSS JOIN json_each(?) n
       WHERE v.name = ? AND EXISTS (SELECT 1 FROM affected a WHERE a.view = v.id AND a.name = n.value)`,
    )
    .pluck()
  const named = db
    .prepare<[string, string, number], [string, number]>(
      `SELECT DISTINCT r.id, 0 FROM json_each(?) k
       JOIN affected a ON a.view = k.value->>0 AND a.name = k.value->>1 JOIN record r ON r.num = a.num
       WHERE a.num > ${NUMBER_UP_TO} ORDER BY a.num LIMIT ?`,
    )
    .raw()
  const views = db.prepare<[], { id: number; name: string }>('SELECT id, name FROM view')
  const prefixes = db.prepare<[], string>('SELECT DISTINCT p.value FROM view, json_each(view.prefixes) p').pluck()
  let vendors: ReadonlySet<string> | null = null // a finished generation does not change
  const viewOf = db.prepare<[string], number>('SELECT id FROM view WHERE name = ?').pluck()
  /** In a vendor's folder, a package may have the name that another ecosystem gives it. */
  const ofVendor = (vendor: string, name: string, after: string, limit: number): Candidate[] => {
    const keys = packageKeys(vendor, name).map((key) => [viewOf.get(vendor), key])
    const rows = named.all(JSON.stringify(keys), after, limit)
    return rows.map(([id]) => ({ id, derived: false }))
  }
  return {
    /** Returns the records that name a package of this name in any ecosystem, as `listCandidates` does. */
    listNamed(name: string, after: string, limit: number): Pick<Candidate, 'id'>[] {
      const keys = views.all().flatMap(({ id, name: view }) => packageKeys(view, name).map((key) => [id, key]))
      return named.all(JSON.stringify(keys), after, limit).map(([id]) => ({ id }))
    },
    /** Returns those of many packages that any record names; ecosystem and names as for `listCandidates`. */
    listRecorded(ecosystem: string, names: readonly string[]): Set<string> {
      const keys = names.map((name) => packageKey(ecosystem, name))
      const found = new Set(recorded.all(JSON.stringify(keys), folderOf(ecosystem)))
      return new Set(names.filter((_, at) => found.has(keys[at] ?? '')))
    },
    /**
     * Returns records that name a package, in id order after `after` (''), at most `limit`. A suffix of the ecosystem
     * (`Debian:12`) and versions are not compared here. Names are compared by `packageKey`.
     */
    listCandidates(ecosystem: string, name: string, after: string, limit: number): Candidate[] {
      const folder = folderOf(ecosystem)
      vendors ??= new Set(prefixes.all())
      if (folder === ecosystem && vendors.has(folder)) return ofVendor(folder, name, after, limit)
      const rows = candidates.all(folder, packageKey(ecosystem, name), after, limit)
      return rows.map(([id, derived]) => ({ id, derived: derived === 1 }))
    },
  }
}

/** A record that names a package, as the package's ecosystem shows it. */
interface PackageRecord<Shown> {
  readonly id: string
  /** Throws `corrupt` for damaged bytes. */
  readonly read: () => Shown
}

/** Creates reads of the records of many packages at once: a statement for each costs ten times as much. */
function createPackageRecords<Shown>(
  db: Db,
  archiveOf: (name: string) => Archive | null,
  readMember: (archive: Archive, place: MemberPlace) => Shown,
) {
  const placed = db
    .prepare<[string, number, number], [at: number, id: string, ...place: MemberPlace]>(
      `SELECT n.key, r.id, m.num, m.place, m.length, m.size, m.crc32, iif(m.derived, r.prefixes, '[]')
       FROM json_each(?) n CROSS JOIN affected a ON a.view = ? AND a.name = n.value
       CROSS JOIN member m ON m.view = a.view AND m.num = a.num CROSS JOIN record r ON r.num = a.num LIMIT ?`,
    )
    .raw()
  return {
    /**
     * Returns the records that name each of many packages, in id order, as `listCandidates` does, and how many packages from
     * the first on it has completely: all of them, where they have fewer than `limit` records together.
     */
    listPackageRecords(ecosystem: string, names: readonly string[], limit: number) {
      const records = new Map<string, PackageRecord<Shown>[]>()
      const archive = archiveOf(folderOf(ecosystem))
      if (archive === null) return { records, complete: names.length }
      const keys = JSON.stringify(names.map((name) => packageKey(ecosystem, name)))
      const rows = placed.all(keys, archive.view, limit) // in the order of the joins, which CROSS fixes
      const complete = rows.length < limit ? names.length : (rows.at(-1)?.[0] ?? 0)
      for (const [at, id, ...place] of rows) {
        if (at >= complete) break
        const name = names[at] ?? ''
        const listed = records.get(name) ?? []
        if (listed.push({ id, read: () => readMember(archive, place) }) === 1) records.set(name, listed)
      }
      return { records, complete }
    },
  }
}
