import { MirrorError } from '../../../../base/errors.ts'
import { clip, counted } from '../../../../base/text.ts'
import { requestedPath } from '../../../../server/catalog/not-found.ts'
import { canonicalPath } from '../../../../base/domain/path-templates.ts'
import type { Fields } from '../../../../base/json/objects.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, code, link, plain } from '../../../../answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../../page.ts'
import { readListPage } from '../list-page.ts'
import { nameOfTag, repositoryOfImage } from '../../../../server/lookup/tag-names.ts'
import { changedCell, digestOfTag, listedId } from './items.ts'

const LIST = '/v1/images/'
const TAGS_OF_IMAGE = '/v1/images/{repo}/tags'
const ALL_TAGS = '/v1/tags/'
const NONE = new URLSearchParams()
const SCOPE = 'The tags of an image are stored where it is in scope (catalog.scope, catalog.include, catalog.exclude).'

/** Loads the page of all images of the catalog. */
export function loadImageList(call: PageCall): PageView {
  const { query, ui } = call
  const after = parameter(query, 'after')
  const { items, next, total } = readListPage(call, LIST, {}, NONE, after)
  const table: Block = {
    kind: 'table',
    title: 'Images of the catalog',
    note: `${total === null ? '' : `${counted(total, 'image')}. `}${SCOPE}`,
    columns: ['Image', 'Changed', 'Id'],
    rows: items.map((item) => imageRow(call, item)),
    empty: 'The catalog has no image.',
    first: after === '' ? null : ui('images'),
    next: next === null ? null : ui('images', { after: next }),
  }
  const all: Block = {
    kind: 'facts',
    rows: [['tags', link('all tags of all images', ui('tags'))]],
  }
  return { title: 'Images', blocks: [all, table] }
}

/** Returns the cells of a listed image; of one whose tags are not stored, because it is out of scope, without a link. */
function imageRow({ ui, now, reads }: PageCall, item: Fields): Cell[] {
  const id = listedId(item, 'images')
  const repo = repositoryOfImage(item)
  const isLinked = repo !== null && id !== '' && id.length <= 500
  const isStored = isLinked && reads.catalog.readList(requestedPath(TAGS_OF_IMAGE, { repo })) !== null
  const name = isStored
    ? link(repo, ui('tags', { image: id }))
    : { ...plain(repo ?? id), note: 'its tags are not stored' }
  return [name, changedCell(item, now, 'images'), code(id)]
}

/** Loads the page of the tags of one image, or of all images. */
export function loadTagList(call: PageCall): PageView {
  const { query, ui, root } = call
  const image = parameter(query, 'image')
  const after = parameter(query, 'after')
  const repo = image === '' ? null : repositoryOf(call, image)
  const [path, params] = repo === null ? ([ALL_TAGS, {}] as const) : ([TAGS_OF_IMAGE, { repo }] as const)
  const { items, next, total } = readListPage(call, path, params, NONE, after)
  const raw = repo === null ? '/v1/tags/' : `/v1/images/${pathOf(repo)}/tags`
  const table: Block = {
    kind: 'table',
    title: repo === null ? 'Tags of all images' : clip(`Tags of ${repo}`),
    ...(total !== null && { note: `${counted(total, 'tag')}.` }),
    columns: ['Tag', 'Digest', 'Changed', 'Id'],
    rows: items.map((item) => tagRow(call, item)),
    empty: 'There is no tag.',
    first: after === '' ? null : ui('tags', { image }),
    next: next === null ? null : ui('tags', { image, after: next }),
  }
  const from: Block = {
    kind: 'facts',
    rows: [
      ['images', link('all images', ui('images'))],
      ['as JSON', code(clip(raw), root(raw))],
    ],
  }
  return { title: repo ?? 'Tags', blocks: [from, table] }
}

function pathOf(repo: string): string {
  return repo.toWellFormed().split('/').map(encodeURIComponent).join('/')
}

/** Returns the repository of a listed image. Throws `not_found` for an id that is not listed. */
function repositoryOf({ reads }: PageCall, id: string): string {
  const list = reads.catalog.readList(canonicalPath(LIST) ?? '')
  const entry = list === null ? null : reads.catalog.readEntry(list.id, id)
  if (entry === null) throw new MirrorError('not_found', `the list of images has no ${clip(id)}`)
  const repo = repositoryOfImage(JSON.parse(entry.body.toString('utf8')) as Fields)
  if (repo !== null) return repo
  throw new MirrorError('not_found', `the image ${clip(id)} names no repository`)
}

/** Returns the cells of a listed tag. */
function tagRow({ ui, now }: PageCall, item: Fields): Cell[] {
  const id = listedId(item, 'tags')
  const name = nameOfTag(item)
  const shown = name === '' ? id : name
  const short = id !== '' && id.length <= 500
  const digest = digestOfTag(item)
  return [
    short ? link(shown, ui('tag', { id })) : plain(name),
    digest === null ? plain(null) : code(digest),
    changedCell(item, now, 'tags'),
    code(id),
  ]
}
