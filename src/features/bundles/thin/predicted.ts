import { sha256Hex } from '../../../base/digest.ts'
import type { BaseContents, Recipe } from './format.ts'

/** A record of a bundle, as far as its row follows from its content. */
interface KnownRecord {
  readonly id: string
  readonly crc32: number
  readonly content: Buffer
}

/** Bytes of predicted rows that are one dictionary. */
const MOST_BYTES = 4 * 2 ** 20
const NONE = Buffer.alloc(0)

/** Predicts the rows of records, so that a pack of rows is compressed against nearly its own text. Both sides do the same. */
export function createPrediction() {
  const lines: string[] = []
  const ids: string[] = []
  let next = 0
  return {
    add({ id, crc32, content }: KnownRecord): void {
      const { modified } = parsed(content)
      const row = { key: id, modified, crc32, size: content.length, sha256: sha256Hex(content) }
      lines.push(JSON.stringify(row))
      ids.push(JSON.stringify([id]))
    },
    /** The rows from the first that no pack had yet. */
    rows(): Buffer {
      let end = next
      for (let bytes = 0; end < lines.length && bytes < MOST_BYTES; end++) bytes += lines[end]?.length ?? 0
      return next === end ? NONE : Buffer.from(lines.slice(next, end).join('\n'))
    },
    /** Passes over the rows that a pack had. */
    pass(pack: Buffer): void {
      const rows = pack.toString().split('\n')
      next += rows.filter((row) => row.startsWith('{"key":')).length
    },
    /** The ids of all records, one a line. */
    ids: (): Buffer => Buffer.from(ids.join('\n')),
  }
}

export type Prediction = ReturnType<typeof createPrediction>

/** Reports whether a member has the rows of records. */
export function hasRecords(name: string): boolean {
  return name.startsWith('rows/osv/osv-record-')
}

/** Returns what the content of a member is compressed against, on both sides. */
export function dictionaryOf(
  { name, recipe }: { readonly name: string; readonly recipe: Recipe },
  base: BaseContents,
  prediction: Prediction,
): Buffer {
  if (hasRecords(name)) return prediction.rows()
  if (recipe.kind === 'rows') return NONE
  return recipe.path === null ? prediction.ids() : (base.document(recipe.path) ?? NONE)
}

/** A record that is not JSON has no date to predict. */
function parsed(content: Buffer): { readonly modified: unknown } {
  try {
    const record: unknown = JSON.parse(content.toString())
    return { modified: (record as { modified?: unknown } | null)?.modified ?? '' }
  } catch {
    return { modified: '' }
  }
}
