import { MirrorError } from '../../../../base/errors.ts'
import { clip } from '../../../../base/text.ts'
import { requestedPath } from '../../../../server/catalog/not-found.ts'
import { canonicalPath } from '../../../../base/domain/path-templates.ts'
import type { Fields } from '../../../../base/json/objects.ts'
import type { Block } from '../../blocks.ts'
import { code, link } from '../../../../answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../../page.ts'
import { readListPage } from '../list-page.ts'
import { repositoryOfImage } from '../../../../server/lookup/tag-names.ts'
import { imagesTable, tagsTable } from '../../../lookup/list-answers.ts'
import { listBlocks } from '../../links.ts'

const LIST = '/v1/images/'
const TAGS_OF_IMAGE = '/v1/images/{repo}/tags'
const ALL_TAGS = '/v1/tags/'
const NONE = new URLSearchParams()

/** Loads the page of all images of the catalog. */
export function loadImageList(call: PageCall): PageView {
  const { query, ui } = call
  const after = parameter(query, 'after')
  const page = readListPage(call, LIST, {}, NONE, after)
  const isStored = (repo: string): boolean =>
    call.reads.catalog.readList(requestedPath(TAGS_OF_IMAGE, { repo })) !== null
  const table = listBlocks(call, 'images', { ...imagesTable(page, isStored), title: 'images of the catalog' }, {})
  const all: Block = {
    kind: 'facts',
    rows: [['tags', link('all tags of all images', ui('tags'))]],
  }
  return { title: 'Images', blocks: [all, ...table] }
}

/** Loads the page of the tags of one image, or of all images. */
export function loadTagList(call: PageCall): PageView {
  const { query, ui, root } = call
  const image = parameter(query, 'image')
  const after = parameter(query, 'after')
  const repo = image === '' ? null : repositoryOf(call, image)
  const [path, params] = repo === null ? ([ALL_TAGS, {}] as const) : ([TAGS_OF_IMAGE, { repo }] as const)
  const page = readListPage(call, path, params, NONE, after)
  const raw = repo === null ? '/v1/tags/' : `/v1/images/${pathOf(repo)}/tags`
  const title = repo === null ? 'Tags of all images' : clip(`Tags of ${repo}`)
  const table = listBlocks(call, 'tags', { ...tagsTable(page, repo ?? undefined), title }, { image })
  const from: Block = {
    kind: 'facts',
    rows: [
      ['images', link('all images', ui('images'))],
      ['as JSON', code(clip(raw), root(raw))],
    ],
  }
  return { title: repo ?? 'Tags', blocks: [from, ...table] }
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
