import {
  type Column,
  type Table,
  type Tone,
  type Value,
  NONE,
  codeValue,
  digestValue,
  linkValue,
  textValue,
  timeValue,
} from './answers/answer.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import { readText, resolveField } from '../../base/json/field-names.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import type { Fields } from '../../base/json/objects.ts'
import { clip, counted } from '../../base/text.ts'
import type { ListPage } from './reads/list-page.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'

/*
 * Makes tables of the lists of the catalog: patches and tags.
 */

/** Longest text that a page leads to by its address, characters. */
const MAX_LINK = 500

/** A page of a list, without what only an answer in JSON needs. */
type Listed = Pick<ListPage, 'items' | 'next' | 'total' | 'incomplete'>

const PATCH_COLUMNS: readonly Column[] = [
  { name: 'CVE' },
  { name: 'source package', isPhrase: true },
  { name: 'ecosystem', isPhrase: true },
  { name: 'severity' },
  { name: 'ticket' },
  { name: 'patch', isDetail: true },
  { name: 'updated', isDetail: true },
]

/** Returns the table of a page of `/v1/patches`. */
export function patchesTable(page: Listed): Table {
  return listTable('patches', page, {
    columns: PATCH_COLUMNS,
    rows: page.items.map((item) => patchRow(fieldsOfItem(item, 'patches'))),
    words: (total) => `${counted(total, 'fits', 'fit')} this filter`,
  })
}

const SEVERITY_TONES: ReadonlyMap<unknown, Tone> = new Map([
  ['critical', 'bad'],
  ['high', 'warn'],
])

function patchRow(item: Fields): (Value | Value[])[] {
  const of = (name: string): unknown => fieldOf(item, name)
  const cve = of('cve_id')
  const severity = textValue(of('severity'))
  const tone = SEVERITY_TONES.get(of('severity')) ?? 'plain'
  const version = textValue(of('version'))
  return [
    typeof cve === 'string' ? codeValue(cve, { kind: 'vulnerability', name: cve.slice(0, MAX_LINK) }) : textValue(cve),
    [textValue(of('package_src_name')), version.kind === 'text' ? { ...version, isCode: true } : version],
    [textValue(of('ecosystem')), textValue(of('os_distro_major'))],
    severity.kind === 'text' ? { ...severity, tone } : severity,
    textValue(of('ticket_status')),
    textValue(of('patch_status')),
    dateOf(of('updated_at')),
  ]
}

/** Returns a field of an item, in any spelling of its name. */
function fieldOf(item: Fields, field: string): unknown {
  const [name] = resolveField(field, Object.keys(item))
  return name === undefined ? undefined : item[name]
}

/** Returns the table of a page of tags. `repository`: what they are listed under, for those that name none. */
export function tagsTable(page: Listed, repository?: string, isIdShown = false): Table {
  const id: Column = { name: 'id', ...(!isIdShown && { isDetail: true }) }
  return listTable('tags', page, {
    columns: [{ name: 'tag' }, { name: 'digest' }, { name: 'updated' }, id],
    rows: page.items.map((item) => tagRow(item, repository)),
    words: (total) => counted(total, 'tag'),
  })
}

function tagRow(item: Fields, listedUnder?: string): Value[] {
  const id = listedId(item)
  const { repository, tag, digest } = namesOfTag({ ...item })
  const of = repository ?? (listedUnder === undefined ? null : clip(listedUnder, 60))
  const name = [of, tag].filter((part) => part !== null).join(':') || id
  return [
    id !== '' && id.length <= MAX_LINK ? linkValue(name, { kind: 'tag', name: id }) : textValue(name),
    digest === null ? NONE : digestValue(digest),
    dateOf(changedAt(item, 'tags')),
    codeValue(id),
  ]
}

/** What is special to a list. */
interface ListParts extends Pick<Table, 'columns' | 'rows'> {
  /** Says how many there are. */
  readonly words: (total: number) => string
}

function listTable(name: string, { next, total, incomplete }: Listed, { words, ...parts }: ListParts): Table {
  return {
    kind: 'table',
    title: name,
    ...parts,
    total,
    about: total === null ? [] : [words(total)],
    ...(next !== null && { next }),
    ...(incomplete !== null && { incomplete }),
    empty: incomplete === null ? `no ${name}: the service's list has none that fit` : `no ${name} are stored that fit`,
  }
}

/** Returns a tag's own id; '' where it has none. */
function listedId(item: Fields): string {
  const ids = RESOURCES.find(({ name }) => name === 'tags')?.ids ?? []
  return readText(fieldsOfItem(item, 'tags'), ids) ?? ''
}

/** Fields that have the date of a change, in any spelling. */
const CHANGED = ['updated_at', 'created_at', 'pushed_at', 'last_updated']

/** Returns when an item was changed or made, as the service writes it; '' where it does not say so. */
export function changedAt(item: Fields, resource: 'images' | 'tags'): string {
  return readText(fieldsOfItem(item, resource), CHANGED) ?? ''
}

/** Returns a date as the service writes it; a terminal shows its day. */
function dateOf(value: unknown): Value {
  return typeof value === 'string' && value.length <= 60 && value !== ''
    ? { ...timeValue(value), isDay: true }
    : textValue(value)
}
