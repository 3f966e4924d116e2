import { type Release, archsIn, listedRelease, releasesIn } from '../../../json/releases.ts'
import { canonicalPath, fillPath, matchPath } from '../../../domain/path-templates.ts'
import { type DocumentKind, RELEASES } from '../../../domain/resources.ts'
import type { StoredAnswer } from '../../../store/catalog/answers.ts'
import { contentOf } from '../../../store/database/gzip.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl } from '../crawl.ts'
import { isNarrow } from '../scope/refresh-scope.ts'
import type { ListedItem, Scope } from '../scope/scope.ts'
import { type Task, NEVER_KNOWN, digestOf, taskOf } from './plan.ts'
import { jsonTextOf } from '../../../json/objects.ts'

const RELEASE = { name: 'releases', surface: 'catalog', secrets: false } as const

/**
 * The package catalog's paths of the packages in scope, by what the list of packages says. Packages share them: all
 * versions of a name, all architectures of a version. An answer is as it was while every listed package that it tells
 * of is.
 */
export function releaseTasks(
  packages: Scope['packages'],
  listed: Iterable<Pick<ListedItem, 'sha' | 'value'>>,
): Task[] {
  const tasks = new Map<string, Task>()
  for (const item of packages) {
    for (const { path, document } of listedPaths(item)) {
      const task = taskOf(RELEASE, path, `packages/${item.id}`, NEVER_KNOWN, document)
      if (!tasks.has(task.canonical)) tasks.set(task.canonical, task)
    }
  }
  const told = new Map<string, string[]>([...tasks.keys()].map((path) => [path, []]))
  for (const item of listed) {
    for (const { path } of listedPaths(item))
      told.get(canonicalPath(path) ?? path)?.push(item.sha.toString('hex'))
  }
  return [...tasks.values()].map((task) => ({
    ...task,
    ownerSha: digestOf([task.owner, ...(told.get(task.canonical) ?? [])]),
  }))
}

interface Path {
  path: string
  document: DocumentKind | null
}

function listedPaths({ value }: Pick<ListedItem, 'value'>): Path[] {
  const listed = listedRelease(value)
  if (listed === null) return []
  const { ecosystem, name, version, archs } = listed
  const versions = { path: fillPath(RELEASES.versions, { ecosystem, name }), document: null }
  return version === null ? [versions] : [versions, ...pathsOf(ecosystem, name, { version, archs })]
}

function pathsOf(
  ecosystem: string,
  name: string,
  { version, archs }: Pick<Release, 'version' | 'archs'>,
): Path[] {
  const values = { ecosystem, name, version }
  return [
    { path: fillPath(RELEASES.cves, values), document: null },
    { path: fillPath(RELEASES.details, values), document: null },
    ...archs.map((arch): Path => {
      return { path: fillPath(RELEASES.provenance, { ...values, arch }), document: 'provenance' }
    }),
  ]
}

/**
 * What the answers of `…/versions` name beyond the list of packages: every version, and the architectures told beside
 * it. Each is asked for again when anything that the answer states of that version changes.
 */
export function versionTasks(context: CatalogContext, crawl: Crawl): Task[] {
  return answersOf(context, crawl, RELEASES.versions).flatMap(({ task, params, answer }) => {
    const { ecosystem = '', name = '' } = params
    return releasesIn(answer).flatMap((release) =>
      pathsOf(ecosystem, name, release).flatMap((path) =>
        derivedTask(crawl, task, path, release.stated),
      ),
    )
  })
}

/** The provenance of the architectures that the answers of `…/details` name. */
export function architectureTasks(context: CatalogContext, crawl: Crawl): Task[] {
  return answersOf(context, crawl, RELEASES.details).flatMap(({ task, params, answer }) => {
    const { ecosystem = '', name = '', version = '' } = params
    const archs = archsIn(answer)
    return pathsOf(ecosystem, name, { version, archs })
      .filter(({ document }) => document !== null)
      .flatMap((path) => derivedTask(crawl, task, path, task.ownerSha.toString('hex')))
  })
}

/** A task that only an answer names; none where the list of packages names it already. */
function derivedTask(crawl: Crawl, from: Task, { path, document }: Path, told: string): Task[] {
  const task = taskOf(RELEASE, path, from.owner, NEVER_KNOWN, document)
  if (crawl.wanted.has(task.canonical)) return []
  return [{ ...task, ownerSha: digestOf([from.owner, told]) }]
}

interface Answered {
  task: Task
  params: Readonly<Record<string, string>>
  answer: unknown
}

/** The answers of the form `template` that are wanted and stored, or fetched by this run. A refresh reads none. */
function answersOf(context: CatalogContext, { wanted }: Crawl, template: string): Answered[] {
  if (isNarrow(context)) return []
  return [...wanted.values()].flatMap((task) => {
    const params = task.resource === RELEASE.name ? matchPath(template, task.canonical) : null
    const answer = params === null ? null : readAnswer(context, task.canonical)
    return params === null || answer === null ? [] : [{ task, params, answer }]
  })
}

function readAnswer({ store }: CatalogContext, path: string): unknown {
  const answer = store.readFetchedBody(path) ?? store.readCatalogAnswer(path)
  if (answer?.status !== 200 || answer.body === null) return null
  try {
    return JSON.parse(jsonTextOf(contentOf(answer.body, answer.size)))
  } catch {
    return null // damaged bytes name no versions; verify reports them
  }
}

/**
 * What a refresh leaves as it is: the stored answers of the package catalog whose package is still wanted, for it does
 * not read which versions they name.
 */
export function leftReleases(
  context: CatalogContext,
  { wanted }: Crawl,
  held: ReadonlyMap<string, StoredAnswer>,
): Task[] {
  if (!isNarrow(context)) return []
  const owners = new Set([...wanted.values()].map(({ owner }) => owner))
  return [...held.values()].flatMap(({ path, owner, ownerSha }) => {
    if (wanted.has(path) || !owners.has(owner) || !path.startsWith('/packages/')) return []
    const document = matchPath(RELEASES.provenance, path) === null ? null : 'provenance'
    return [{ ...taskOf(RELEASE, path, owner, ownerSha, document), canonical: path }]
  })
}
