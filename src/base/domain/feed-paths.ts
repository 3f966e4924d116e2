/** Path prefix of all public feeds, upstream and here (spec section 4, "Public feeds"). */
export const FEEDS_ROOT = '/external/'

/** Path prefix of the OSV feed. */
export const OSV_ROOT = `${FEEDS_ROOT}osv/`
export const OSV_INDEX = `${OSV_ROOT}all.json`
export const OSV_ARCHIVE = `${OSV_ROOT}all.zip`
/** The path of a record as it is shown in lists of paths. */
export const OSV_RECORD = `${OSV_ROOT}{id}.json`

/** Returns the path of one record. Ids may contain any character, so each is percent-encoded. */
export function osvRecordPath(id: string): string {
  return `${OSV_ROOT}${encodeURIComponent(id)}.json`
}

/** A public feed besides OSV that is always mirrored: one document. */
interface PublicFeed {
  readonly path: string
  /** How a sync counts the document's entries (`sync/feeds/documents.ts`). `patches`: its rows or packages; `json`: its values. */
  readonly content: 'patches' | 'json'
  /** The document has the rows of the patch feed, which the three query filters narrow. */
  readonly isFiltered: boolean
}

/** Every public feed besides OSV that is always mirrored; syncs, the API and the settings read this table. */
export const PUBLIC_FEEDS: readonly PublicFeed[] = [
  { path: `${FEEDS_ROOT}patch_feed`, content: 'patches', isFiltered: true },
  { path: `${FEEDS_ROOT}globals/sys_matrix`, content: 'json', isFiltered: false },
]

/** The older form of the patch feed; mirrored only where `feeds.extraPaths` names it. */
const CVE_FEED = `${FEEDS_ROOT}cve_feed`

/** Paths of the documents that the three query filters narrow. */
export const FILTERED_FEEDS: ReadonlySet<string> = new Set([
  ...PUBLIC_FEEDS.filter(({ isFiltered }) => isFiltered).map(({ path }) => path),
  CVE_FEED,
])
