import { TAGS } from '../../base/domain/resources.ts'
import { plainName, readText } from '../../base/json/field-names.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { copiedDigests } from '../../base/json/forms/tag-digests.ts'
import type { Fields } from '../../base/json/objects.ts'
import { parseItem, parseReplaced } from '../../store/catalog/lists.ts'
import type { NewTag } from '../../store/catalog/tags.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import type { CatalogContext } from './context.ts'
import type { Walks } from './crawl.ts'
import { refsOf } from './scope/references.ts'
import { TAG_NAME_FIELDS } from '../../base/json/forms/listed-names.ts'

/** Maximum new tags that one run stores; it counts all of them. */
const MAX_ARRIVALS = 1000

type Names = Pick<NewTag, 'repository' | 'tag' | 'digest'>

/**
 * Stores the new tags of a run, and those whose digest or name changed, so that polls can be compared with webhook
 * events. Does nothing for a list that was not stored before: every tag would be new. Call it inside the publishing
 * transaction, before the list is replaced.
 */
export function recordArrivals(context: CatalogContext, { walked }: Walks): void {
  const { store, facts, runId, now } = context
  const walk = walked.get(TAGS)
  if (walk === undefined || walk.stored === null || !walk.changed) return
  const arrived: Names[] = []
  let count = 0
  for (const [body, before] of store.catalog.eachMovedPair(walk.stored, TAGS)) {
    const item = parseItem(body)
    if (!isAnnounced(item)) continue
    const names = namesOfTag(item)
    const known = before === null ? null : parseReplaced(before)
    const isUnread = before !== null && known === null
    if (isUnread || (known !== null && equalNames(names, namesOfTag(known)))) continue
    count++
    if (arrived.length < MAX_ARRIVALS) arrived.push(names)
  }
  if (count === 0) return
  facts['arrived'] = count
  const at = now()
  store.catalog.addNewTags(
    arrived.map((names) => ({ ...names, runId, at })),
    timeOfAges(store, at),
  )
}

const REPOSITORY_FIELDS = ['repository', 'repo', 'image_repo', 'image_repository', 'repo_name', 'name', 'image']

/**
 * Returns the names of a listed tag. Upstream's field names vary, so each name is read from the first field present.
 */
export function namesOfTag(tag: Fields): Names {
  const item = fieldsOfItem(tag, 'tags')
  const images = refsOf(item).filter(({ kind }) => kind === 'image')
  const repositories = REPOSITORY_FIELDS.flatMap((name) =>
    images.filter(({ field }) => plainName(field) === plainName(name)).map(({ value }) => value),
  )
  return {
    repository: repositories[0] ?? null,
    tag: readText(item, TAG_NAME_FIELDS),
    digest: copiedDigests(item)[0] ?? null,
  }
}

function equalNames(a: Names, b: Names): boolean {
  return a.repository === b.repository && a.tag === b.tag && a.digest === b.digest
}

/** Returns whether webhooks announce a tag: only remediated tags are announced (service API, section 6). */
function isAnnounced(item: Fields): boolean {
  return !Object.entries(fieldsOfItem(item, 'tags')).some(
    ([name, value]) => /remediated/i.test(name) && value === false,
  )
}
