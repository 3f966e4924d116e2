import { createHash } from 'node:crypto'
import { canonicalPath, fillPath } from '../paths.ts'
import {
  type DocumentKind,
  RELEASES,
  RESOURCES,
  type Resource,
  type Surface,
} from '../resources.ts'
import type { ListedItem, Scope } from './catalog-scope.ts'

/** One path whose answer is mirrored. */
export interface Task {
  /** As upstream is asked for it. */
  path: string
  canonical: string
  surface: Surface
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
export function tasksOfItem(resource: Resource, id: string, ownerSha: Buffer): Task[] {
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

/** The task of a document that stands alone (`/v1/me`): asked for at every run, with its validator. */
export function taskAlone(resource: Resource, path: string, runId: number): Task {
  return taskOf(resource, path, `${resource.name}/`, digest(`run ${runId}`), null)
}

/** An artifact set that only the settings name: nothing tells when it changes, so it is asked for anew every day. */
export function taskOfDay(resource: Resource, id: string, now: number): Task[] {
  return tasksOfItem(resource, id, digest(`day ${Math.floor(now / 86_400_000)} ${id}`))
}

/** The package catalog's paths of the packages in scope; versions that several packages share are asked for once. */
export function releaseTasks(packages: Scope['packages']): Task[] {
  const tasks = new Map<string, Task>()
  for (const item of packages) {
    const values = releaseOf(item)
    if (values === null) continue
    for (const [name, template] of Object.entries(RELEASES)) {
      const task = releaseTask(template, values, item, name === 'provenance' ? 'provenance' : null)
      if (task !== null && !tasks.has(task.canonical)) tasks.set(task.canonical, task)
    }
  }
  return [...tasks.values()]
}

function releaseTask(
  template: string,
  values: Record<string, string>,
  { id, sha }: ListedItem,
  document: DocumentKind | null,
): Task | null {
  const path = fillPath(template, values)
  if (path.includes('{')) return null // the package does not say its version or its architecture
  const shared = { name: 'releases', surface: 'catalog', secrets: false } as const
  return taskOf(shared, path, `packages/${id}`, sha, document)
}

function releaseOf({ value }: ListedItem): Record<string, string> | null {
  const values: Record<string, string> = {}
  for (const field of ['ecosystem', 'name', 'version', 'arch']) {
    const text = value[field]
    if (typeof text === 'string' && text !== '') values[field] = text
  }
  return values['ecosystem'] === undefined || values['name'] === undefined ? null : values
}

function taskOf(
  resource: Pick<Resource, 'name' | 'surface' | 'secrets'>,
  path: string,
  owner: string,
  ownerSha: Buffer,
  document: DocumentKind | null,
): Task {
  const { name, surface, secrets } = resource
  const canonical = canonicalPath(path) ?? path
  return { path, canonical, surface, resource: name, owner, ownerSha, document, secrets }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest().subarray(0, 16)
}

/** The resource of a name. */
export function resourceNamed(name: string): Resource {
  const found = RESOURCES.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`no resource ${name}`)
  return found
}
