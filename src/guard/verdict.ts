import type { Config } from '../config/schema.ts'
import { sha256Of } from '../base/digest.ts'
import { percent } from '../base/text.ts'
import {
  DOUBTS,
  type Doubt,
  type DoubtCounts,
  type DoubtedRecords,
  MOST_DOUBTED,
  doubtText,
  doubtedCount,
} from '../base/domain/doubts.ts'
import type { LedgerRow } from '../store/changes/guard-ledger.ts'

type Settings = Config['guard']

/** Items of each kind that are named with what changed. */
const LISTED = 20
/** Items of each kind whose packages are known, and packages of an item. */
const MOST_WITH_PACKAGES = 20_000
const MOST_PACKAGES = 8
/** How much more than 1 a record counts at most: a few corrections of one week are honest, whatever they are about. */
const MOST_WEIGHT = 4
/** Items of each kind that are weighed: above, their number decides. */
const MOST_WEIGHED = 2_000

/** What is to be believed of the changes that a run would publish. */
export interface GuardVerdict {
  /** Why the run must not publish them; null: it may. */
  readonly refusal: string | null
  /** What is published all the same; null: nothing. */
  readonly warning: string | null
  /** Digest of the refused items and their contents, so that the same ones are recognized whatever else changes. */
  readonly identity: Buffer
  /** Number of items by which the kinds are above their limits, and the first of each kind with what changed. */
  readonly doubts: number
  readonly lines: readonly string[]
  /** By these kinds the names of changes that they are about, as lists of changes have them, and how many items that are. */
  readonly doubted: DoubtedRecords
  readonly counts: DoubtCounts
  /** Number of items that hide something and are below the limits, the first of them, and all as the ledger has them. */
  readonly below: number
  readonly belowLines: readonly string[]
  readonly belowRows: readonly LedgerRow[]
  /** Number of records that could not be compared. */
  readonly notCompared: number
}

/** A doubt about one item. */
interface ItemDoubt {
  readonly kind: Doubt
  /** The id of the record, or the name of the item. */
  readonly name: string
  /** A text that differs when its content does. */
  readonly content: string
  /** What changed, in words. */
  readonly because: string
  /** Names of the packages that it is about; of what is counted by tags, the id of the tag. */
  readonly packages: readonly string[]
  /** The path that lists of changes have it under; absent: its name. */
  readonly path?: string
}

/** A kind counts when both are exceeded. */
interface Limit {
  readonly count: number
  readonly share: number
}

/** What a guard decides by. */
export interface Standard {
  readonly settings: Settings
  /** The limits of removals, which have settings of their own; absent: they are as those of all kinds. */
  readonly removal?: Limit
  /** Number of what is stored of what a kind counts. */
  readonly totalOf: (kind: Doubt) => number
  /** What was published of a kind within the window. */
  readonly earlier: (kind: Doubt) => readonly LedgerRow[]
  /** Kinds that were reported or approved within the window: against its beginning they are not doubted again. */
  readonly settled?: ReadonlySet<string>
  /** Number of what is stored of tags by their ids, of which a kind counts findings or components; absent: of none. */
  readonly ofTag?: ReadonlyMap<string, number>
  /** Which of some ids mirrored VEX rules out of anything; absent: of none that is known. */
  readonly ruledOut?: (ids: ReadonlySet<string>) => ReadonlySet<string>
  /** Number of mirrored tags that have findings of records, where there are any. */
  readonly tagsOf: (records: readonly string[]) => ReadonlyMap<string, number>
}

/** What was found of one kind. */
interface Found {
  readonly items: Map<string, readonly string[]>
  readonly paths: Set<string>
  readonly lines: string[]
  readonly contents: string[]
}

/** A kind that is above its limits. */
interface Over {
  readonly kind: Doubt
  readonly isRefused: boolean
  readonly reason: string
  readonly found: Found
}

/** Creates the collection of the doubts of one run, and what decides about them. */
export function createDoubtCount(standard: Standard) {
  const { settings } = standard
  const found = new Map<Doubt, Found>()
  return {
    note({ kind, name, content, because, packages, path = name }: ItemDoubt): void {
      if (settings.mode === 'off') return
      const into: Found = found.get(kind) ?? {
        items: new Map(),
        paths: new Set(),
        lines: [],
        contents: [],
      }
      found.set(kind, into)
      if (into.items.has(name)) return
      const isFew = into.items.size < MOST_WITH_PACKAGES
      into.items.set(name, isFew ? packages.slice(0, MOST_PACKAGES) : [])
      if (into.paths.size < MOST_DOUBTED) into.paths.add(path)
      if (into.lines.length < LISTED) into.lines.push(`${name}: ${because}`)
      if (isRefusing(settings, kind)) into.contents.push(`${name} ${content}`)
    },
    verdict: (): GuardVerdict => decide(standard, found),
  }
}

function isRefusing({ mode }: Settings, kind: Doubt): boolean {
  return mode === 'enforce' && DOUBTS[kind].above === 'refuse'
}

function decide(standard: Standard, found: ReadonlyMap<Doubt, Found>): GuardVerdict {
  const over: Over[] = []
  const belowRows: LedgerRow[] = []
  const belowLines: string[] = []
  for (const [kind, one] of found) {
    const weights = weigh(standard, kind, one)
    const decided = judgeKind(standard, kind, one, weights)
    if (decided !== null) over.push(decided)
    else {
      belowLines.push(...one.lines)
      for (const [name, packages] of one.items) belowRows.push({ kind, name, weight: weights.get(name) ?? 1, packages })
    }
  }
  const refused = over.filter(({ isRefused }) => isRefused)
  const warned = over.filter(({ isRefused }) => !isRefused)
  const contents = refused.flatMap((one) => one.found.contents.map((text) => `${text} ${one.kind}`))
  return {
    refusal: wordsOf(refused),
    warning: wordsOf(warned),
    identity: sha256Of(contents.sort().join('\n')),
    doubts: over.reduce((sum, one) => sum + one.found.items.size, 0),
    lines: [...refused, ...warned].flatMap((one) => one.found.lines),
    doubted: Object.fromEntries(over.map((one) => [one.kind, [...one.found.paths]])),
    counts: Object.fromEntries(over.map((one) => [one.kind, one.found.items.size])),
    below: belowRows.length,
    belowLines: belowLines.slice(0, LISTED),
    belowRows,
    notCompared: found.get('notCompared')?.items.size ?? 0,
  }
}

function wordsOf(over: readonly Over[]): string | null {
  return over.length === 0 ? null : over.map(({ reason }) => reason).join('; ')
}

/** A record of which mirrored tags have findings counts as more: what it hides would be seen. */
function weigh({ tagsOf }: Standard, kind: Doubt, { items }: Found): ReadonlyMap<string, number> {
  if (DOUBTS[kind].of !== 'record' || items.size > MOST_WEIGHED) return new Map()
  const tags = tagsOf([...items.keys()])
  return new Map([...tags].map(([name, count]) => [name, 1 + Math.min(count, MOST_WEIGHT)]))
}

function judgeKind(standard: Standard, kind: Doubt, found: Found, weights: ReadonlyMap<string, number>): Over | null {
  const { settings } = standard
  const earlier = standard.earlier(kind).filter(({ name }) => !found.items.has(name))
  const reason =
    overGroup(standard, kind, found, earlier) ??
    overLimits(standard, kind, found, { weights, earlier }) ??
    overPackage(standard, kind, found, earlier) ??
    overTag(standard, kind, found, earlier)
  if (reason !== null) return { kind, isRefused: isRefusing(settings, kind), reason, found }
  if (!DOUBTS[kind].isStrange) return null
  const { size } = found.items
  const single = `${doubtedCount(kind, size)} ${doubtText(kind, size)} (${kind})`
  return { kind, isRefused: false, found, reason: single }
}

interface Counting {
  readonly weights: ReadonlyMap<string, number>
  readonly earlier: readonly LedgerRow[]
}

function limitOf({ settings, removal }: Standard, kind: Doubt): Limit {
  if ((kind === 'removed' || kind === 'itemsRemoved') && removal !== undefined) return removal
  const share = Math.min(1, settings.limitShare * DOUBTS[kind].times)
  return { count: settings.limitCount, share }
}

function overLimits(standard: Standard, kind: Doubt, { items }: Found, { weights, earlier }: Counting): string | null {
  if (DOUBTS[kind].of === 'item') return null
  const own = [...items.keys()].reduce((sum, name) => sum + (weights.get(name) ?? 1), 0)
  const weight = earlier.reduce((sum, row) => sum + row.weight, own)
  const limit = limitOf(standard, kind)
  const total = standard.totalOf(kind)
  if (weight <= limit.count || weight <= total * limit.share) return null
  // Of very many, one row of the ledger counts for the rest.
  const count = DOUBTS[kind].of === 'record' ? items.size + earlier.length : weight
  const within =
    earlier.length === 0 ? '' : ` within ${standard.settings.windowDays} days, ${items.size} of them in this run`
  const counts = weight === count ? '' : `, which count as ${weight} by the mirrored tags that have findings of them`
  const limits = `more than ${limit.count} and more than ${percent(limit.share)}`
  const of = total === 0 ? '' : ` of ${total}`
  return `${count}${of} ${nounOf(kind, total === 0 ? count : total)} ${doubtText(kind, count)}${within}${counts} (${kind}, ${limits})`
}

function nounOf(kind: Doubt, count: number): string {
  return doubtedCount(kind, count).replace(/^\d+ /, '')
}

function overPackage(
  { settings }: Standard,
  kind: Doubt,
  { items }: Found,
  earlier: readonly LedgerRow[],
): string | null {
  const { of, above, times } = DOUBTS[kind]
  if (of !== 'record' || above !== 'refuse') return null
  const limit = times === 1 ? settings.limitCount / 2 : settings.limitCount
  const found = countByPackage(items, earlier).filter(([, count]) => count > limit)
  const [most] = found.sort(([, one], [, other]) => other - one)
  if (most === undefined) return null
  const [name, count] = most
  return `${doubtedCount(kind, count)} of ${name} ${doubtText(kind, count)} (${kind}, more than ${Math.floor(limit)} of one package)`
}

/** Counts the items of each package that the run has any of, those of earlier runs included. */
function countByPackage(items: Found['items'], earlier: readonly LedgerRow[]): [name: string, count: number][] {
  const counts = new Map<string, number>()
  for (const name of [...items.values()].flat()) counts.set(name, (counts.get(name) ?? 0) + 1)
  for (const name of earlier.flatMap(({ packages }) => packages)) {
    const count = counts.get(name)
    if (count !== undefined) counts.set(name, count + 1)
  }
  return [...counts]
}

/** Of each list, and of each kind of items, the limits of removals count for themselves. */
function overGroup(standard: Standard, kind: Doubt, { items }: Found, earlier: readonly LedgerRow[]): string | null {
  if (DOUBTS[kind].of !== 'item') return null
  const limit = limitOf(standard, kind)
  for (const [name, count] of countByPackage(items, earlier)) {
    const own = [...items.values()].filter((groups) => groups.includes(name)).length
    const total = (standard.ofTag?.get(name) ?? 0) + count - own
    if (count <= limit.count || count <= total * limit.share) continue
    const within = `within ${standard.settings.windowDays} days, ${own} of them in this run`
    const limits = `more than ${limit.count} and more than ${percent(limit.share)}`
    return `${count} of ${doubtedCount(kind, total)} of ${name} ${doubtText(kind, count)} ${within} (${kind}, ${limits})`
  }
  return null
}

/** Most of what a tag has is lost at once: the tag is not named, since reasons are public and names are private. */
function overTag(
  { settings, ofTag }: Standard,
  kind: Doubt,
  { items }: Found,
  earlier: readonly LedgerRow[],
): string | null {
  if (ofTag === undefined || DOUBTS[kind].of === 'item') return null
  for (const [name, count] of countByPackage(items, earlier)) {
    const total = ofTag.get(name) ?? 0
    if (count <= settings.limitCount || count <= total * MOST_OF_TAG) continue
    const limits = `more than ${settings.limitCount} and more than ${percent(MOST_OF_TAG)} of one tag`
    return `${count} of ${doubtedCount(kind, total)} of one tag ${doubtText(kind, count)} (${kind}, ${limits})`
  }
  return null
}

/** The share of what a tag has that is not lost for a good reason in the images that are mirrored. */
const MOST_OF_TAG = 0.5
