import { createHash } from 'node:crypto'
import { MirrorError } from '../../core/errors.ts'
import type { Onward } from '../../json/envelope.ts'
import { type JsonPath, locate, valueAt, elementsOf } from '../../json/slices.ts'
import type { Meta } from '../http/response.ts'
import { type KnownShape, type ListShape, learnList } from './shape.ts'
import { jsonTextOf } from '../../json/objects.ts'

/** A page of a list as it came: upstream's own bytes of each item. */
export interface ReadPage {
  items: Buffer[]
  /** The page parsed, and where things lie in it. */
  value: unknown
  shape: ListShape
  etag: string | null
  lastModified: string | null
  /** The Link header. */
  link: string | null
  /** How many items the list has by this page; null: it does not say. */
  total: number | null
  sha256: Buffer
}

/** What earlier walks of a list found out. */
export interface KnownList {
  onward: Onward | null
  /** Where its pages keep the cursor. */
  cursorPath: JsonPath | null
  /** Why it was not all of the list. */
  cut: string | null
  /** Whether the list was looked at for how it goes on. */
  looked: boolean
}

/** How a page is read. */
export interface Reading {
  /** Why a page must not be parsed, from its bytes; null when it may. */
  refuse: (body: Buffer) => string | null
}

/** A page's parts. Throws `upstream_shape` when it is no list. */
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
  const sha256 = createHash('sha256').update(body).digest()
  const told = learned.isEstimate ? null : (totalAt(value, learned.totalPath) ?? total)
  return { etag, lastModified, link, total: told, sha256, items, value, shape: learned }
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

/** The error for a list that cannot be walked. */
export function unwalkable(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
