import { isObject } from '../../base/json/objects.ts'
import { type EventTarget, namesOf } from '../../base/domain/image-reference.ts'
import { bareName } from '../../base/json/field-names.ts'

/** One component of a repository's name, as registries allow them. */
const PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const HOST = '(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\\d{1,5})?/)?'
const REPOSITORY = new RegExp(`^(?=.{1,255}$)${HOST}${PART}(?:/${PART})*$`)
const TAG = /^\w[\w.-]{0,127}$/
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/
const ARCH = /^(?=.{1,32}$)[a-z0-9]+(?:[/_.-][a-z0-9]+)*$/
/** `<registry>/<repository>:<tag>`, the registry with or without a port, the tag with or without a digest behind it. */
const REFERENCE = new RegExp(
  `^(?=.{1,512}$)${HOST}${PART}(?:/${PART})*(?::\\w[\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
)
/** Form of an id in a field where a tag's name could be. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The parts of a reference, and names of fields that contain them: the last name of the path, or the last two joined. */
const FIELDS: Readonly<Record<'repository' | 'tag' | 'digest' | 'arch' | 'reference', string>> = {
  repository:
    'imagerepo imagerepository imagename image repo reponame repofullname repository repositoryname repositoryfullname',
  tag: 'imagetag tag tagname',
  digest: 'imagedigest digest tagdigest manifestdigest',
  arch: 'arch architecture imagearch imagearchitecture',
  reference: 'imageref imagereference imageuri imageurl reference ref artifact target resource resourceurl',
}
type FieldKind = keyof typeof FIELDS
const KINDS = new Map(
  Object.entries(FIELDS).flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind as FieldKind] as const)),
)
/** The contract's own names: an invalid value under one of them invalidates the target. */
const DOCUMENTED = new Set(['image_repo', 'image_tag', 'image_digest', 'arch'])

/** Bounds on what is looked at of one body, and on what it may name; a refresh looks for what changed besides. */
const MAX_DEPTH = 6
const MAX_NODES = 5_000
const MAX_TARGETS = 100

type Part = 'repository' | 'tag' | 'digest' | 'arch'
interface Parts extends Readonly<Record<Part, string | null>> {
  /** A whole reference in one field; of the fields, only the first counts. */
  readonly reference: string | null
  readonly subject: string | null
}

const NOTHING: Parts = {
  repository: null,
  tag: null,
  digest: null,
  arch: null,
  reference: null,
  subject: null,
}

interface Scan {
  nodes: number
  readonly targets: Map<string, EventTarget>
}

/**
 * Returns the images that an event names (wire facts, webhook deliveries), in any envelope: the reference in one field or in
 * several, in the event or in a list within it. Values that do not match the pattern of their part are skipped, and one
 * under the contract's own names invalidates its target. Empty when no usable image is named.
 */
export function imagesIn(event: unknown): EventTarget[] {
  const scan: Scan = { nodes: 0, targets: new Map() }
  if (isObject(event)) collect(event, NOTHING, 0, scan)
  return [...scan.targets.values()]
}

/** Adds what an object names, or what the objects in its lists name; returns whether it added any. */
function collect(object: Readonly<Record<string, unknown>>, inherited: Parts, depth: number, scan: Scan): boolean {
  const found = { parts: new Map<string, string>(), lists: [] as object[], spoiled: false }
  flatten(object, '', depth, scan, found)
  if (found.spoiled) return false
  const own = partsOf(object, found.parts, inherited)
  if (own === null) return false
  const direct = targetOf({ ...own, subject: null })
  if (direct !== null && (direct.tag ?? direct.digest) !== null)
    return add(scan, { ...direct, subject: own.subject ?? direct.subject })
  const parent = { ...NOTHING, repository: own.repository, arch: own.arch }
  const listed = found.lists.filter((one) => collect(one as Record<string, unknown>, parent, depth + 1, scan))
  if (listed.length > 0) return true
  const target = targetOf(own)
  const isNew = target !== null && (depth === 0 || own.tag !== null || own.reference !== null)
  return isNew && add(scan, target)
}

function add(scan: Scan, target: EventTarget): boolean {
  if (scan.targets.size < MAX_TARGETS) scan.targets.set(JSON.stringify(target), target)
  return true
}

/** What was found in an object and the objects within it, lists apart. */
interface Found {
  /** By part: the first value that fits. */
  readonly parts: Map<string, string>
  readonly lists: object[]
  spoiled: boolean
}

function flatten(
  object: Readonly<Record<string, unknown>>,
  above: string,
  depth: number,
  scan: Scan,
  found: Found,
): void {
  for (const [key, value] of Object.entries(object)) {
    if (++scan.nodes > MAX_NODES || depth > MAX_DEPTH) return
    const name = bareName(key)
    const kind = KINDS.get(name) ?? KINDS.get(above + name)
    if (DOCUMENTED.has(key) && !isFitting(kind, value)) found.spoiled = true
    else if (Array.isArray(value)) found.lists.push(...objectsOf(key, value as unknown[]))
    else if (isObject(value)) flatten(value, name, depth + 1, scan, found)
    else if (kind !== undefined && typeof value === 'string') note(kind, value, found)
  }
}

/** The objects of a list; texts become objects with the list's name in the singular: `tags: ["3.12"]`. */
function objectsOf(key: string, list: readonly unknown[]): object[] {
  const name = key.replace(/s$/i, '')
  return list.flatMap((one): object[] => {
    if (isObject(one)) return [one]
    return typeof one === 'string' && KINDS.has(bareName(name)) ? [{ [name]: one }] : []
  })
}

/** Stores a value as the part that its form shows: a field called tag may contain a whole reference. */
function note(kind: FieldKind, value: string, { parts }: Found): void {
  const text = value.replace(/^(?:oci|docker):\/\//, '')
  const put = (part: string, one: string): void => {
    const known = parts.get(part)
    // Of a repository that is named twice, the name with its namespace counts.
    if (known === undefined || one.endsWith(`/${known}`)) parts.set(part, one)
  }
  if (kind === 'tag' && UUID.test(text)) return
  if (kind === 'digest' && /^[0-9a-f]{64}$/.test(text)) put('digest', `sha256:${text}`)
  else if (kind !== 'reference' && FITS[kind].test(text)) put(kind, text)
  else if (kind !== 'arch' && kind !== 'digest' && isReference(text)) put('reference', text)
}

const FITS: Readonly<Record<Part, RegExp>> = {
  repository: REPOSITORY,
  tag: TAG,
  digest: DIGEST,
  arch: ARCH,
}

function isFitting(kind: FieldKind | undefined, value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (kind === undefined || kind === 'reference' || typeof value !== 'string') return false
  const isName = kind === 'repository' || kind === 'tag'
  return FITS[kind].test(value) || (isName && isReference(value))
}

function isReference(text: string): boolean {
  return REFERENCE.test(text) && !DIGEST.test(text) && /[:@]/.test(text.slice(text.lastIndexOf('/') + 1))
}

/** Puts an object's parts together; null when its subject is no reference. */
function partsOf(
  { subject = null }: Readonly<Record<string, unknown>>,
  parts: ReadonlyMap<string, string>,
  inherited: Parts,
): Parts | null {
  if (subject !== null && (typeof subject !== 'string' || !REFERENCE.test(subject))) return null
  const own = (part: keyof Parts): string | null => parts.get(part) ?? inherited[part]
  const repository = own('repository')
  const tag = own('tag')
  const digest = own('digest')
  return { repository, tag, digest, arch: own('arch'), reference: own('reference'), subject }
}

/** The target of an object's parts; parts without a field are read from the whole reference. Null without a repository. */
function targetOf({ reference, ...parts }: Parts): EventTarget | null {
  const subject = reference ?? parts.subject
  const named = namesOf({ ...parts, subject })
  const repository = parts.repository ?? named.repository
  if (repository === null) return null
  const { tag, digest } = parts.repository === null ? named : parts
  return { repository, tag, digest, arch: parts.arch, subject }
}
