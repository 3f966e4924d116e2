import { MirrorError } from '../../../../base/errors.ts'
import { canonicalPath } from '../../../../base/domain/path-templates.ts'
import type { Fields } from '../../../../base/json/objects.ts'
import { clip, counted } from '../../../../base/text.ts'
import { plainRepository } from '../../../../base/domain/image-reference.ts'
import { type Cell, count, digest, link, plain, state, time } from '../../../lookup/answers/cells.ts'
import { repositoryOfImage } from '../../../lookup/reads/tag-names.ts'
import type { TagFindings } from '../../../../store/findings/reads.ts'
import type { Block, FormField } from '../../blocks.ts'
import { type PageCall, type PageView, choiceOf, numberOf, parameter } from '../../page.ts'
import { asSentence } from '../../../lookup/answers/html.ts'
import { createWhySbomOld } from '../../../../documents/sboms/mirrored.ts'
import { gapWords, tagGaps } from '../../../../store/findings/words.ts'
import { createWhyNotJudged } from '../../../lookup/tag.ts'
import { readTagFindings } from '../tags/log.ts'
import { requireList } from '../list-page.ts'
import { openCarried } from './carried.ts'
import { type ImageRow, readImageRows } from './rows.ts'
import { compareText } from '../../../../base/versions/order.ts'

/** Tags on a page. */
const PAGE = 100
/** Tags that a download takes at once: all are filtered and ordered for each page. */
const DOWNLOADED = 10_000

/** Loads the page of all images: each of their tags with what records say about it. */
export function loadImages(call: PageCall): PageView {
  requireList(call, '/v1/images/')
  const { query, ui } = call
  const asked = { q: parameter(query, 'q'), image: parameter(query, 'image'), sort: choiceOf(query, 'sort', SORTS) }
  const at = numberOf(query, 'at') ?? 0
  const most = call.isDownload ? DOWNLOADED : PAGE
  const { rows, unknown, incomplete } = readImageRows(call)
  const repository = asked.image === '' ? null : repositoryOf(call, asked.image, rows)
  const ofImage = repository === null ? rows : rows.filter(({ image }) => image === repository)
  const fitting = ofImage.filter((row) => fits(row, asked.q)).sort(ORDERS[asked.sort || 'fix'])
  const isCarried = openCarried(call)
  const known = unknown === null ? openKnown(call) : null
  const pageAt = (next: number): string => ui('images', { ...asked, at: next === 0 ? null : next })
  const table: Block = {
    kind: 'table',
    title: 'Tags',
    note: noteOf(fitting, ofImage.length, incomplete),
    ...(incomplete !== null && { incomplete }),
    columns: [
      'Image',
      'Tag',
      'With a fix',
      'Critical',
      'High',
      'Findings',
      'Changed',
      'Digest',
      ...(isCarried === null ? [] : ['Registry']),
    ],
    rows: fitting
      .slice(at, at + most)
      .map((row) => [...cellsOf(call, row, known), ...(isCarried === null ? [] : [isCarried(row)])]),
    empty: emptyOf(rows.length === 0, incomplete !== null),
    first: at === 0 ? null : pageAt(0),
    next: at + most < fitting.length ? pageAt(at + most) : null,
  }
  const notKnown: Block[] = unknown === null ? [] : [unknownNotice(unknown)]
  return { title: repository ?? 'Images', blocks: [formOf(call, asked), ...notKnown, linksOf(call, repository), table] }
}

const SORTS = ['fix', 'critical', 'high', 'findings', 'changed', 'name'] as const
type Sort = (typeof SORTS)[number]

const SORT_LABELS: Readonly<Record<Sort, string>> = {
  fix: 'most with a fix',
  critical: 'most critical',
  high: 'most high',
  findings: 'most findings',
  changed: 'changed last',
  name: 'name',
}

type Order = (one: ImageRow, other: ImageRow) => number

const byName: Order = (one, other) => compareText(nameOf(one), nameOf(other))

const ORDERS: Readonly<Record<Sort, Order>> = {
  fix: byCount('fixable'),
  critical: byCount('critical'),
  high: byCount('high'),
  findings: byCount('findings'),
  changed: (one, other) => timeOf(other) - timeOf(one) || byName(one, other),
  name: byName,
}

/** Most first; what is not judged comes last, since nothing is known of it. */
function byCount(name: 'fixable' | 'critical' | 'high' | 'findings'): Order {
  const of = (row: ImageRow): number => judged(row)?.[name] ?? -1
  return (one, other) => of(other) - of(one) || byName(one, other)
}

function timeOf({ changed }: ImageRow): number {
  return Date.parse(changed) || 0
}

function nameOf({ image, tag }: ImageRow): string {
  return tag === null ? image : `${image}:${tag.name}`
}

/** Returns what records say about a tag; null where its SBOM is not judged. */
function judged({ findings }: ImageRow): TagFindings | null {
  return findings === null || findings.refusal !== null ? null : findings
}

function fits(row: ImageRow, wanted: string): boolean {
  const text = wanted.toLowerCase()
  return text === '' || [nameOf(row), row.digest ?? ''].some((one) => one.toLowerCase().includes(text))
}

/** What is said where no row is shown. */
function emptyOf(isAll: boolean, isIncomplete: boolean): string {
  if (isIncomplete) return isAll ? 'No image is stored of the lists of the service.' : 'No stored tag fits this filter.'
  return isAll ? 'The lists of the service name no image.' : 'No tag fits this filter.'
}

function noteOf(fitting: readonly ImageRow[], all: number, incomplete: string | null): string {
  const tags = fitting.filter(({ tag }) => tag !== null)
  const known = tags.filter((row) => judged(row) !== null).length
  const among = fitting.length < all ? ' that fit' : ''
  const cut = incomplete === null ? '' : ` ${asSentence(incomplete)}`
  return `${counted(tags.length, 'tag')}${among}, ${known} judged. What VEX rules out does not count.${cut}`
}

/** What is known of tags beside their findings, and why one is not judged; null where no findings are known. */
type Known = ReturnType<typeof openKnown> | null

function openKnown(call: PageCall) {
  const withoutVex = readTagFindings(call, (found) => found.listTagsWithoutVex()) ?? []
  return { withoutVex, whySbomOld: createWhySbomOld(call.reads), whyNotJudged: createWhyNotJudged(call) }
}

function cellsOf(call: PageCall, row: ImageRow, known: Known): (Cell | Cell[])[] {
  const { image, tag, digest: of, changed } = row
  const when = changed === '' ? plain(null) : time(changed.slice(0, 60), call.now)
  const named = image === '' || image.length > 500 ? plain(image) : link(image, call.ui('images', { image }))
  const none = plain(null)
  if (tag === null) return [named, { ...none, note: 'its tags are not stored' }, none, none, none, none, when, none]
  return [
    named,
    tag.id.length <= 500 ? link(tag.name, call.ui('tag', { id: tag.id })) : plain(tag.name),
    ...countCells(call, row, known),
    when,
    of === null ? none : digest(of),
  ]
}

/** With a fix, critical, high and all findings of a tag: numbers only where its SBOM is judged. */
function countCells({ ui }: PageCall, row: ImageRow, known: Known): Cell[] {
  const found = judged(row)
  const none = plain(null)
  if (found !== null) {
    const parts = found.notJudged === 0 ? [] : [`${counted(found.notJudged, 'package')} not judged`]
    const notes = [...parts, ...(known === null ? [] : gapWords(tagGaps(found, known)))]
    const part = notes.length === 0 ? {} : { note: clip(notes.join('; '), 200) }
    const list = found.owner.length <= 500 ? { href: ui('tag-findings', { id: found.owner }) } : {}
    return [
      count(found.fixable),
      count(found.critical),
      count(found.high),
      { ...count(found.findings), ...list, ...part },
    ]
  }
  if (known === null) return [none, none, none, none]
  const { owner = '', refusal = null } = row.findings ?? {}
  const why = refusal === null ? null : known.whyNotJudged(owner, refusal)
  return [none, none, none, { ...state('not judged', 'warn'), ...(why !== null && { note: clip(why, 100) }) }]
}

function formOf({ ui }: PageCall, asked: { q: string; image: string; sort: string }): Block {
  const options = SORTS.map((value) => ({ value, label: SORT_LABELS[value] }))
  const fields: FormField[] = [
    { name: 'q', label: 'Image, tag or digest contains', value: asked.q, hint: 'nginx:1.27' },
    { name: 'sort', label: 'Order', value: asked.sort || 'fix', options },
  ]
  const hidden: [string, string][] = asked.image === '' ? [] : [['image', asked.image]]
  return { kind: 'form', label: 'Filter of tags', action: ui('images'), fields, button: 'Show', hidden }
}

function linksOf({ ui }: PageCall, repository: string | null): Block {
  const all: [string, Cell][] = repository === null ? [] : [['images', link('all images', ui('images'))]]
  return { kind: 'facts', rows: [...all, ['findings', link('what changed in them', ui('tag-changes'))]] }
}

function unknownNotice(text: string): Block {
  return { kind: 'notice', tone: 'warn', title: 'Findings are not shown', text: asSentence(text) }
}

/** Returns the repository that a text names, or that of a listed image with this id. Throws `not_found`. */
function repositoryOf({ reads }: PageCall, named: string, rows: readonly ImageRow[]): string {
  if (rows.some(({ image }) => image === named)) return named
  const list = reads.catalog.readList(canonicalPath('/v1/images/') ?? '')
  const entry = list === null ? null : reads.catalog.readEntry(list.id, named)
  if (entry === null) throw new MirrorError('not_found', `the list of images has no ${clip(named)}`)
  const repository = repositoryOfImage(JSON.parse(entry.body.toString('utf8')) as Fields)
  if (repository !== null) return plainRepository(repository)
  throw new MirrorError('not_found', `the image ${clip(named)} names no repository`)
}
