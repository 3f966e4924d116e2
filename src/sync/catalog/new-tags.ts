import { textsWithin } from '../../domain/image-reference.ts'
import { plainName, readText } from '../../json/field-names.ts'
import { canonicalPath } from '../../domain/path-templates.ts'
import type { NewTag } from '../../store/catalog/tags.ts'
import type { CatalogContext } from './context.ts'
import type { Walks } from './crawl.ts'
import { refsOf } from './scope/references.ts'
import { resourceNamed } from './answers/plan.ts'

/** As many as one run keeps; it counts them all. */
const MAX_ARRIVALS = 1000

type Names = Pick<NewTag, 'repository' | 'tag' | 'digest'>

/**
 * Keeps which tags a run brings, new ones and those under another digest or name, so that polls can be held against what
 * events announced. Nothing for a list that was not held: all of it would be new. Call inside the transaction that
 * publishes, before the list is replaced.
 */
export function recordArrivals(context: CatalogContext, { walked }: Walks): void {
  const { store, facts, runId, now } = context
  const path = canonicalPath(resourceNamed('tags').list?.path ?? '') ?? ''
  const walk = walked.get(path)
  if (walk === undefined || walk.held === null || !walk.changed) return
  const arrived: Names[] = []
  let count = 0
  for (const [body, before] of store.eachMovedPair(walk.held, path)) {
    const item = parse(body)
    if (!isAnnounced(item)) continue
    const names = namesOfTag(item)
    if (before !== null && isSame(names, namesOfTag(parse(before)))) continue
    count++
    if (arrived.length < MAX_ARRIVALS) arrived.push(names)
  }
  if (count === 0) return
  facts['arrived'] = count
  const at = now()
  store.addNewTags(
    arrived.map((names) => ({ ...names, runId, at })),
    at,
  )
}

const TAG_FIELDS = ['name', 'tag', 'tag_name', 'image_tag']
const REPOSITORY_FIELDS = [
  'repository',
  'repo',
  'image_repo',
  'image_repository',
  'repo_name',
  'name',
  'image',
]

/** What a listed tag calls itself. Fields are named as upstream likes, so each is the first of several that is there. */
function namesOfTag(item: Record<string, unknown>): Names {
  const images = refsOf(item).filter(({ kind }) => kind === 'image')
  const repositories = REPOSITORY_FIELDS.flatMap((name) =>
    images.filter(({ field }) => plainName(field) === plainName(name)).map(({ value }) => value),
  )
  const digest = textsWithin(item).find((text) => /(^|@)\w+:[0-9a-f]{32,}$/.test(text))
  return {
    repository: repositories[0] ?? null,
    tag: readText(item, TAG_FIELDS),
    digest: digest?.slice(digest.lastIndexOf('@') + 1) ?? null,
  }
}

function isSame(a: Names, b: Names): boolean {
  return a.repository === b.repository && a.tag === b.tag && a.digest === b.digest
}

/** Only remediated tags are announced (service API, section 6): one that says it is none does not count. */
function isAnnounced(item: Record<string, unknown>): boolean {
  return !Object.entries(item).some(([name, value]) => /remediated/i.test(name) && value === false)
}

function parse(body: Buffer): Record<string, unknown> {
  return JSON.parse(body.toString('utf8')) as Record<string, unknown> // checked when it was staged
}
