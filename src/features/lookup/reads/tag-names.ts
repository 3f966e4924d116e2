import { TAGS } from '../../../base/domain/resources.ts'
import { plainRepository } from '../../../base/domain/image-reference.ts'
import { readText } from '../../../base/json/field-names.ts'
import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import { IMAGE_NAME_FIELDS, REPOSITORY_FIELDS, TAG_NAME_FIELDS } from '../../../base/json/forms/listed-names.ts'
import { type Fields, fieldsOf } from '../../../base/json/objects.ts'
import type { Reads } from '../../../store/reads.ts'

/** Returns the repository of an image, as its tags are listed under; null where it names none. */
export function repositoryOfImage(item: Fields): string | null {
  return readText(fieldsOfItem(item, 'images'), IMAGE_NAME_FIELDS)
}

/** Returns what people call a tag: `library/python:3.12`, without its image where it names none. */
export function nameOfTag(tag: Fields): string {
  const item = fieldsOfItem(tag, 'tags')
  const name = readText(item, TAG_NAME_FIELDS) ?? ''
  const image = Object.entries(item).find(([key]) => /^image$/i.test(key))?.[1]
  const repository = readText(item, REPOSITORY_FIELDS) ?? readText(fieldsOf(image), IMAGE_NAME_FIELDS)
  return repository === null ? name : `${plainRepository(repository)}:${name}`
}

/** Creates what says what people call a tag, by its id; null: what is stored of the list of tags does not name it. */
export function createTagNames({ catalog }: Pick<Reads, 'catalog'>): (id: string) => string | null {
  const list = catalog.readList(TAGS)
  return (id) => {
    const entry = list === null ? null : catalog.readEntry(list.id, id)
    return entry === null ? null : nameOfTag(fieldsOf(JSON.parse(entry.body.toString('utf8')))) || null
  }
}

/** Returns what people call the tag whose path, or that of an artifact of it, this is; undefined: it is none, or has no name. */
export function labelOfPath(nameOf: (id: string) => string | null, path: string): string | undefined {
  const id = path.startsWith(`${TAGS}/`) ? path.slice(TAGS.length + 1).split('/', 1)[0] : undefined
  return id === undefined ? undefined : (nameOf(id) ?? undefined)
}
