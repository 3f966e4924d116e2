import { MirrorError } from '../../../base/errors.ts'
import { matchPath } from '../../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES } from '../../../base/domain/resources.ts'
import { saysAnything } from '../../../base/json/forms/error-body.ts'
import { releasesIn } from '../../../base/json/releases.ts'
import type { CatalogContext } from '../context.ts'
import { refuseError } from './artifact.ts'
import type { Task } from './plan.ts'
import { readAnswer } from './releases.ts'

/** Deepest value that is looked at for an id. */
const MAX_DEPTH = 6

/**
 * Throws `upstream_shape` for an answer in JSON that is not about what was asked for, as an error, a notice or another item: it would
 * replace what is stored. An answer about one item of a list names that item, in whatever member; any other says something.
 */
export function refuseStranger(context: CatalogContext, task: Task, value: unknown): void {
  refuseError(task, value)
  const id = idAsked(task)
  if (id !== null && !names(value, id.toLowerCase())) throw stranger(task, `it does not name ${id.slice(0, 80)}`)
  if (id === null && !saysAnything(value, task.surface === 'catalog')) throw stranger(task, 'it says nothing')
  if (matchPath(RELEASES.versions, task.canonical) === null || releasesIn(value).length > 0) return
  const stored = releasesIn(readAnswer(context, task.canonical)).length
  if (stored > 0) throw stranger(task, `it names no version of a package that had ${stored}`)
}

/** Returns the id of the listed item that an answer is about; null: it is of no list, or of the package catalog. */
function idAsked({ resource, canonical }: Task): string | null {
  const item = RESOURCES.find(({ name }) => name === resource)?.item ?? null
  return (item === null ? null : matchPath(item, canonical)?.['id']) ?? null
}

function names(value: unknown, id: string, depth = 0): boolean {
  if (typeof value === 'string' || typeof value === 'number') return String(value).toWellFormed().toLowerCase() === id
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return Object.values(value).some((inner) => names(inner, id, depth + 1))
}

function stranger({ path }: Task, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: upstream answered 200 with something else: ${why}`)
}
