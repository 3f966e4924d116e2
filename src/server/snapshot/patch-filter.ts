import type { Steps } from '../../base/pacing.ts'
import { MirrorError } from '../../base/errors.ts'
import { type Slice, elementsInSteps, membersInSteps, membersOf, sliceText } from '../../base/json/slices.ts'
import { type Piece, joinInSteps, STEP } from './steps.ts'
import { onlyValue } from '../http/request-target.ts'
import { ECOSYSTEMS } from '../../base/domain/resources.ts'

/** The query parameters of the patch feed's filters (service API, section 4). */
export const FILTER_NAMES = {
  ecosystem: 'ecosystem',
  release: 'os_distro_major',
  packageName: 'package_src_name',
} as const

export type FilterName = keyof typeof FILTER_NAMES

/** What is asked for by each filter; null: it is not given, or empty. */
export type PatchFilter = Readonly<Record<FilterName, string | null>>

/** Reads the filters from a query; null when there are none. Throws `bad_request` for an unknown ecosystem or a filter given twice. */
export function readPatchFilter(query: string): PatchFilter | null {
  const given = new URLSearchParams(query)
  const ecosystem = onlyValue(given, FILTER_NAMES.ecosystem)
  const release = onlyValue(given, FILTER_NAMES.release)
  const packageName = onlyValue(given, FILTER_NAMES.packageName)
  if (ecosystem !== null && !ECOSYSTEMS.includes(ecosystem)) {
    const message = `unknown ecosystem ${JSON.stringify(ecosystem)}: it is one of ${ECOSYSTEMS.join(', ')}`
    throw new MirrorError('bad_request', message)
  }
  return (ecosystem ?? release ?? packageName) === null ? null : { ecosystem, release, packageName }
}

const FILTERS: ReadonlySet<string> = new Set(Object.values(FILTER_NAMES))

/** Names of the query parameters that are no filters of the patch feed (contract, section 4). */
export function otherParameters(query: string): string[] {
  return [...new Set(new URLSearchParams(query).keys())].filter((name) => !FILTERS.has(name))
}

/** Ecosystems, releases and packages in one index: 16 bytes each, and about a second to find a million. */
export const MAX_PARTS = 1_000_000

interface Release {
  readonly name: string | null
  readonly whole: Slice
  /** The list of packages, brackets included; null when there is none. */
  readonly packages: Slice | null
  /** Its packages: rows `firstRow` to `endRow` of the index. */
  readonly firstRow: number
  readonly endRow: number
}

/** Positions of all parts in the feed's text. */
export interface PatchIndex {
  readonly ecosystems: readonly {
    readonly name: string
    readonly key: Slice
    readonly value: Slice
    /** Null: it has no list. */
    readonly releases: readonly Release[] | null
    /** Whether it has the packages of an ecosystem; what has not stays as it is. */
    readonly isEcosystem: boolean
  }[]
  /** A row for each package: its start and end, and those of its name (equal when it has none). */
  readonly rows: Rows
}

/**
 * Reads a feed once: `{ecosystem: [{distroversion, packages: [{pkg: {name}}]}]}` (wire facts, public feeds).
 * Null when it has more than `maxParts` of them; `no tree` when its parts are others. Yields after every few packages.
 */
export function* indexPatchFeed(text: Buffer, maxParts = MAX_PARTS): Steps<PatchIndex | 'no tree' | null> {
  const rows = createRows()
  const ecosystems: PatchIndex['ecosystems'][number][] = []
  let parts = 0
  for (const member of membersInSteps(text, 0)) {
    yield
    if (member === undefined) continue
    const { name, key, value } = member
    if (text[value.start] !== OPEN_LIST) {
      const isEcosystem = ECOSYSTEMS.includes(name.toLowerCase())
      ecosystems.push({ name, key, value, releases: null, isEcosystem })
      continue
    }
    const releases: Release[] = []
    for (const whole of elementsInSteps(text, value.start)) {
      yield
      if (whole === undefined) continue
      const release = yield* indexRelease(text, whole, rows, maxParts)
      parts++
      if (release === null || parts + rows.count() > maxParts) return null
      releases.push(release)
    }
    if (++parts + rows.count() > maxParts) return null
    ecosystems.push({ name, key, value, releases, isEcosystem: true })
  }
  return isTreeOf(text, ecosystems) ? { ecosystems, rows } : 'no tree'
}

function* indexRelease(text: Buffer, whole: Slice, rows: Rows, maxRows: number): Steps<Release | null> {
  let name: string | null = null
  let packages: Slice | null = null
  for (const member of membersInSteps(text, whole.start)) {
    yield
    if (member === undefined) continue
    if (isReleaseName(member.name)) name ??= textAt(text, member.value)
    if (member.name === 'packages' && text[member.value.start] === OPEN_LIST) packages = member.value
  }
  const firstRow = rows.count()
  if (packages !== null) {
    for (const entry of elementsInSteps(text, packages.start)) {
      if (entry === undefined || rows.count() % STEP === 0) yield
      if (entry === undefined) continue
      if (rows.count() >= maxRows) return null
      rows.add(entry, packageName(text, entry))
    }
  }
  return { name, whole, packages, firstRow, endRow: rows.count() }
}

const OPEN_LIST = 0x5b
const OPEN_OBJECT = 0x7b

/** Reports whether it is known of all members what they are: beside ecosystems without lists, another object may be one. */
function isTreeOf(text: Buffer, ecosystems: PatchIndex['ecosystems']): boolean {
  const isKeyed = ecosystems.some((one) => one.isEcosystem && one.releases === null)
  if (!isKeyed) return true
  return ecosystems.every((one) => one.isEcosystem || text[one.value.start] !== OPEN_OBJECT)
}

/** Returns the filters that are asked for, and that no release or no package has a field for. */
export function unnamed({ ecosystems, rows }: PatchIndex, filter: PatchFilter): FilterName[] {
  const releases = ecosystems.flatMap((one) => one.releases ?? [])
  const isKeyed = ecosystems.some((one) => one.isEcosystem && one.releases === null)
  const isNamed = releases.length === 0 || releases.some(({ name }) => name !== null)
  const hasName = (row: number): boolean => rows.name(row).end > rows.name(row).start
  let row = 0
  while (row < rows.count() && !hasName(row)) row++
  const isPackageNamed = rows.count() === 0 || row < rows.count()
  const areListed = releases.every(({ packages }) => packages !== null)
  const lost: FilterName[] = []
  if (filter.release !== null && (isKeyed || !isNamed)) lost.push('release')
  if (filter.packageName !== null && (isKeyed || !areListed || !isPackageNamed)) lost.push('packageName')
  return lost
}

/** The place of a value that is not there. */
export const NOWHERE: Slice = { start: 0, end: 0 }

/** Returns the name of `{"pkg": {"name": …}}` or of `{"name": …}`. */
function packageName(text: Buffer, entry: Slice): Slice {
  let found = NOWHERE
  for (const { name, value } of membersOf(text, entry.start)) {
    if (name === 'name') found = value
    if (name !== 'pkg') continue
    for (const field of membersOf(text, value.start)) if (field.name === 'name') return field.value
  }
  return found
}

/** Reports whether a release of the tree has its name under this one. */
function isReleaseName(name: string): boolean {
  return /^(os)?(distro)?(major|version|release)(version)?$/.test(name.toLowerCase().replace(/[^a-z]/g, ''))
}

/** Creates the comparison of slices of the text with the value of a filter, that of an ecosystem in any case of letters. */
export function fitting(text: Buffer, kind: FilterName, value: string): (slice: Slice) => boolean {
  const plain = Buffer.from(JSON.stringify(value))
  return (slice) => {
    const length = slice.end - slice.start
    if (length === plain.length && plain.compare(text, slice.start, slice.end) === 0) return true
    if (length === 0) return false
    if (kind === 'ecosystem') return textAt(text, slice).toLowerCase() === value
    // Any other form contains an escape, which makes it longer, or is a bare literal.
    const quoted = text[slice.start] === 0x22
    return !(quoted && length <= plain.length) && textAt(text, slice) === value
  }
}

/** Text of a JSON string, or of the literal itself (a release may be written as a number). */
export function textAt(text: Buffer, slice: Slice): string {
  const literal = sliceText(text, slice)
  return literal.startsWith('"') ? String(JSON.parse(literal)) : literal
}

/**
 * Returns the filtered feed, assembled from slices of upstream's text: ecosystems stay as keys even when empty,
 * releases without a requested package are removed.
 */
export function* filterPatchFeed(text: Buffer, index: PatchIndex, filter: PatchFilter): Steps<Buffer> {
  const parts: Piece[] = []
  for (const { name, key, value, releases, isEcosystem } of index.ecosystems) {
    const isOther = filter.ecosystem !== null && filter.ecosystem !== name.toLowerCase()
    if (isEcosystem && isOther) continue
    parts.push(parts.length === 0 ? '{' : ',', cut(text, key), ':')
    if (releases === null) parts.push(cut(text, value))
    else if (filter.release === null && filter.packageName === null) parts.push(cut(text, value))
    else {
      parts.push('[')
      const begin = parts.length
      for (const release of releases) {
        const kept = yield* keepRelease(text, index.rows, release, filter)
        if (kept.length > 0 && parts.length > begin) parts.push(',')
        for (const piece of kept) parts.push(piece)
      }
      parts.push(']')
    }
  }
  parts.push(parts.length === 0 ? '{}' : '}')
  return yield* joinInSteps(parts)
}

/** A release's text with the packages asked for; nothing when none is left. */
function* keepRelease(text: Buffer, rows: Rows, release: Release, filter: PatchFilter): Steps<Piece[]> {
  const { whole, packages } = release
  if (filter.release !== null && filter.release !== release.name) return []
  if (filter.packageName === null) return [cut(text, whole)]
  if (packages === null) return []
  const fits = fitting(text, 'packageName', filter.packageName)
  const kept: Piece[] = []
  for (let row = release.firstRow; row < release.endRow; row++) {
    if (row % STEP === 0) yield
    if (!fits(rows.name(row))) continue
    const before = kept.length === 0 ? [text.subarray(whole.start, packages.start), '['] : [',']
    kept.push(...before, cut(text, rows.whole(row)))
  }
  if (kept.length > 0) kept.push(']', text.subarray(packages.end, whole.end))
  return kept
}

function cut(text: Buffer, { start, end }: Slice): Buffer {
  return text.subarray(start, end)
}

const WIDTH = 4

/** Pairs of slices in one typed array: 16 bytes each, where objects would take a hundred. */
export interface Rows {
  add(whole: Slice, name: Slice): void
  whole(row: number): Slice
  name(row: number): Slice
  count(): number
}

/** An empty list; it grows by doubling. */
export function createRows(): Rows {
  let numbers = new Uint32Array(1024 * WIDTH)
  let count = 0
  const sliceAt = (at: number): Slice => ({ start: numbers[at] ?? 0, end: numbers[at + 1] ?? 0 })
  return {
    add(whole, name) {
      const at = count++ * WIDTH
      if (at === numbers.length) {
        const larger = new Uint32Array(numbers.length * 2)
        larger.set(numbers)
        numbers = larger
      }
      numbers.set([whole.start, whole.end, name.start, name.end], at)
    },
    whole: (row) => sliceAt(row * WIDTH),
    name: (row) => sliceAt(row * WIDTH + 2),
    count: () => count,
  }
}
