import { readText } from '../field-names.ts'
import { fieldsOfItem } from './item-fields.ts'
import type { Fields } from '../objects.ts'
import { listedRelease } from '../releases.ts'

/** Fields that contain the repository of an image. */
export const REPOSITORY_FIELDS = [
  'repository',
  'repo',
  'image_repo',
  'image_repository',
  'repo_name',
  'repository_name',
]

/** Fields of an image that contain its repository, under whose name its tags are listed. */
export const IMAGE_NAME_FIELDS = [...REPOSITORY_FIELDS, 'name', 'image_name']

/** Fields that contain the name of a tag. */
export const TAG_NAME_FIELDS = ['name', 'tag', 'tag_name', 'image_tag']

/** What is said of a list whose items have no names: nothing can be denied by it. */
export const NAMES_NOT_FOUND = 'names were not found in this list'

/**
 * Returns whether any item of a list has the names by which paths address it: an image its repository, a package its
 * ecosystem and name. Only such a list shows that the service does not name something.
 */
export function namesAreFound(items: Iterable<Fields>, resource: string): boolean {
  for (const item of items) {
    const fields = fieldsOfItem(item, resource)
    if (resource === 'images' && readText(fields, IMAGE_NAME_FIELDS) !== null) return true
    if (resource === 'packages' && listedRelease(fields) !== null) return true
  }
  return false
}
