import { orderOfRange } from '../documents/differences/spans.ts'
import { type Fields, fieldsOf, isObject } from '../base/json/objects.ts'
import { mavenOrder } from '../base/versions/maven.ts'
import type { VersionOrder } from '../base/versions/order.ts'
import type { ParsedRecord } from './kinds.ts'
import { OWN_FIELDS } from '../documents/differences/differences.ts'

/** Characters of a record that is looked at: it has fewer events, and characters in them, than the comparison of ranges is bounded to. */
const MAX_LENGTH = 22_000
/** Fixes of a range, of which each is compared with each. */
const MAX_FIXES = 20

/** A range that changed. */
interface ChangedRange {
  readonly before: Fields
  readonly after: Fields
  readonly ecosystem: string
}

/**
 * Returns true only for a change that `doubtsAbout` has no doubt about, in a fraction of its time: what the kinds of doubt are
 * about is as before, or versions were added to a list, or one range from 0 has other fixes, none of them lower than those it had.
 */
export function isHarmless(before: ParsedRecord, after: ParsedRecord): boolean {
  if (after.length > MAX_LENGTH || after.length < before.length / 2) return false
  const one = fieldsOf(before.json)
  const other = fieldsOf(after.json)
  try {
    if (!isSame(one['withdrawn'], other['withdrawn']) || !hasSameSeverity(one, other)) return false
    if (!isSame(one['aliases'], other['aliases']) || !isSame(one['upstream'], other['upstream'])) return false
    return isHarmlessList(one['affected'], other['affected'])
  } catch {
    return false // nested too deeply to be written
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

function hasSameSeverity(one: Fields, other: Fields): boolean {
  if (!isSame(one['severity'], other['severity'])) return false
  return OWN_FIELDS.every((place) => isSame(wordOf(one[place]), wordOf(other[place])))
}

function wordOf(own: unknown): unknown {
  return isObject(own) ? own['severity'] : undefined
}

/** Compares the entries of `affected` one by one. */
function isHarmlessList(before: unknown, after: unknown): boolean {
  const entries = listOf(before)
  const now = listOf(after)
  if (entries === null || now?.length !== entries.length) return isSame(before, after)
  const changed: ChangedRange[] = []
  for (let i = 0; i < entries.length; i++) {
    const one = entries[i]
    const other = now[i]
    if (isSame(one, other)) continue
    if (!isObject(one) || !isObject(other) || !isHarmlessEntry(one, other)) return false
    if (!addChanged(one, other, changed)) return false
  }
  const [range] = changed
  return range === undefined || (changed.length === 1 && isHarmlessRange(range))
}

function listOf(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? (value as unknown[]) : null
}

/** Whether an entry's package and severity are as before, and versions at most added. */
function isHarmlessEntry(one: Fields, other: Fields): boolean {
  if (!isSame(one['package'], other['package']) || !hasSameSeverity(one, other)) return false
  const before = one['versions']
  const after = other['versions']
  if (isSame(before, after)) return true
  const old = listOf(before)
  const now = listOf(after)
  // A first list may make clear what was not compared.
  if (now === null || old === null || typeof old[0] !== 'string') return false
  return isSame(old, now.slice(0, old.length))
}

/** Adds the ranges of an entry that changed; false where one was added, removed or is no object. */
function addChanged(one: Fields, other: Fields, to: ChangedRange[]): boolean {
  const before = listOf(one['ranges'])
  const after = listOf(other['ranges'])
  if (before === null || after?.length !== before.length) return isSame(one['ranges'], other['ranges'])
  const { ecosystem } = fieldsOf(one['package'])
  for (let i = 0; i < before.length; i++) {
    const old = before[i]
    const now = after[i]
    if (isSame(old, now)) continue
    if (!isObject(old) || !isObject(now) || typeof ecosystem !== 'string') return false
    to.push({ before: old, after: now, ecosystem })
  }
  return true
}

/**
 * Judges the fixes of a range that affects all versions up to the lowest of them. Where that is not lower, no version is lost,
 * in whatever ranges the package has beside it; and no fix is taken for a lowered one when none that is new is below one that is
 * gone. The first fix of all is counted, so it is not called harmless.
 */
function isHarmlessRange({ before, after, ecosystem }: ChangedRange): boolean {
  const { type, repo } = after
  if (typeof type !== 'string' || type !== before['type'] || !isSame(repo, before['repo'])) return false
  const old = fixesFromZero(before['events'])
  const now = fixesFromZero(after['events'])
  if (old === null || now === null || now.length === 0) return false
  const removed = old.filter((fix) => !now.includes(fix))
  const added = now.filter((fix) => !old.includes(fix))
  if (added.length === 0) return false
  const order = orderOfRange({ type, repo: null, events: [] }, ecosystem)
  if (order === null) return removed.length === 0
  if (order === mavenOrder) return false // not transitive: 1 < 1.p < 1.0cr < 1, so none of them is the lowest
  return old.length > 0 && areNotLower(added, removed, old, order)
}

/** Returns the fixes of a range from 0 that has no other events, at most `MAX_FIXES`; null for any other range. */
function fixesFromZero(value: unknown): string[] | null {
  const events = listOf(value)
  if (events === null || events.length > MAX_FIXES + 1) return null
  if (textOf(events[0], 'introduced') !== '0') return null
  const fixes: string[] = []
  for (let i = 1; i < events.length; i++) {
    const fix = textOf(events[i], 'fixed')
    if (fix === null) return null
    fixes.push(fix)
  }
  return fixes
}

/** Returns the text of an object's only member; null if it is none, has another name, or is empty. */
function textOf(event: unknown, name: string): string | null {
  if (!isObject(event) || Object.keys(event).length !== 1) return null
  const text = event[name]
  return typeof text === 'string' && text !== '' ? text : null
}

/**
 * Whether each added fix can be read and is no lower than any removed one, or, where none was removed, than one of the old. Few
 * versions are read: a fix is mostly added behind the last one.
 */
function areNotLower(
  added: readonly string[],
  removed: readonly string[],
  old: readonly string[],
  order: VersionOrder,
): boolean {
  return added.every((fix) => {
    const key = order.read(fix)
    if (key === null) return false
    const isNotBelow = (other: string): boolean => {
      const least = order.read(other)
      return least !== null && order.compare(key, least) >= 0
    }
    if (removed.length > 0) return removed.every(isNotBelow)
    return old.findLast(isNotBelow) !== undefined
  })
}
