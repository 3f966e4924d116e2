import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { MirrorError, messageOf } from '../../../../base/errors.ts'
import { sha256Hex } from '../../../../base/digest.ts'
import { SOURCES } from '../../../../base/domain/sources.ts'
import type { AdoptedRow } from '../../../../store/changes/log-adoption.ts'
import type { ChangeKind } from '../../../../store/changes/tracker.ts'
import {
  type Check,
  integerField,
  listField,
  choiceField,
  orNull,
  shape,
  textField,
  truth,
} from '../../../../base/json/shapes.ts'
import { type ObjectStore, readObject } from '../../objects/object-store.ts'
import type { ChangeCounts, NamedObject } from './generation.ts'

/** Most bytes of the rows of a generation, compressed and not, and most names of a row. */
const CAPS = { packed: 128 * 2 ** 20, content: 512 * 2 ** 20, names: 200_000 } as const

const pack = promisify(gzip)
const unpack: (bytes: Buffer, options: object) => Promise<Buffer> = promisify(gunzip)

/** Returns the object with these rows of the change log: one JSON text per line, gzipped. */
export async function packChangeRows(
  rows: readonly AdoptedRow[],
): Promise<Omit<NamedObject, 'key'> & { bytes: Buffer }> {
  const bytes = await pack(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  return { bytes, sha256: sha256Hex(bytes), size: bytes.length }
}

/**
 * Returns how many names differ between the states before and after these rows, each name once; null: not known of a source. A
 * source that ends where it began, as after a rollback of what was never published, has no difference.
 */
export function countChanges(rows: readonly AdoptedRow[]): ChangeCounts | null {
  const counts: ChangeCounts = { added: 0, removed: 0, changed: 0 }
  for (const own of Map.groupBy(rows, ({ source }) => source).values()) {
    if (own[0]?.previous === own.at(-1)?.snapshot) continue
    if (own.some(({ complete }) => !complete)) return null
    const kinds = new Map<string, { first: ChangeKind; last: ChangeKind }>()
    for (const [name, kind] of own.flatMap(({ names }) => names))
      kinds.set(name, { first: kinds.get(name)?.first ?? kind, last: kind })
    for (const { first, last } of kinds.values()) {
      if (last === 'removed') counts.removed += first === 'added' ? 0 : 1
      else counts[first === 'added' ? 'added' : 'changed']++
    }
  }
  return counts
}

const text = (most: number): Check<string> =>
  textField({ test: (value) => value.length <= most }, `a text of up to ${most} characters`)
const snapshot = textField(/^[\da-f]{1,128}$/, 'the id of a snapshot')
const kind = choiceField<ChangeKind>('added', 'changed', 'removed')
const name = text(100_000)
const nameAndKind: Check<[string, ChangeKind]> = (value, place) => {
  if (!Array.isArray(value) || value.length !== 2)
    throw new MirrorError('bundle', `${place} is not a name and what happened to it`)
  return [name(value[0], place), kind(value[1], place)]
}
const row = shape<AdoptedRow>({
  id: integerField(1),
  source: choiceField(...SOURCES),
  snapshot,
  previous: orNull(snapshot),
  sequence: integerField(1),
  publishedAt: integerField(0),
  asOf: integerField(0),
  records: integerField(0),
  added: orNull(integerField(0)),
  changed: orNull(integerField(0)),
  removed: orNull(integerField(0)),
  complete: truth,
  names: listField(nameAndKind, CAPS.names),
})

/** Reads the change log rows of a generation; null where they are not available any more, or have other bytes. */
export async function readChangeRows(store: ObjectStore, named: NamedObject): Promise<AdoptedRow[] | null> {
  if (named.size > CAPS.packed) return null
  const found = await readObject(store, named.key, named.size)
  if (found === null || sha256Hex(found.bytes) !== named.sha256) return null
  try {
    const content = await unpack(found.bytes, { maxOutputLength: CAPS.content })
    const lines = content.toString('utf8').split('\n')
    return lines.flatMap((line, i) => (line === '' ? [] : [row(JSON.parse(line) as unknown, `${named.key}:${i + 1}`)]))
  } catch (error) {
    throw new MirrorError('fleet', `${named.key} cannot be read: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
