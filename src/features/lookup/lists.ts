import type { Table } from './answers/answer.ts'
import { terminalLines } from './answers/terminal.ts'
import { type ListPage, parseListPage } from './reads/list-page.ts'
import { MirrorError } from '../../base/errors.ts'
import { canonicalPath, fillPath } from '../../base/domain/path-templates.ts'
import { readText } from '../../base/json/field-names.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { IMAGE_NAME_FIELDS } from '../../base/json/forms/listed-names.ts'
import { type Fields, fieldsOf } from '../../base/json/objects.ts'
import { findTags, referenceOfPurl } from '../../server/lookup/named.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { upstreamJson } from '../../cli/context.ts'
import { patchesTable, tagsTable } from './list-answers.ts'
import { type LookupOptions } from './open.ts'
import { filterName } from './filters.ts'
import { type LookupResult, type LookupCall, limitOf, runLookup } from './snapshot.ts'
import { PATCHES } from '../../base/domain/resources.ts'

/** Options of commands that show a list page by page. */
interface ListOptions extends LookupOptions {
  after?: string
  order?: string
}

const LIMIT = 50
const TAGS = '/v1/tags/'
const TAGS_OF = '/v1/images/{repo}/tags'
const IMAGES = '/v1/images/'

/** `patchmirror list tags [IMAGE]`: the tags of all images, or of one, by its repository or id. */
export function tagsCommand(image: string | undefined, options: ListOptions): Promise<number> {
  return runLookup(options, (stored) => {
    const page =
      image === undefined
        ? read(stored, TAGS, {}, queryOf(options))
        : read(stored, TAGS_OF, { repo: repositoryOf(stored, image) }, queryOf(options))
    return listed('tags', page, tagsTable(page, image))
  })
}

/** Returns the repository of an image that is named by its id, or by its repository as the search takes it: with a host, or as a purl. */
function repositoryOf({ reads }: LookupCall, image: string): string {
  const list = reads.catalog.readList(canonicalPath(IMAGES) ?? '')
  const entry = list === null ? null : reads.catalog.readEntry(list.id, image)
  if (entry === null) return repositoryNamed(reads, referenceOfPurl(image) ?? image)
  const item = JSON.parse(entry.body.toString('utf8')) as Fields
  return readText(fieldsOfItem(item, 'images'), IMAGE_NAME_FIELDS) ?? image
}

/** Returns the one repository of the tags that a text names, where it is the end of it; else the text. */
function repositoryNamed({ catalog }: LookupCall['reads'], text: string): string {
  const tags = findTags(catalog, text).map(({ body }) => namesOfTag({ ...fieldsOf(JSON.parse(body.toString('utf8'))) }))
  const repositories = new Set(tags.flatMap(({ repository }) => repository ?? []))
  const [named, ...others] = [...repositories].filter((one) => text.endsWith(`/${one}`))
  return named === undefined || others.length > 0 ? text : named
}

/** `patchmirror list patches`: the list of `/v1/patches` with its filters. */
export function patchesCommand(options: ListOptions & Record<string, unknown>): Promise<number> {
  return runLookup(options, (stored) => {
    const query = queryOf(options)
    for (const { param } of PATCHES.facets) {
      const value = param === null ? undefined : options[filterName(param)]
      if (param !== null && typeof value === 'string') query.set(param, value)
    }
    const page = read(stored, PATCHES.path, {}, query)
    return listed('patches', page, patchesTable(page))
  })
}

function queryOf({ limit, after, order }: ListOptions): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limitOf(limit, LIMIT)) })
  if (after !== undefined) query.set('after', after)
  if (order !== undefined) query.set('order', order)
  return query
}

/** Reads a page as the API gives it. Throws `not_found` for what no list names, `not_ready` for what is not mirrored. */
function read(
  stored: LookupCall,
  path: string,
  params: Readonly<Record<string, string>>,
  query: URLSearchParams,
): ListPage {
  const missing = stored.use('catalog')
  const reply = namingOptions(query, () => stored.readApi(path, params, query))
  if ('problem' in reply) {
    const { error, message } = reply.problem
    const isAbsent = error === 'not_mirrored' || error === 'not_found'
    throw new MirrorError(
      isAbsent ? 'not_found' : 'not_ready',
      isAbsent ? `not found: ${message}` : `not mirrored: ${message}`,
    )
  }
  if (missing !== null) throw missing
  return parseListPage(stored.reads, fillPath(path, params), reply)
}

/** Does it; where the list refuses a parameter of the query, the error names the option that gave it. */
function namingOptions<T>(query: URLSearchParams, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'bad_request') throw error
    const { message } = error
    const param = [...query.keys()].find((name) => message.startsWith(`${name}=…`) || message.startsWith(`${name}:`))
    if (param === undefined) throw error
    const what = message.slice(param.length).replace(/^=…/, '')
    throw new MirrorError('bad_request', `--${filterName(param)}${what}`, { cause: error })
  }
}

function listed(name: string, { texts, next, total, incomplete }: ListPage, table: Table): LookupResult {
  return {
    json: { [name]: texts().map(upstreamJson), total, next, incomplete },
    lines: terminalLines({ parts: [table] }),
    table,
  }
}
