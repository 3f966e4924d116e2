import { DAY_MS } from '../../base/time.ts'
import {
  type EventTarget,
  type TargetNames,
  hasDigest,
  isNamed,
  isSpecific,
  namesOf,
  textsWithin,
} from '../../base/domain/image-reference.ts'
import { isNone } from './answers.ts'
import type { Db } from '../database/open.ts'
import { parseItem } from './lists.ts'
import { queries } from '../database/query.ts'
import type { RunTrigger } from '../runs/runs.ts'

/** How much of an announced tag is readable now. */
export interface Announced {
  /** Whether it is in the list of tags. Also true when the event names nothing. */
  listed: boolean
  /** Whether it is listed with the announced digest; null when the event names none, or the item has none. */
  digestMatches: boolean | null
  /**
   * `complete`: all of its answers are stored. `none yet`: upstream has none (404, 204) of some of its artifacts, which
   * may be added later. `lacking`: some could not be fetched, or belong to the item's former version. `out of scope`:
   * its artifacts are not mirrored. Null when it is not listed.
   */
  artifacts: 'complete' | 'none yet' | 'lacking' | 'out of scope' | null
}

interface Candidate {
  id: string
  sha: Buffer
  body: Buffer
}

/** A listed item that names a text. */
interface NamingItem {
  /** Path of its list. */
  list: string
  id: string
  body: Buffer
}

const NOT_LISTED: Announced = { listed: false, digestMatches: null, artifacts: null }

/** Creates searches for listed items by what names them, by index. */
function createNamingReader(db: Db) {
  const naming = db.prepare<[string, number], NamingItem>(
    `SELECT l.path AS list, e.id, e.body FROM catalog_entry e JOIN catalog_list l ON l.id = e.list
     WHERE e.rowid IN (SELECT entry FROM catalog_text WHERE text IN (SELECT value FROM json_each(?)))
     ORDER BY e.list, e.ordinal LIMIT ?`,
  )
  const beginsWith = db.prepare<[from: string, to: string, limit: number], NamingItem>(
    `SELECT l.path AS list, e.id, e.body FROM catalog_entry e JOIN catalog_list l ON l.id = e.list
     WHERE e.rowid IN (SELECT entry FROM catalog_text WHERE text >= ? AND text < ?
       AND length(text) >= ${LEAST_DIGEST} AND instr(text, '-') = 0)
     ORDER BY e.list, e.ordinal LIMIT ?`,
  )
  return {
    /**
     * Listed items that name a tag, a digest or a reference of exactly this text, in order; at most `limit`, -1: all. Where none
     * does, a reference (`library/python:3.12`) also finds items that name its parts in fields of their own.
     */
    listNaming(text: string, limit: number): NamingItem[] {
      const exact = naming.all(JSON.stringify([text]), limit)
      const target = { ...NO_TARGET, subject: text }
      const names = namesOf(target)
      if (exact.length > 0 || names.repository === null || !isSpecific(names)) return exact
      return naming
        .all(JSON.stringify(lookupsOf(names, target)), MAX_COMPARED)
        .filter(({ body }) => isNamed(textsWithin(parseItem(body)), names))
        .slice(0, limit < 0 ? undefined : limit)
    },
    /**
     * Listed items that name a digest which begins like this, in order; at most `limit`. `beginning`: in lower
     * case, with or without `sha256:`, as upstream writes digests.
     */
    listDigestsFrom: (beginning: string, limit: number): NamingItem[] =>
      beginsWith.all(beginning, `${beginning}g`, limit),
  }
}

/** Creates searches for announced tags among the listed ones, by index; usable on any connection. */
export function createAnnouncedReader(db: Db) {
  const candidates = db.prepare<[string], Candidate>(
    `SELECT e.id, e.sha, e.body FROM catalog_entry e
     WHERE e.rowid IN (SELECT entry FROM catalog_text WHERE text IN (SELECT value FROM json_each(?)))
     ORDER BY e.ordinal`,
  )
  const answers = db.prepare<[string], { path: string; status: number; ownerSha: Buffer }>(
    'SELECT path, status, owner_sha AS ownerSha FROM catalog_answer WHERE owner = ?',
  )
  const anyMissing = db
    .prepare<[string], number>(
      "SELECT 1 FROM catalog_lacking WHERE resource = 'tags' AND instr(path || '/', ?) > 0 LIMIT 1",
    )
    .pluck()
  const artifactsOf = ({ id, sha }: Candidate): NonNullable<Announced['artifacts']> => {
    const stored = answers.all(`tags/${id}`)
    const stale = stored.some(({ status, ownerSha }) => status === 200 && !ownerSha.equals(sha))
    if (stale || anyMissing.get(`/${encodeURIComponent(id)}/`) === 1) return 'lacking'
    if (stored.length === 0) return 'out of scope'
    return stored.some(isNone) ? 'none yet' : 'complete'
  }
  return {
    ...createNamingReader(db),
    /** Returns whether what an event announced is readable now, and how much of it. */
    findAnnounced(target: EventTarget): Announced {
      const names = namesOf(target)
      const { digest } = names
      if (!isSpecific(names)) return { ...NOT_LISTED, listed: true }
      const named = candidates
        .all(JSON.stringify(lookupsOf(names, target)))
        .map((item) => ({ ...item, texts: textsWithin(parseItem(item.body)) }))
        .filter(({ texts }) => isNamed(texts, names))
      if (named.length === 0) return NOT_LISTED
      const exact = digest === null ? named : named.filter(({ texts }) => hasDigest(texts, digest))
      const states = (exact.length > 0 ? exact : named).map(artifactsOf)
      const artifacts = WORST.find((state) => states.includes(state)) ?? null
      return { listed: true, digestMatches: matches(digest, exact, named), artifacts }
    },
  }
}

/** Characters of the shortest text that is a digest. */
const LEAST_DIGEST = 32

/** Items that are compared with a reference, one after the other. */
const MAX_COMPARED = 2000

const NO_TARGET: EventTarget = {
  repository: null,
  tag: null,
  digest: null,
  arch: null,
  subject: null,
}

const WORST = ['lacking', 'out of scope', 'none yet', 'complete'] as const

type Named = readonly { texts: readonly string[] }[]

/** Compares the announced digest; an item without any digest neither confirms nor contradicts it. */
function matches(digest: string | null, exact: Named, named: Named): boolean | null {
  if (digest === null) return null
  if (exact.length > 0) return true
  const shown = named.some(({ texts }) => texts.some((text) => /(^|@)\w+:[0-9a-f]{32,}$/.test(text)))
  return shown ? false : null
}

/** Returns the texts by which an item may name it: parts, and whole references. */
function lookupsOf({ repository, tag, digest }: TargetNames, target: EventTarget): string[] {
  const isText = (text: string | null): text is string => text !== null
  const repositories = [...new Set([repository, target.repository])].filter(isText)
  const tagged = tag === null ? [] : repositories.map((name) => `${name}:${tag}`)
  const references = [target.subject, ...tagged].filter(isText)
  const exact = digest === null ? [] : [...references, ...repositories].map((name) => `${name}@${digest}`)
  return [tag, digest, ...references, ...exact].filter(isText)
}

/** A tag that a published snapshot added, or a new digest of a tag; as upstream's item names it. */
export interface NewTag {
  runId: number
  /** When it was published, unix milliseconds. */
  at: number
  repository: string | null
  tag: string | null
  digest: string | null
  /** Trigger of the run that found it: `webhook` for a refresh caused by an event, `schedule` for a poll. */
  trigger: RunTrigger
}

const KEEP_MS = 30 * DAY_MS

/** Creates reads of new tags; usable on any connection. */
export function createNewTagReader(db: Db) {
  const { exists } = queries(db)
  const since = db.prepare<[number, number], NewTag>(
    `SELECT run_id AS runId, at, repository, tag, digest, trigger FROM catalog_arrival
     WHERE at >= ? ORDER BY at, id LIMIT ?`,
  )
  return {
    /** Returns new tags published at or after a time (Unix milliseconds), oldest first. They are kept for 30 days. */
    listNewTags: (from: number, limit = 10_000): NewTag[] => since.all(from, limit),
    /** Reports whether a run that started at or after a time found more new tags than it stored. */
    hasUnlistedTags: exists<[from: number]>(
      `SELECT 1 FROM run WHERE source = 'catalog' AND started_at >= ? AND json_extract(facts, '$.arrived') >
         (SELECT count(*) FROM catalog_arrival WHERE run_id = run.id) LIMIT 1`,
    ),
  }
}

/** Creates writes of new tags. Call inside the transaction that publishes them. */
export function createNewTagWriter(db: Db) {
  const add = db.prepare(
    `INSERT INTO catalog_arrival (run_id, at, repository, tag, digest, trigger)
     SELECT id, @at, @repository, @tag, @digest, trigger FROM run WHERE id = @runId`,
  )
  const prune = db.prepare('DELETE FROM catalog_arrival WHERE at < ?')
  return {
    ...createNewTagReader(db),
    /** Stores the tags that a run added, and deletes those that are too old by a time (`timeOfAges`). */
    addNewTags(arrivals: readonly Omit<NewTag, 'trigger'>[], time: number): void {
      for (const arrival of arrivals) add.run(arrival)
      prune.run(time - KEEP_MS)
    },
  }
}
