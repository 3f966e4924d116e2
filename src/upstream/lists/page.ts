import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Onward } from '../../base/json/envelope.ts'
import { errorOfPage, unfinishedState } from '../../base/json/forms/error-body.ts'
import { type Flaw, flawOf } from '../../base/json/forms/more-beyond.ts'
import { isPageUrl } from '../../base/json/list-names.ts'
import { type JsonPath, locate, valueAt, elementsOf } from '../../base/json/slices.ts'
import { type ListSign, signsOfHeaders, signsOfPage } from '../../base/json/list-signs.ts'
import { type Meta, staleOf, warningOf } from '../http/response.ts'
import { CUT_ABOVE, FLAWED } from './evidence.ts'
import type { Next } from './cursor.ts'
import { type KnownShape, type ListShape, learnList } from './shape.ts'
import { jsonTextOf, parseExactly } from '../../base/json/objects.ts'

/** A page of a list with upstream's own bytes of each item. */
export interface ReadPage {
  items: Buffer[]
  /** The parsed page. */
  value: unknown
  shape: ListShape
  /** The media type as upstream gives it. */
  type: string
  etag: string | null
  lastModified: string | null
  /** The Link header. */
  link: string | null
  /** The next page as a header names it (`X-Next-Cursor`); null: none does. */
  headerNext: HeaderNext | null
  /** What the page and its headers say about the extent of the list. */
  signs: readonly ListSign[]
  /** What the page says itself of items that it lacks; null: nothing. */
  flaw: Flaw | null
  /** Number of items in the list by this page; null: unknown. */
  total: number | null
  sha256: Buffer
}

/** The next page as a header names it. */
interface HeaderNext extends Next {
  /** Name of the header, in lower case. */
  header: string
}

/** What the probes of a list showed, and how many items it had then. */
export interface Probed {
  items: number
  limitKept: boolean | null
  otherPages: 'the same items' | 'no answer' | null
}

/** What earlier walks learned about a list. */
export interface KnownList {
  /** Number of its stored items; null: it was not stored. */
  items: number | null
  onward: Onward | null
  /** Position of the cursor on its pages. */
  cursorPath: JsonPath | null
  /** Why the list was incomplete; null: it was not. */
  cut: string | null
  /** What probes of the list showed; null: it was not probed. */
  probed: Probed | null
  /** Whether its completeness was judged: then an unchanged last page is not judged again. */
  graded: boolean
  /** Whether the last page itself showed the end: only then an unchanged one shows it again. */
  endInPage: boolean
  /** Whether what its pages state of an end, or a total, says nothing; null: not known. */
  statesNothing: boolean | null
}

/** Returns whether an unchanged last page shows that the list ends as it did. */
export function showsEnd(known: KnownList): boolean {
  return isJudged(known) && known.endInPage
}

/**
 * Returns whether what was seen of a list still holds while its pages are unchanged: a mirror may have got what it lacked, and an unchanged
 * page does not show its flaw.
 */
export function isJudged({ graded, cut }: KnownList): boolean {
  return graded && ![CUT_ABOVE, FLAWED].some((why) => cut?.startsWith(why))
}

/** Options for reading a page. */
export interface Reading {
  /** Returns why a page must not be parsed; null when it may. */
  refuse: (body: Buffer, meta: Pick<Meta, 'headers' | 'date'>) => string | null
}

/** Reads a page. Throws `upstream_shape` when it is not a list. */
export function readPage(
  path: string,
  body: Buffer,
  { status, contentType, etag, lastModified, link, total, headers, date }: Meta,
  { refuse }: Reading,
  known: KnownShape,
): ReadPage {
  const costly = refuse(body, { headers, date })
  if (costly !== null) throw unwalkable(path, costly)
  const value = parse(path, body)
  const error = errorOfPage(value)
  if (error !== null) throw unwalkable(path, `upstream answered 200 with an error: ${error}`)
  const state = unfinishedState(value)
  if (state !== null) throw unwalkable(path, `it is not ready yet (it says: ${state})`)
  const learned = learnList(value, known)
  const array = locate(body, learned.itemsPath)?.start ?? 0
  const items = [...elementsOf(body, array)].map(({ start, end }) => body.subarray(start, end))
  const sha256 = sha256Of(body)
  const count = learned.isEstimate ? null : (totalAt(value, learned.totalPath) ?? total)
  const said = signsOfHeaders(headers, status === 206)
  const signs = [...signsOfPage(value, learned.itemsPath), ...said]
  const flaw = flawOf(value, learned.itemsPath) ?? flawOfStatus(status, headers)
  const page = { items, value, shape: learned, headerNext: nextOfHeaders(said), signs, flaw }
  return { ...page, type: contentType, etag, lastModified, link, total: count, sha256 }
}

function flawOfStatus(status: number, headers: Meta['headers']): Flaw | null {
  const warning = warningOf(headers) ?? staleOf(headers)
  if (warning !== null) return { text: warning, isLasting: false }
  if (status !== 206 || headers['content-range'] !== undefined) return null
  return { text: 'its status is 206, and it has no Content-Range', isLasting: false }
}

/** Names of headers whose value is the next page; other values that may be cursors are tried, and not followed at once. */
const NEXT_HEADER = /next|cursor|continuation|marker|resume|page-?token/

function nextOfHeaders(signs: readonly ListSign[]): HeaderNext | null {
  const isNext = (name: string): boolean => NEXT_HEADER.test(name) && /^[a-z\d -]{1,100}$/.test(name)
  const found = signs.find(({ kind, name }) => kind === 'cursor' && isNext(name))
  if (found === undefined) return null
  const header = found.name.replace(/^the header /, '')
  const field = header.replace(/^x-/, '').replaceAll('-', '_')
  const text = String(found.value)
  return { text, isUrl: isPageUrl(text), field, header }
}

function totalAt(value: unknown, path: JsonPath | null): number | null {
  const total = path === null ? null : valueAt(value, path)
  const isDigits = typeof total === 'string' && /^\d{1,15}$/.test(total)
  return typeof total === 'number' || isDigits ? Number(total) : null
}

function parse(path: string, body: Buffer): unknown {
  try {
    return parseExactly(jsonTextOf(body))
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: a page is not JSON`, { cause: error })
  }
}

/** Creates the error for a list that cannot be walked. */
export function unwalkable(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
