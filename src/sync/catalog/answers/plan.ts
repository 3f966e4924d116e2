import { createHash } from 'node:crypto'
import { MirrorError } from '../../../core/errors.ts'
import { canonicalPath, fillPath } from '../../../domain/path-templates.ts'
import {
  type DocumentKind,
  type CatalogResource,
  type ResourceSurface,
  RESOURCES,
} from '../../../domain/resources.ts'

/** One path whose answer is mirrored. */
export interface Task {
  /** As upstream is asked for it. */
  path: string
  canonical: string
  surface: ResourceSurface
  resource: string
  /** `resource/id` of the item that it belongs to. */
  owner: string
  /** Digest of that item as it is listed: while it stays, the answer is not asked for again. */
  ownerSha: Buffer
  /** What the documents that the answer names must be; null: the answer is JSON of its own. */
  document: DocumentKind | null
  secrets: boolean
}

/** The tasks of a resource's item: its details and its artifacts. */
export function tasksOfItem(resource: CatalogResource, id: string, ownerSha: Buffer): Task[] {
  const owner = `${resource.name}/${id}`
  const paths: [string, DocumentKind | null][] = resource.artifacts.map((artifact) => [
    artifact.path,
    artifact.document,
  ])
  if (resource.item !== null) paths.unshift([resource.item, null])
  return paths.map(([template, document]) =>
    taskOf(resource, fillPath(template, { id }), owner, ownerSha, document),
  )
}

/**
 * The stamp under which "there is none" is held: a document may come later than the item it belongs to, so the answer
 * holds for the day.
 */
export function noneStamp(ownerSha: Buffer, now: number): Buffer {
  return digestOf(['none', String(Math.floor(now / 86_400_000)), ownerSha.toString('hex')])
}

/** The task of a document that stands alone (`/v1/me`): asked for at every run, with its validator. */
export function taskAlone(resource: CatalogResource, path: string): Task {
  return taskOf(resource, path, `${resource.name}/`, NEVER_KNOWN, null)
}

/** Whether nothing tells that a task's answer changed, so that it is asked for at every run. */
export function isAlone({ ownerSha }: Task): boolean {
  return ownerSha.length === 0
}

/** Whether a 404 contradicts what upstream lists: artifacts and the package catalog's answers need not exist. */
export function mustExist({ document, surface }: Task): boolean {
  return document === null && surface !== 'catalog'
}

/** An artifact set that only the settings name: nothing tells when it changes, so it is asked for anew every day. */
export function taskOfDay(resource: CatalogResource, id: string, now: number): Task[] {
  return tasksOfItem(resource, id, digestOf([`day ${Math.floor(now / 86_400_000)}`, id]))
}

/** Makes a task. */
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

/** Of an owner that is not listed anywhere. */
export const NEVER_KNOWN = Buffer.alloc(0)

/** One digest of several texts, whatever their order. */
export function digestOf(texts: readonly string[]): Buffer {
  const text = JSON.stringify([...texts].sort())
  return createHash('sha256').update(text).digest().subarray(0, 16)
}

/** The resource of a name. */
export function resourceNamed(name: string): CatalogResource {
  const found = RESOURCES.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`no resource ${name}`)
  return found
}

/** The error for an item whose name would lead to another path. */
export function unaddressable(path: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: no such path can be asked for`)
}
