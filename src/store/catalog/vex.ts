import { sha256Hex } from '../../base/digest.ts'
import { createDocumentStoreReader } from './documents.ts'
import { unpackedContent, wholeContent, wholeUnpacked } from './whole-content.ts'
import { type StoredSignature, isDisbelieved } from '../../base/domain/artifacts/signature.ts'
import { matchPath } from '../../base/domain/path-templates.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import { type CatalogAnswer, type CatalogLink, IS_VEX, IS_VEX_PATH } from './answers.ts'
import { createSignatureReader } from './signatures.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** Largest content of a gzip file, bytes. */
const MAX_UNPACKED = 64 * 2 ** 20

/** A document that an answer about VEX links to. */
export interface VexDocument {
  /** SHA-256 of the content, hex. */
  readonly digest: string
  /** Bytes of the content. */
  readonly size: number
  /** Unix seconds. */
  readonly changed: number
  /** Ids of the tags whose document it is, in order; none or absent: it belongs to no tag. */
  readonly tags?: readonly string[]
  /** What the verification of its signatures came to, the best of the artifacts that link to it; null or absent: it was not verified. */
  readonly signature?: StoredSignature | null
  /** The tags for which it may rule anything out; null: none, absent: all. One tag's verified artifact does not speak for another's. */
  readonly believedTags?: readonly string[] | null
}

/** Returns the tags for which a document may rule anything out; null: it rules nothing out. */
export function tagsBelieving({
  tags = [],
  signature,
  believedTags,
}: Omit<VexDocument, 'size' | 'changed'>): readonly string[] | null {
  if (believedTags !== undefined) return believedTags
  return isDisbelieved(signature) ? null : tags
}

/** An answer about VEX that is not published: SHA-256 of its documents, hex. */
interface FetchedVex {
  readonly path: string
  readonly owner: string
  readonly now: readonly string[]
}

type LinkRow = Pick<CatalogAnswer, 'path' | 'status' | 'sha256'> & {
  readonly owner: string
  readonly links: string
}

/** What is known of a document by the artifacts that link to it. */
interface Linked {
  readonly tags: Set<string>
  readonly believing: Set<string>
  isBelieved: boolean
  signature: StoredSignature | null
}

/** What begins the owner of a tag's answers. */
const OF_TAG = 'tags/'

/** Creates reads of the mirrored VEX documents; usable on any connection. */
export function createVexReader(db: Db) {
  const { list } = queries(db)
  const sboms = db
    .prepare<[string], string>(
      "SELECT links FROM catalog_answer WHERE owner = ? AND status = 200 AND substr(path, -5) = '/sbom'",
    )
    .pluck()
  const withSbom = db
    .prepare<[string], string>(
      `SELECT owner FROM catalog_answer WHERE status = 200 AND substr(path, -5) = '/sbom'
       AND substr(owner, 1, 5) = '${OF_TAG}' AND instr(links, ?) > 0 ORDER BY owner`,
    )
    .pluck()
  const documents = createDocumentStoreReader(db)
  return {
    /**
     * Each document once, in the order of the digests; one that is not stored has no bytes, and cannot be read. They are those of
     * a snapshot of the catalog and of the results of signatures (`readVexMark`). `fetched`: answers
     * that count instead of those of their paths, as if their signatures were not verified; what fetched answers mention counts
     * then as well.
     */
    listVexDocuments: createListing(db, documents),
    /** Returns the complete content, of a gzip file what is in it; null if it is damaged. */
    readVexContent({ digest, size }: VexDocument): Buffer | null {
      const content = wholeContent(documents, digest, size)
      if (typeof content === 'string' || sha256Hex(content) !== digest) return null
      const unpacked = unpackedContent(content, MAX_UNPACKED)
      return typeof unpacked === 'string' ? null : unpacked
    },
    /** Returns the SBOMs of a tag that can be read. */
    readSbomsOf(tag: string): Buffer[] {
      const listed = sboms.all(OF_TAG + tag).flatMap((json) => JSON.parse(json) as CatalogLink[])
      return listed.flatMap(({ digest }) => {
        const content = wholeUnpacked(documents, digest, MAX_UNPACKED)
        return typeof content === 'string' ? [] : [content]
      })
    },
    /** Returns the ids of the tags whose SBOM has this SHA-256 (hex), in order. */
    listTagsWithSbom: (digest: string): string[] => withSbom.all(digest).map((owner) => owner.slice(OF_TAG.length)),
    /** Returns the ids of the tags of which it is not sure that their SBOM is of the image that the catalog lists, in order. */
    listUnsureTags: list<[], string>(UNSURE),
    listTagsWithoutVex: createTagsWithoutVex(db),
  }
}

/**
 * SQL: where signatures are enforced, the tags whose stored SBOM is not verified, or as that of a digest which the catalog does not
 * name now: what is signed for a digest that the catalog lists is then not sure to be about the image of the SBOM.
 */
const UNSURE = `SELECT substr(a.owner, 6) FROM catalog_signature s JOIN catalog_answer a ON a.path = s.path
  LEFT JOIN catalog_list l ON l.resource = 'tags'
  LEFT JOIN catalog_entry e ON e.list = l.id AND e.id = substr(a.owner, 6)
  WHERE s.fetched = 0 AND s.enforced = 1 AND a.status = 200
    AND substr(a.owner, 1, 5) = '${OF_TAG}' AND substr(a.path, -5) = '/sbom'
    AND (s.state <> 'verified' OR instr(lower(CAST(e.body AS TEXT)), lower(s.subject)) = 0)
  ORDER BY a.owner`

/** What is in the paths of VEX, by the resource that it belongs to. */
const VEX_PATHS = RESOURCES.flatMap(({ name, artifacts }) =>
  artifacts.filter(({ document }) => document === 'vex').map(({ path }) => ({ name, path })),
)

/** Creates the function that returns the ids of the tags of whose VEX the last run could not fetch some, in order. */
function createTagsWithoutVex(db: Db): () => string[] {
  const missing = db.prepare<[], string>(`SELECT path FROM catalog_lacking WHERE ${IS_VEX_PATH}`).pluck()
  const mentioning = createMentioning(db)
  return () => {
    const paths = missing.all()
    const tagsOf = mentioning('published')
    const owners = paths.flatMap((path) =>
      VEX_PATHS.flatMap((one) => {
        const id = matchPath(one.path, path)?.['id']
        return id === undefined ? [] : [`${one.name}/${id}`]
      }),
    )
    return [...new Set(owners.flatMap(tagsOf))].sort()
  }
}

/** Creates the function that returns each document once, in the order of the digests. */
function createListing(db: Db, documents: ReturnType<typeof createDocumentStoreReader>) {
  const answers = db.prepare<[], LinkRow>(
    `SELECT owner, path, status, sha256, links FROM catalog_answer WHERE ${IS_VEX} ORDER BY path`,
  )
  const mentioning = createMentioning(db)
  const signatures = createSignatureReader(db)
  const unsure = db.prepare<[], string>(UNSURE).pluck()
  return (fetched: readonly FetchedVex[] | null = null): VexDocument[] => {
    const linked = createLinks(mentioning(fetched === null ? 'published' : 'fetched'))
    const replaced = new Set(fetched?.map(({ path }) => path))
    const ofUnsure = new Set(unsure.all().map((id) => OF_TAG + id))
    for (const { owner, ...row } of answers.all()) {
      if (replaced.has(row.path)) continue
      const links = JSON.parse(row.links) as CatalogLink[]
      const signature = signatures.readSignature(row.path, { ...row, links })
      const isUncompared = owner.startsWith(OF_TAG) && (signature?.subject === null || ofUnsure.has(owner))
      const isUnsure = signature?.isEnforced === true && isUncompared
      const isBelieved = !isDisbelieved(signature) && !isUnsure
      for (const { digest } of links) linked.add(digest, { owner, signature, isBelieved })
    }
    for (const { owner, now } of fetched ?? [])
      for (const digest of now) linked.add(digest, { owner, signature: null, isBelieved: true })
    return linked.list().map(([digest, { tags, signature, isBelieved, believing }]) => {
      // One that is damaged is deleted until it is fetched again: what it says is not known.
      const { size, changed } = documents.readDocument(digest) ?? { size: 0, changed: 0 }
      const believedTags = isBelieved ? [...believing].sort() : null
      return { digest, size, changed, tags: [...tags].sort(), signature, believedTags }
    })
  }
}

/** Collects by which artifacts documents are linked. `tagsOf`: the tags that an owner is about. */
function createLinks(tagsOf: (owner: string) => readonly string[]) {
  const linked = new Map<string, Linked>()
  return {
    add(digest: string, { owner, signature, isBelieved }: ArtifactLink): void {
      const known = linked.get(digest) ?? newlyLinked()
      linked.set(digest, known)
      known.signature = better(known.signature, signature)
      known.isBelieved ||= isBelieved
      for (const tag of tagsOf(owner)) {
        known.tags.add(tag)
        if (isBelieved) known.believing.add(tag)
      }
    },
    list: () => [...linked].sort(([one], [other]) => (one < other ? -1 : 1)),
  }
}

/** What an artifact says of the documents that it links to. */
interface ArtifactLink {
  readonly owner: string
  readonly signature: StoredSignature | null
  readonly isBelieved: boolean
}

function newlyLinked(): Linked {
  return { tags: new Set(), believing: new Set(), isBelieved: false, signature: null }
}

/** Returns of two results the one that says more for the document. */
function better(one: StoredSignature | null, other: StoredSignature | null): StoredSignature | null {
  return one?.state === 'verified' ? one : (other ?? one)
}

/**
 * Creates what makes the function that returns the tags that answers of an owner are about: itself, or those that mention an
 * artifact set. What mentions artifact sets is read once, where there are any. Fetched answers are in the place of published ones.
 */
function createMentioning(db: Db) {
  const mentionsIn = (table: string): string =>
    `SELECT mentioned.value, a.owner FROM ${table} a, json_each(a.mentions) AS mentioned
     WHERE a.mentions <> '[]' AND substr(a.owner, 1, 5) = '${OF_TAG}'`
  const published = mentionsIn('catalog_answer')
  const all = {
    published: db.prepare<[], [string, string]>(published).raw(),
    fetched: db
      .prepare<[], [string, string]>(
        `${published} AND a.path NOT IN (SELECT path FROM catalog_fetched) UNION ${mentionsIn('catalog_fetched')}`,
      )
      .raw(),
  }
  return (from: keyof typeof all): ((owner: string) => readonly string[]) => {
    let known: Map<string, string[]> | null = null
    return (owner) => {
      if (owner.startsWith(OF_TAG)) return [owner.slice(OF_TAG.length)]
      const set = /^avrs\/(.*)$/s.exec(owner)?.[1]
      if (set === undefined) return []
      known ??= tagsBySet(all[from].all())
      return known.get(set) ?? []
    }
  }
}

function tagsBySet(mentions: readonly [set: string, owner: string][]): Map<string, string[]> {
  const known = new Map<string, string[]>()
  for (const [set, owner] of mentions) {
    const tags = known.get(set) ?? []
    known.set(set, tags)
    tags.push(owner.slice(OF_TAG.length))
  }
  return known
}

export type VexReader = ReturnType<typeof createVexReader>
