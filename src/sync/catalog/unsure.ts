import { randomUUID } from 'node:crypto'
import { MirrorError } from '../../base/errors.ts'
import { fillPath, matchPath } from '../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES } from '../../base/domain/resources.ts'
import { LeavingError } from '../../upstream/http/destinations.ts'
import { type ErrorForm, formOf, isTransient, statusOf } from '../../upstream/http/errors.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl, UnsureNone } from './crawl.ts'
import { contradictedLoss, saysNothing } from './answers/releases.ts'
import { isNarrow } from './scope/refresh-scope.ts'

/**
 * Decides on what answers that there is nothing, where something is stored or a proxy may have answered. It counts as the service's
 * word where the service refuses what cannot exist in the same form, and still gives another answer of that kind. Otherwise the
 * path is missing, and what is stored stays; so it does until a second run in a row finds the same. Where the service gave no other,
 * one form of refusal decides, and the guard on all.
 */
export async function settleUnsure(context: CatalogContext, crawl: Crawl): Promise<void> {
  const [none, shorter] = [true, false].map((is) => crawl.unsure.filter(({ answer }) => saysNothing(answer) === is))
  for (const [kind, [first, ...others]] of Map.groupBy(none ?? [], ({ task }) => artifactKind(task.canonical))) {
    if (first === undefined) continue
    const judge = await createJudge(context, kind, [first, ...others])
    for (const one of [first, ...others]) {
      const { status } = one.answer
      await settle(context, crawl, one, status === 200 ? 'it lists nothing' : `it answers ${status}`, judge(one))
    }
  }
  for (const one of shorter ?? []) {
    const lost = contradictedLoss(context, one.task, one.answer)
    if (lost === null) await keep(context, crawl, one)
    else
      await settle(context, crawl, one, `it lists ${lost} no more, which the service still names for the version`, null)
  }
}

/** Keeps what an answer says where nothing speaks against it, and a run before found the same; it is missing otherwise. */
async function settle(
  context: CatalogContext,
  crawl: Crawl,
  one: UnsureNone,
  what: string,
  doubt: string | null,
): Promise<void> {
  if (doubt === null && isSettled(context, one)) return keep(context, crawl, one)
  const { canonical } = one.task
  crawl.missing.set(canonical, `${what}${doubt ?? ': what is stored stays until the next sync finds the same'}`)
  if (doubt === null) crawl.none.set(canonical, one.answer.status)
}

async function keep(context: CatalogContext, crawl: Crawl, { answer }: UnsureNone): Promise<void> {
  await context.keep(() => context.store.catalog.keepFetched(answer))
  crawl.fetched++
}

/** Returns whether nothing is stored, or the run before found that there is nothing. A refresh may come seconds after it. */
function isSettled(context: CatalogContext, { task, isStored }: UnsureNone): boolean {
  if (!isStored) return true
  const before = context.store.catalog.readMissingPath(task.canonical)?.status ?? null
  return !isNarrow(context) && before !== null && before !== 403
}

const OF_CATALOG: readonly string[] = Object.values(RELEASES)
/** Forms of the paths of answers that may be none. */
const KINDS: readonly string[] = [
  ...RESOURCES.flatMap(({ artifacts }) => artifacts.map(({ path }) => path)),
  ...OF_CATALOG,
]

/** Returns the form of a path of an artifact, or of the package catalog; empty for any other. */
export function artifactKind(path: string): string {
  return KINDS.find((form) => matchPath(form, path) !== null) ?? ''
}

/** Returns whether a path has a form; forms exclude each other. */
function isOfKind(path: string, kind: string): boolean {
  return matchPath(kind, path) !== null
}

/** What a request gave: what was asked for, a 204, no answer, the form of a 404, or another refusal (null). */
type Said = 'given' | 'none' | 'silent' | ErrorForm | null

/** Returns what says why an answer that there is nothing is not believed; null: it is. */
async function createJudge(
  context: CatalogContext,
  kind: string,
  answers: readonly [UnsureNone, ...UnsureNone[]],
): Promise<(one: UnsureNone) => string | null> {
  if (OF_CATALOG.includes(kind) && !isCatalogFound(context))
    return () => ', as does all of the package catalog: upstream.catalogUrl may lead elsewhere'
  // A 404 of the service's own form needs no other to compare it with.
  if (!answers.some(({ isStored, form }) => isStored || isForeign(form))) return () => null
  const other = await askOther(context, kind, answers)
  const own = await formOfNone(context, answers[0], other === 'given')
  return ({ form, isStored }) => {
    if (isStored && other === 'none') return ', as do others of its kind that are stored: a proxy may have answered'
    if (isStored && other === 'silent') return ', and whether others of its kind are there could not be asked'
    if (form === null || own === null || isOfOne(form, own)) return null
    const compared = own === 'silent' ? 'could not be asked for' : `is refused${named(own)}, in another form`
    return `${named(form)}, and what cannot exist ${compared}: a proxy may have answered`
  }
}

function named({ type }: ErrorForm): string {
  return type === '' ? ' without a type' : ` as ${type}`
}

/** Returns whether two refusals may be of one server: they have one media type, and members in common, if any. */
function isOfOne(one: ErrorForm, other: ErrorForm | 'silent'): boolean {
  if (other === 'silent' || one.type !== other.type) return false
  return one.members.length + other.members.length === 0 || one.members.some((name) => other.members.includes(name))
}

/** Stored answers of a kind that are asked for, at most: one that is there shows that its path leads to the service. */
const MOST_ASKED = 3

/** Returns whether the service gives another answer of a kind, which is stored or was fetched by this run; null: there is no other. */
async function askOther(
  context: CatalogContext,
  kind: string,
  answers: readonly [UnsureNone, ...UnsureNone[]],
): Promise<'given' | 'none' | 'silent' | null> {
  const isStored = answers.some((one) => one.isStored)
  const none = new Set(answers.map(({ task }) => task.canonical))
  let found: 'none' | 'silent' | null = null
  for (const path of isStored ? othersOf(context, kind, none) : []) {
    const said = await ask(context, answers[0], path)
    if (said === 'given') return said
    if (found !== 'silent') found = said === 'silent' || said === null ? 'silent' : 'none'
  }
  return found ?? (wasGiven(context, kind) ? 'given' : null)
}

/** Returns whether the package catalog has given anything, in this run or before. */
function isCatalogFound(context: CatalogContext): boolean {
  return OF_CATALOG.some((kind) => wasGiven(context, kind) || othersOf(context, kind, new Set()).length > 0)
}

/** Returns whether a form of a 404 is not JSON, as the service's are: a proxy may have answered. */
export function isForeign(form: ErrorForm | null): boolean {
  return form !== null && !/[/+]json$/.test(form.type)
}

function wasGiven({ store: { catalog } }: CatalogContext, kind: string): boolean {
  const paths = [...catalog.eachFetchedPath()] // while they are read, no other is
  return paths.some((path) => isOfKind(path, kind) && catalog.readFetched(path)?.status === 200)
}

function othersOf({ store }: CatalogContext, kind: string, none: ReadonlySet<string>): string[] {
  const paths: string[] = []
  for (const { path, status } of store.catalog.eachStoredAnswer()) {
    if (status !== 200 || none.has(path) || !isOfKind(path, kind)) continue
    paths.push(path)
    if (paths.length === MOST_ASKED) break
  }
  return paths
}

async function ask(context: CatalogContext, { task }: UnsureNone, path: string): Promise<Said> {
  const { maxRecordBytes: maxBytes } = context.config.upstream
  const session = context.sessionOf(task.surface)
  try {
    await session.fetchDocument(context.relative(task, path), { maxBytes, gzip: true })
    return 'given'
  } catch (error) {
    context.session.signal.throwIfAborted()
    if (error instanceof LeavingError) return 'given'
    if (!(error instanceof MirrorError)) throw error
    if (statusOf(error) === 202) return 'given'
    if (statusOf(error) === 204) return 'none'
    if (isTransient(error)) return 'silent'
    return [400, 404, 410, 422].includes(statusOf(error) ?? 0) ? formOf(error) : null
  }
}

/**
 * Returns the form in which the service refuses what cannot exist: of the same kind, where it gives others of that kind; else
 * preferably an item, as all paths of a kind may lead elsewhere. Null: it gives it, so nothing can be compared.
 */
async function formOfNone(
  context: CatalogContext,
  one: UnsureNone,
  isKindGiven: boolean,
): Promise<ErrorForm | 'silent' | null> {
  const { canonical, resource } = one.task
  const id = matchPath(artifactKind(canonical), canonical)?.['id']
  const item = RESOURCES.find(({ name }) => name === resource)?.item ?? null
  const ofItem = isKindGiven || item === null ? null : fillPath(item, { id: noneLike(id) })
  for (const path of [ofItem, pathOfNone(canonical)]) {
    const said = path === null ? null : await ask(context, one, path)
    if (said !== null && said !== 'given' && said !== 'none') return said
  }
  return null
}

/** Returns the path of the same answer of an item that cannot exist; null for a path of another form. */
function pathOfNone(path: string): string | null {
  const kind = artifactKind(path)
  const values = matchPath(kind, path)
  if (values === null) return null
  const { id, name } = values
  return fillPath(kind, id === undefined ? { ...values, name: noneLike(name) } : { ...values, id: noneLike(id) })
}

/** Returns an id that no item has, a number where the given one is. */
function noneLike(id = ''): string {
  return /^\d+$/.test(id) ? '9'.repeat(15) : randomUUID()
}
