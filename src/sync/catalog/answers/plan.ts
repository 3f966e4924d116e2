import { DAY_MS } from '../../../base/time.ts'
import { sha256Of } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { canonicalPath, fillPath, matchPath } from '../../../base/domain/path-templates.ts'
import {
  type DocumentKind,
  type CatalogResource,
  type ResourceSurface,
  RELEASES,
  RESOURCES,
} from '../../../base/domain/resources.ts'

/** A path whose answer is mirrored. */
export interface Task {
  /** The path as requested from upstream. */
  path: string
  canonical: string
  surface: ResourceSurface
  resource: string
  /** `resource/id` of the item that the answer belongs to. */
  owner: string
  /** Digest of that item's list entry: while it is unchanged, the answer is not requested again. */
  ownerSha: Buffer
  /** Required kind of the documents that the answer links to; null: the answer itself is plain JSON. */
  document: DocumentKind | null
  secrets: boolean
}

/** Returns the tasks of a resource's item: its details and its artifacts. */
export function tasksOfItem(resource: CatalogResource, id: string, ownerSha: Buffer): Task[] {
  const owner = `${resource.name}/${id}`
  const paths: [string, DocumentKind | null][] = resource.artifacts.map((artifact) => [
    artifact.path,
    artifact.document,
  ])
  if (resource.item !== null) paths.unshift([resource.item, null])
  return paths.map(([template, document]) => taskOf(resource, fillPath(template, { id }), owner, ownerSha, document))
}

/**
 * Returns the digest under which the absence of an answer is stored. It is valid for one day, because a document may
 * be published later than its item.
 */
export function absenceDigest(ownerSha: Buffer, now: number): Buffer {
  return digestOf(['none', String(Math.floor(now / DAY_MS)), ownerSha.toString('hex')])
}

/** Returns the task of a document without a list (`/v1/me`): requested in every run, with its validator. */
export function singletonTask(resource: CatalogResource, path: string): Task {
  return taskOf(resource, path, `${resource.name}/`, NO_OWNER_DIGEST, null)
}

/** Returns whether the answer of a canonical path links to documents, or is one, by the form of the path. */
export function isDocument(path: string): boolean {
  const forms = RESOURCES.flatMap(({ artifacts }) => artifacts.map((artifact) => artifact.path))
  return [...forms, RELEASES.provenance].some((form) => matchPath(form, path) !== null)
}

/**
 * Returns the path of the list of versions by which a path of the package catalog is wanted: a refresh does not read which versions
 * it names. Empty for other paths.
 */
export function versionsPathOf(path: string): string {
  const { versions, details, cves, provenance } = RELEASES
  const params = [details, cves, provenance].map((form) => matchPath(form, path)).find((one) => one !== null)
  return params ? (canonicalPath(fillPath(versions, params)) ?? '') : ''
}

/** Returns the path of the details of the version whose provenance has this path; empty for other paths. */
export function detailsPathOf(path: string): string {
  const params = matchPath(RELEASES.provenance, path)
  return params === null ? '' : (canonicalPath(fillPath(RELEASES.details, params)) ?? '')
}

/** Returns whether no digest shows that the answer changed, so that it is requested in every run. */
export function isAlwaysDue({ ownerSha }: Task): boolean {
  return ownerSha.length === 0
}

/** Returns whether a 404 contradicts upstream's list; artifacts and the package catalog's answers are optional. */
export function mustExist({ document, surface }: Task): boolean {
  return document === null && surface !== 'catalog'
}

/**
 * Returns the tasks of an artifact set that only the settings name: no list shows when it changes, so it is requested
 * once a day.
 */
export function dailyTasks(resource: CatalogResource, id: string, now: number): Task[] {
  return tasksOfItem(resource, id, digestOf([`day ${Math.floor(now / DAY_MS)}`, id]))
}

/** Creates a task. */
export function taskOf(
  resource: Pick<CatalogResource, 'name' | 'surface' | 'secrets'>,
  path: string,
  owner: string,
  ownerSha: Buffer,
  document: DocumentKind | null,
): Task {
  const { name, surface, secrets } = resource
  const canonical = canonicalPath(path) ?? path
  return { path, canonical, surface, resource: name, owner, ownerSha, document, secrets }
}

/** Digest of an owner that has no list entry. */
export const NO_OWNER_DIGEST = Buffer.alloc(0)

/** Returns one digest of several texts, independent of their order. */
export function digestOf(texts: readonly string[]): Buffer {
  const text = JSON.stringify([...texts].sort())
  return sha256Of(text).subarray(0, 16)
}

/** Creates the error for an item whose name would lead to another path. */
export function unaddressable(path: string): MirrorError {
  return new MirrorError(
    'upstream_shape',
    `${path}: the path cannot be requested, because its segments would resolve to another path`,
  )
}
