import { RESOURCES } from '../../../../base/domain/resources.ts'
import { readText } from '../../../../base/json/field-names.ts'
import { fieldsOfItem } from '../../../../base/json/forms/item-fields.ts'
import type { Fields } from '../../../../base/json/objects.ts'
import { type Cell, plain, time } from '../../../../answers/cells.ts'

/** Fields that have the date of a change, in any spelling. */
const CHANGED = ['updated_at', 'created_at', 'pushed_at', 'last_updated']

/** Returns an item's own id; '' where it has none. */
export function listedId(item: Fields, resource: 'images' | 'tags'): string {
  const ids = RESOURCES.find(({ name }) => name === resource)?.ids ?? []
  return readText(fieldsOfItem(item, resource), ids) ?? ''
}

/** Returns the digest of an image that a tag names; null where it names none. */
export function digestOfTag(item: Fields): string | null {
  return readText(fieldsOfItem(item, 'tags'), ['digest', 'image_digest', 'manifest_digest'])
}

/** Returns when an item was changed or made. */
export function changedCell(item: Fields, now: number, resource: 'images' | 'tags'): Cell {
  const text = readText(fieldsOfItem(item, resource), CHANGED)
  return text === null || text.length > 60 ? plain(text) : time(text, now)
}
