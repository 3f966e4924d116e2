import { plainRepository } from '../../domain/image-reference.ts'
import { readText } from '../../json/field-names.ts'
import { type Fields, fieldsOf } from '../../json/objects.ts'

/** Fields that have the repository of an image, and the name of a tag, in any spelling. */
const REPOSITORY = ['repository', 'repo', 'image_repo', 'image_repository', 'repo_name', 'repository_name'] // prettier-ignore
const IMAGE_NAME = [...REPOSITORY, 'name', 'image_name']
const TAG_NAME = ['name', 'tag', 'tag_name', 'image_tag']

/** Returns the repository of an image, as its tags are listed under; null where it names none. */
export function repositoryOfImage(item: Fields): string | null {
  return readText(item, IMAGE_NAME)
}

/** Returns what people call a tag: `library/python:3.12`, without its image where it names none. */
export function nameOfTag(item: Fields): string {
  const name = readText(item, TAG_NAME) ?? ''
  const image = Object.entries(item).find(([key]) => /^image$/i.test(key))?.[1]
  const repository = readText(item, REPOSITORY) ?? readText(fieldsOf(image), IMAGE_NAME)
  return repository === null ? name : `${plainRepository(repository)}:${name}`
}
