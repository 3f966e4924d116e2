import { MirrorError } from '../errors.ts'
import { canonicalPath, pathForm, isAddressable } from '../paths.ts'
import { faultOfRecordId } from '../record-id.ts'
import { RELEASES, RESOURCES, ownsResource } from '../resources.ts'
import { splitEntryKey } from '../store/carried-catalog.ts'
import type { RowKind, RowValue } from '../store/carried-rows.ts'
import type { SourceName } from '../store/runs.ts'

const INDEX = '/external/osv/all.json'
/** As the setting for further feeds has it. */
const FEED = /^\/external(?:\/[\w~-][\w.~-]*)+$/
const OSV = /^\/external\/osv(?:\/|$)/

/** The list of users at any version of the identity surface. */
const VERSIONED = /^\/v\d+(?:-[a-z]+)?\/users$/

/** The forms of the paths that belong to a resource. */
interface Forms {
  lists: RegExp[]
  answers: RegExp[]
  /** What an item is called that answers belong to. */
  owner: string
}

const FORMS = new Map<string, Forms>([
  ['releases', { lists: [], answers: Object.values(RELEASES).map(pathForm), owner: 'packages/' }],
  ...RESOURCES.map(({ name, surface, list, sublist, item, artifacts }): [string, Forms] => {
    const lists = [list, sublist].flatMap((one) => (one === null ? [] : [pathForm(one.path)]))
    if (surface === 'identity') lists.push(VERSIONED) // under the version that it was mirrored at
    const items = item === null ? [] : [item]
    const answers = [...items, ...artifacts.map(({ path }) => path)].map(pathForm)
    return [name, { lists, answers, owner: `${name}/` }]
  }),
])

/** Throws `bundle` for a row that is not its source's: it would stand in the way of another source, or of nobody's. */
export function refuseForeign(
  source: SourceName,
  kind: RowKind,
  value: RowValue,
  place: string,
): void {
  if (isOwn(source, kind, value)) return
  throw new MirrorError('bundle', `${place} is no row that ${source} has: ${value.key}`)
}

function isOwn(source: SourceName, kind: RowKind, value: RowValue): boolean {
  const { key } = value
  if (kind === 'source') return key === source
  if (kind === 'document')
    return source === 'osv' ? key === INDEX : FEED.test(key) && !OSV.test(key)
  if (kind === 'osv-record' || kind === 'osv-tombstone') return faultOfRecordId(key) === null
  if (kind === 'catalog-entry') return isPath(splitEntryKey(key)[0])
  if (!('resource' in value)) return true
  const { resource } = value
  const forms = ownsResource(source, resource) ? FORMS.get(resource) : undefined
  if (forms === undefined || !isPath(key)) return false
  if ('owner' in value && !value.owner.startsWith(forms.owner)) return false
  const lists = kind === 'catalog-answer' ? [] : forms.lists
  const answers = kind === 'catalog-list' ? [] : forms.answers
  return [...lists, ...answers].some((form) => form.test(key))
}

function isPath(path: string): boolean {
  return canonicalPath(path) === path && isAddressable(path)
}
