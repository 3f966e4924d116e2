import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import { counted } from '../../../base/text.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { canonicalPath, fillPath, isAddressable } from '../../../base/domain/path-templates.ts'
import {
  type ListPath,
  type CatalogResource,
  RESOURCES,
  TAGS,
  atVersion,
  identityVersion,
  listPathOf,
} from '../../../base/domain/resources.ts'
import { type CatalogList, parseItem } from '../../../store/catalog/lists.ts'
import type { CatalogContext } from '../context.ts'
import type { Walks } from '../crawl.ts'
import { isConfirmationDue } from '../answers/due.ts'
import { isUnlearned, walkCatalogList } from './walk-list.ts'
import { isForbidden, isKeyRefused } from '../../../upstream/http/errors.ts'
import { isNarrow, namedRepositories, changedImages } from '../scope/refresh-scope.ts'
import { REFRESHED_LISTS } from '../../../base/domain/event-types.ts'
import type { ListedItem, Scope } from '../scope/scope.ts'
import { refsOf } from '../scope/references.ts'
import { unaddressable } from '../answers/plan.ts'
import { runPool } from '../../../base/pacing.ts'

/** Returns the resources that a source mirrors, by the settings. */
export function resourcesOf({ config, source }: CatalogContext): CatalogResource[] {
  const { personalData } = config.catalog
  const own = RESOURCES.filter(({ surface, personal }) => {
    const isOwn = source === 'identity' ? surface === 'identity' : surface !== 'identity'
    return isOwn && (personal === null || personalData.includes(personal))
  })
  return own.map((resource) => atVersion(resource, identityVersion(config.identity.apiUrl)))
}

/** Walks the lists at fixed paths. Records and skips lists that fail; throws if all fail. */
export async function walkLists(context: CatalogContext, walks: Walks): Promise<void> {
  const lists = walkedResources(context).flatMap((resource) =>
    resource.list === null ? [] : [{ resource, list: resource.list, path: resource.list.path }],
  )
  await walkAll(context, walks, lists)
  if (walks.walked.size > 0 || walks.error === null) return
  // The only list of a surface may be refused for good; several that are refused at once are a failure of the whole.
  if (lists.length > 1 || walks.forbidden.size === 0) throw walks.error
}

/** Returns the resources whose lists this run walks; a refresh walks only those that an event can change. */
function walkedResources(context: CatalogContext): CatalogResource[] {
  const all = resourcesOf(context)
  return isNarrow(context) ? all.filter(({ name }) => REFRESHED_LISTS.includes(name)) : all
}

/**
 * Walks the lists below items in scope (`/images/{repo}/tags`) where a list entry of the item changed, an event names
 * the item, or the last walk is long ago.
 */
export async function walkSublists(context: CatalogContext, walks: Walks, scope: Scope): Promise<void> {
  const { full, store, targets } = context
  const images = resourcesOf(context).find(({ name }) => name === 'images')
  const list = images?.sublist ?? null
  if (images === undefined || list === null) return
  const moved = changedImages(context, walks)
  const isNamed = namedRepositories(targets)
  const due = new Map<string, Due & { image: string[] }>() // images can share a repository: its list is walked once
  for (const { id, repo } of scope.images) {
    if (repo === null) continue
    const path = fillPath(list.path, { repo })
    const canonical = canonicalPath(path) ?? path
    const touched = full || moved === 'all' || moved.has(id) || moved.has(repo) || isNamed(repo)
    const stored = store.catalog.readList(canonical)
    const settled = isNarrow(context) || (stored !== null && !needsWalk(context, canonical, stored))
    if (touched || !settled) due.set(canonical, { resource: images, list, path, image: [id, repo] })
  }
  await walkAll(context, walks, [...due.values()])
  for (const [path, { image }] of due) await refuseEmptied(context, walks, path, { image, tags: scope.tags })
}

/** Counts an image's list of tags that is empty at once as failed, while the list of all tags has some of them as the image's. */
async function refuseEmptied(
  { store: { catalog, exclusive } }: CatalogContext,
  walks: Walks,
  path: string,
  { image, tags }: { image: readonly string[]; tags: Scope['tags'] },
): Promise<void> {
  const stored = walks.walked.get(path)?.stored ?? null
  const [first] = stored === null ? [] : catalog.eachWalked(stored, path)
  if (stored === null || first !== undefined) return
  const gone = new Set(catalog.eachGone(stored, path))
  const isOwn = ({ id, value }: ListedItem): boolean =>
    gone.has(id) && refsOf(value).some((ref) => ref.kind === 'image' && image.includes(ref.value))
  const listed = tags.filter(isOwn)
  if (listed.length === 0) return
  walks.walked.delete(path)
  walks.failed.set(path, `it is empty, and ${TAGS} lists ${counted(listed.length, 'tag')} of the image`)
  await exclusive(() => catalog.staging.dropWalk(path))
}

/** Returns whether a list is walked although its item is unchanged: it was incomplete, or was confirmed long ago. */
function needsWalk(context: CatalogContext, path: string, stored: CatalogList): boolean {
  return (
    context.store.catalog.readMissingPath(path) !== null || isUnlearned(stored) || isConfirmationDue(context, stored)
  )
}

/** Returns the canonical paths of the lists in scope. */
export function wantedLists(context: CatalogContext, scope: Scope): Set<string> {
  const wanted = new Set<string>()
  for (const resource of resourcesOf(context)) {
    const { list, sublist } = resource
    if (list !== null) wanted.add(listPathOf(resource))
    if (sublist === null) continue
    for (const { repo } of scope.images)
      if (repo !== null) wanted.add(canonicalPath(fillPath(sublist.path, { repo })) ?? '')
  }
  return wanted
}

interface Due {
  resource: CatalogResource
  list: ListPath
  path: string
}

async function walkAll(context: CatalogContext, walks: Walks, due: readonly Due[]): Promise<void> {
  await runPool(due, context.config.catalog.concurrency, async ({ resource, list, path }) => {
    try {
      if (!isAddressable(path)) throw unaddressable(path)
      const walk = await walkCatalogList(context, resource, list, path)
      walks.walked.set(walk.path, walk)
    } catch (error) {
      context.session.signal.throwIfAborted()
      if (!(error instanceof MirrorError) || isFatal(error)) throw error
      const canonical = canonicalPath(path) ?? path
      walks.failed.set(canonical, messageOf(error))
      if (isForbidden(error)) walks.forbidden.add(canonical)
      // Of a list in another form nothing that is older may be served.
      const isUnstored = context.store.catalog.readList(canonical) === null
      if (isForbidden(error) || (isUnstored && error.code === 'upstream_shape')) walks.ownFailures.add(canonical)
      walks.error = error
    }
  })
}

/** Returns whether an error affects every request of the run: the credential, the disk, a setting. */
export function isFatal(error: MirrorError): boolean {
  const ends = ['storage', 'corrupt', 'config', 'internal', 'aborted']
  return isKeyRefused(error) || ends.includes(error.code)
}

/** Iterates over the items of a list: as walked, or as stored when the walk failed. */
export function* itemsOf(
  { store }: CatalogContext,
  { walked }: Walks,
  resource: CatalogResource,
): Generator<ListedItem> {
  const path = listPathOf(resource)
  const walk = walked.get(path)
  if (walk !== undefined) {
    for (const [id, sha, body] of store.catalog.eachWalked(walk.stored, path))
      yield toItem(id, sha, body, resource.name)
    return
  }
  const stored = store.catalog.readList(path)
  if (stored === null) return
  for (const { id, sha, body } of store.catalog.eachEntry(stored.id)) yield toItem(id, sha, body, resource.name)
}

function toItem(id: string, sha: Buffer, body: Buffer, resource: string): ListedItem {
  return { id, sha, value: { ...fieldsOfItem(parseItem(body), resource) } }
}
