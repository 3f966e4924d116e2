import { sha256Of } from '../../core/digest.ts'
import { MirrorError } from '../../core/errors.ts'
import type { Onward } from '../../json/envelope.ts'
import { type JsonPath, locate, valueAt, elementsOf } from '../../json/slices.ts'
import type { Meta } from '../http/response.ts'
import { type KnownShape, type ListShape, learnList } from './shape.ts'
import { jsonTextOf } from '../../json/objects.ts'

/** A page of a list with upstream's own bytes of each item. */
export interface ReadPage {
  items: Buffer[]
  /** The parsed page. */
  value: unknown
  shape: ListShape
  etag: string | null
  lastModified: string | null
  /** The Link header. */
  link: string | null
  /** Number of items in the list by this page; null: unknown. */
  total: number | null
  sha256: Buffer
}

/** What earlier walks learned about a list. */
export interface KnownList {
  onward: Onward | null
  /** Position of the cursor on its pages. */
  cursorPath: JsonPath | null
  /** Why the list was incomplete; null: it was not. */
  cut: string | null
  /** Whether the way to request its next page was already searched for. */
  looked: boolean
}

/** Options for reading a page. */
export interface Reading {
  /** Returns why a page must not be parsed; null when it may. */
  refuse: (body: Buffer) => string | null
}

/** Reads a page. Throws `upstream_shape` when it is not a list. */
export function readPage(
  path: string,
  body: Buffer,
  { etag, lastModified, link, total }: Meta,
  { refuse }: Reading,
  known: KnownShape,
): ReadPage {
  const costly = refuse(body)
  if (costly !== null) throw unwalkable(path, costly)
  const value = parse(path, body)
  const learned = learnList(value, known)
  const array = locate(body, learned.itemsPath)?.start ?? 0
  const items = [...elementsOf(body, array)].map(({ start, end }) => body.subarray(start, end))
  const sha256 = sha256Of(body)
  const count = learned.isEstimate ? null : (totalAt(value, learned.totalPath) ?? total)
  return { etag, lastModified, link, total: count, sha256, items, value, shape: learned }
}

function totalAt(value: unknown, path: JsonPath | null): number | null {
  const total = path === null ? null : valueAt(value, path)
  return typeof total === 'number' ? total : null
}

function parse(path: string, body: Buffer): unknown {
  try {
    return JSON.parse(jsonTextOf(body))
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: a page is not JSON`, { cause: error })
  }
}

/** Creates the error for a list that cannot be walked. */
export function unwalkable(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
