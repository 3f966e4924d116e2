import { randomUUID } from 'node:crypto'
import { MirrorError } from '../../base/errors.ts'
import { fillPath, matchPath } from '../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES } from '../../base/domain/resources.ts'
import { formOf, isTransient, statusOf } from '../../upstream/http/errors.ts'
import type { CatalogContext } from './context.ts'
import type { Crawl } from './crawl.ts'
import type { Task } from './answers/plan.ts'

/**
 * Decides on what answered 404 in another form than JSON, as a page of a proxy does: it counts as the service's word where
 * the service, asked now for what cannot exist, answers in that form. Otherwise the path is missing, and what is stored stays.
 */
export async function settleUnsure(context: CatalogContext, crawl: Crawl): Promise<void> {
  for (const [, answers] of Map.groupBy(crawl.unsure, ({ task }) => task.surface)) {
    const [first] = answers
    const own = first === undefined ? null : await formOfNone(context, first.task)
    for (const { task, answer, form } of answers) {
      if (own === form || own === null) {
        await context.keep(() => context.store.catalog.keepFetched(answer))
        crawl.fetched++
      } else crawl.missing.set(task.canonical, whyUnsure(form, own))
    }
  }
}

/** The service did not answer the comparison. */
const SILENT = '-'

function whyUnsure(form: string, own: string): string {
  const named = (type: string): string => (type === '' ? 'without a type' : `as ${type}`)
  const compared = own === SILENT ? 'could not be asked for' : `is refused ${named(own)}`
  return `it answers 404 ${named(form)}, and what cannot exist ${compared}: a proxy may have answered`
}

/** Returns the media type in which the service refuses what cannot exist; null: it does not, so nothing can be compared. */
async function formOfNone(context: CatalogContext, task: Task): Promise<string | null> {
  const path = pathOfNone(task)
  if (path === null) return null
  const { maxRecordBytes: maxBytes } = context.config.upstream
  try {
    await context.sessionOf(task.surface).fetchDocument(context.relative(task, path), { maxBytes, gzip: true })
  } catch (error) {
    context.session.signal.throwIfAborted()
    if (!(error instanceof MirrorError)) throw error
    if (isTransient(error)) return SILENT
    return [400, 404, 410, 422].includes(statusOf(error) ?? 0) ? formOf(error) : null
  }
  return null
}

/** Returns the path of the same answer of an item that cannot exist; null for a path of another form. */
function pathOfNone({ canonical }: Task): string | null {
  const forms = [...RESOURCES.flatMap(({ artifacts }) => artifacts.map(({ path }) => path)), ...Object.values(RELEASES)]
  for (const form of forms) {
    const values = matchPath(form, canonical)
    if (values === null) continue
    const { id, name } = values
    return fillPath(form, id === undefined ? { ...values, name: noneLike(name) } : { ...values, id: noneLike(id) })
  }
  return null
}

/** Returns an id that no item has, a number where the given one is. */
function noneLike(id = ''): string {
  return /^\d+$/.test(id) ? '9'.repeat(15) : randomUUID()
}
