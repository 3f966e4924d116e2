import { type Release, archsIn, listedRelease, releasesIn } from '../../../base/json/releases.ts'
import { canonicalPath, fillPath, matchPath } from '../../../base/domain/path-templates.ts'
import { type DocumentKind, RELEASES, listPathOf, resourceNamed } from '../../../base/domain/resources.ts'
import type { FetchedAnswer } from '../../../store/catalog/answer-writes.ts'
import type { StoredAnswer, StoredAnswers } from '../../../store/catalog/answers.ts'
import { parseReplaced } from '../../../store/catalog/lists.ts'
import { contentOf } from '../../../store/database/gzip.ts'
import type { CatalogContext } from '../context.ts'
import type { Crawl } from '../crawl.ts'
import { isNarrow } from '../scope/refresh-scope.ts'
import type { ListedItem, Scope } from '../scope/scope.ts'
import { type Task, NO_OWNER_DIGEST, digestOf, taskOf, versionsPathOf } from './plan.ts'
import { countListed } from '../../../base/json/forms/more-beyond.ts'
import { jsonTextOf } from '../../../base/json/objects.ts'

const RELEASE = { name: 'releases', surface: 'catalog', secrets: false } as const

/**
 * Returns the package catalog's tasks of the packages in scope. Packages share paths: all versions of a name, all
 * architectures of a version. An answer is unchanged while every listed package that it covers is unchanged; which ones
 * these are is found out when the first digest is asked for: a refresh asks for none.
 */
export function releaseTasks(
  packages: Scope['packages'],
  listed: () => Iterable<Pick<ListedItem, 'sha' | 'value'>>,
): Task[] {
  const tasks = new Map<string, Task>()
  const pathsBySha = new Map<string, Path[]>() // the packages in scope are listed as well
  let digests: Map<string, string[]> | null = null
  const coveredBy = (canonical: string): string[] => {
    digests ??= coveredPackages(tasks, pathsBySha, listed())
    pathsBySha.clear()
    return digests.get(canonical) ?? []
  }
  for (const item of packages) {
    const paths = listedPaths(item)
    pathsBySha.set(item.sha.toString('hex'), paths)
    for (const { path, document } of paths) {
      const task = taskOf(RELEASE, path, `packages/${item.id}`, NO_OWNER_DIGEST, document)
      const { canonical, owner } = task
      if (tasks.has(canonical)) continue
      const ownerSha = { get: () => digestOf([owner, ...coveredBy(canonical)]), enumerable: true }
      tasks.set(canonical, Object.defineProperty(task, 'ownerSha', ownerSha))
    }
  }
  return [...tasks.values()]
}

/** Returns the digests of the listed packages that the answer of each path covers. */
function coveredPackages(
  tasks: ReadonlyMap<string, Task>,
  pathsBySha: ReadonlyMap<string, Path[]>,
  listed: Iterable<Pick<ListedItem, 'sha' | 'value'>>,
): Map<string, string[]> {
  const digests = new Map<string, string[]>([...tasks.keys()].map((path) => [path, []]))
  for (const item of listed) {
    const sha = item.sha.toString('hex')
    for (const { path } of pathsBySha.get(sha) ?? listedPaths(item)) digests.get(canonicalPath(path) ?? path)?.push(sha)
  }
  return digests
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

/** Returns the path of the list of versions of a listed package; empty where it does not name one. */
export function versionsOfItem(value: ListedItem['value']): string {
  const [versions] = listedPaths({ value })
  return versions === undefined ? '' : (canonicalPath(versions.path) ?? versions.path)
}

function pathsOf(ecosystem: string, name: string, { version, archs }: Pick<Release, 'version' | 'archs'>): Path[] {
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
 * Returns tasks that only the answers of `…/versions` name: further versions and their architectures. Each is
 * requested again when anything that the answer states about that version changes.
 */
export function versionTasks(context: CatalogContext, crawl: Crawl): Task[] {
  const tasks: Task[] = []
  for (const { task, params, answer } of answersOf(context, crawl, RELEASES.versions)) {
    const { ecosystem = '', name = '' } = params
    for (const release of releasesIn(answer))
      for (const path of pathsOf(ecosystem, name, release))
        tasks.push(...derivedTask(crawl, task, path, release.stated))
  }
  return tasks
}

/** Returns the provenance tasks of the architectures that the answers of `…/details` name. */
export function architectureTasks(context: CatalogContext, crawl: Crawl): Task[] {
  const tasks: Task[] = []
  for (const { task, params, answer } of answersOf(context, crawl, RELEASES.details)) {
    const { ecosystem = '', name = '', version = '' } = params
    for (const path of pathsOf(ecosystem, name, { version, archs: archsIn(answer) }))
      if (path.document !== null) tasks.push(...derivedTask(crawl, task, path, task.ownerSha.toString('hex')))
  }
  return tasks
}

/** Returns a task that only an answer names; none where the list of packages already names it. */
function derivedTask(crawl: Crawl, from: Task, { path, document }: Path, state: string): Task[] {
  const task = taskOf(RELEASE, path, from.owner, NO_OWNER_DIGEST, document)
  if (crawl.wanted.has(task.canonical)) return []
  return [{ ...task, ownerSha: digestOf([from.owner, state]) }]
}

interface Answered {
  task: Task
  params: Readonly<Record<string, string>>
  answer: unknown
}

/**
 * Iterates over the wanted answers of paths of the form `template` that are stored, or fetched by this run; one at a time
 * is in memory. None in a refresh.
 */
function* answersOf(context: CatalogContext, { wanted }: Crawl, template: string): Generator<Answered> {
  if (isNarrow(context)) return
  for (const task of wanted.values()) {
    const params = task.resource === RELEASE.name ? matchPath(template, task.canonical) : null
    const answer = params === null ? null : readAnswer(context, task.canonical)
    if (params !== null && answer !== null) yield { task, params, answer }
  }
}

/** Returns the answer of a path, as this run fetched it or as it is stored; null: there is none. */
export function readAnswer({ store: { catalog } }: CatalogContext, path: string): unknown {
  return valueOf(catalog.readFetchedBody(path) ?? catalog.readAnswer(path))
}

/** Returns whether an answer lists the versions of a package, or the vulnerabilities of a version. */
export function isReleaseList({ canonical }: Pick<Task, 'canonical'>): boolean {
  return [RELEASES.versions, RELEASES.cves].some((form) => matchPath(form, canonical) !== null)
}

/** Returns whether a list of versions, as this run fetched it, names fewer than the stored one. */
export function namesFewer(context: CatalogContext, path: string): boolean {
  const before = releasesIn(valueOf(context.store.catalog.readAnswer(path))).length
  return releasesIn(readAnswer(context, path)).length < before
}

/**
 * Returns whether an answer lists nothing where the stored one of its path listed something: vulnerabilities of a version, or patches of
 * a package. What reads it would take that for clean.
 */
export function isEmptied(
  { store: { catalog } }: CatalogContext,
  { canonical, surface, document }: Pick<Task, 'canonical' | 'surface' | 'document'>,
  answer: Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null,
): boolean {
  if (document !== 'text' && (document !== null || surface !== 'catalog')) return false
  return answer?.status === 200 && saysNothing(answer) && !saysNothing(catalog.readAnswer(canonical))
}

/**
 * Returns a vulnerability that is listed no more and that the service still names elsewhere for the same version: in its details, or its
 * listed package, whichever named none before that was not in the list. Null: there is none, as where one is fixed.
 */
export function contradictedLoss(
  context: CatalogContext,
  { canonical, owner }: Pick<Task, 'canonical' | 'owner'>,
  answer: Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null,
): string | null {
  const { catalog } = context.store
  const params = matchPath(RELEASES.cves, canonical)
  if (params === null) return null
  const before = idsIn(valueOf(catalog.readAnswer(canonical)))
  const now = idsIn(valueOf(answer))
  const lost = [...before].filter((id) => !now.has(id))
  if (lost.length === 0) return null
  const details = canonicalPath(fillPath(RELEASES.details, params)) ?? ''
  const others = [
    [valueOf(catalog.readAnswer(details)), readAnswer(context, details)],
    listedPair(context, owner, params),
  ]
  const still = others
    .filter(([old]) => [...idsIn(old)].every((id) => before.has(id)))
    .flatMap(([old, other]) => [...idsIn(old)].filter((id) => idsIn(other).has(id)))
  return lost.find((id) => still.includes(id)) ?? null
}

/** Returns the listed package of a version, as it is stored and as this run walked it; empty where its list has another version. */
function listedPair({ store: { catalog } }: CatalogContext, owner: string, params: Readonly<Record<string, string>>) {
  const path = listPathOf(resourceNamed('packages'))
  const list = catalog.readList(path)
  const id = owner.slice(owner.indexOf('/') + 1)
  const stored = list === null ? null : (catalog.readEntry(list.id, id)?.body ?? null)
  const pair = [stored, catalog.staging.readStaged(path, id) ?? stored].map((body) =>
    body === null ? null : parseReplaced(body),
  )
  return pair.map((item) => (item !== null && listedRelease(item)?.version === params['version'] ? item : null))
}

/** Returns the ids of vulnerabilities, or what has the form of one, that are texts or names of members in a value. */
function idsIn(value: unknown, depth = 0): Set<string> {
  if (typeof value === 'string') return new Set(VULNERABILITY.test(value) ? [value] : [])
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return new Set()
  const names = Array.isArray(value) ? [] : Object.keys(value).filter((name) => VULNERABILITY.test(name))
  return new Set([...names, ...Object.values(value).flatMap((inner) => [...idsIn(inner, depth + 1)])])
}

const VULNERABILITY = /^[A-Z]{2,10}-[\w.:-]*\d[\w.:-]*$/
const MAX_DEPTH = 6

/** Returns whether an answer has no content, or lists nothing; null: there is none. */
export function saysNothing(answer: Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null): boolean {
  if (answer?.status !== 200) return true
  return answer.body !== null && countListed(valueOf(answer)) === 0
}

function valueOf(answer: Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null): unknown {
  if (answer?.status !== 200 || answer.body === null) return null
  try {
    return JSON.parse(jsonTextOf(contentOf(answer.body, answer.size)))
  } catch {
    return null // damaged bytes contain no versions; verify reports them
  }
}

/**
 * Returns the tasks that a refresh carries over: stored answers of the package catalog whose package or list of versions is still
 * wanted, or that are recorded as missing. Packages share a list of versions, so such an answer may have the name of one that is
 * no longer in scope. A refresh does not read which versions those lists name.
 */
export function carriedReleases(context: CatalogContext, { wanted }: Crawl, stored: StoredAnswers): Task[] {
  if (!isNarrow(context)) return []
  const planned = [...wanted.values()].filter(({ resource }) => resource === RELEASE.name)
  const owners = new Set(planned.map(({ owner }) => owner))
  const isCarried = ({ path, owner }: Pick<StoredAnswer, 'path' | 'owner'>): boolean =>
    owners.has(owner) || wanted.has(versionsPathOf(path))
  const ofPackages = stored.ofOwners((owner) => owners.size > 0 && owner.startsWith('packages/'))
  const missing = context.store.catalog
    .listMissingPaths()
    .flatMap(({ path, resource }) => (resource === RELEASE.name ? (stored.get(path) ?? []) : []))
  return [...[...ofPackages].filter(isCarried), ...missing].flatMap(({ path, owner }) => {
    if (wanted.has(path) || !path.startsWith('/packages/')) return []
    const document = matchPath(RELEASES.provenance, path) === null ? null : 'provenance'
    const ownerSha = stored.get(path)?.ownerSha ?? NO_OWNER_DIGEST
    return [{ ...taskOf(RELEASE, path, owner, ownerSha, document), canonical: path }]
  })
}
