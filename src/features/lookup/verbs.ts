import { CSV_FLAG, type Flag, JSON_FLAG, LISTS, type VerbPart } from '../../cli/verbs/verb.ts'
import { filterName } from './filters.ts'
import type { LookupOptions } from './open.ts'
import { PATCHES } from '../../base/domain/resources.ts'

const LIMIT: Flag = ['--limit <n>', 'how many of each kind, at most 1000', '20']
const PAGE: readonly Flag[] = [
  ['--order <field>', 'by this field, such as updated_at:desc; default: the order of the service'],
  ['--limit <n>', 'how many on a page, at most 1000', '50'],
  ['--after <cursor>', 'the page after this cursor, which the page before names'],
]

/** The filters of `/v1/patches`, from the table that its route is made from. */
const PATCH_FILTERS: readonly Flag[] = PATCHES.facets.flatMap(({ param, values, many = false }): Flag[] => {
  if (param === null) return []
  const several = many ? ', several separated by commas' : ''
  const accepted = values === undefined ? 'exactly this value' : `one of: ${values.join(', ')}`
  return [[`--${filterName(param)} <${many ? 'names' : 'name'}>`, `${accepted}${several}`]]
})

/** Commands that answer questions from the data folder. They only read. */
export const LOOKUP_VERBS: readonly VerbPart[] = [
  {
    path: 'search',
    arguments: '<text...>',
    summary: 'find records, packages, images and tags',
    options: [LIMIT, JSON_FLAG],
    after: '\nBy an id, a CVE, the name of a package, a purl, a tag or a digest.',
    example: 'search pkg:npm/lodash',
    load: async () => {
      const { searchCommand } = await import('./search.ts')
      return (words: readonly string[], options: LookupOptions) => searchCommand(words.join(' '), options)
    },
  },
  {
    path: 'show',
    arguments: '<name>',
    summary: 'all about one record, package, tag or image',
    options: [['--limit <n>', 'how many affected packages, references or tags', '20'], JSON_FLAG],
    after:
      '\nA record by its id or a CVE, a tag by its reference, id or digest (its first 8 digits\nor more), an image by its repository, a package by its name or a purl.',
    example: 'show CVE-2026-12345',
    load: async () => (await import('./show.ts')).showCommand,
  },
  LISTS,
  {
    path: 'list tags',
    arguments: '[image]',
    summary: 'the tags of all images, or of an image by its repository, purl or id',
    options: [...PAGE, CSV_FLAG, JSON_FLAG],
    example: 'list tags library/python',
    load: async () => (await import('./lists.ts')).tagsCommand,
  },
  {
    path: 'list patches',
    summary: 'the patches, with the filters of /v1/patches',
    options: [...PATCH_FILTERS, ...PAGE, CSV_FLAG, JSON_FLAG],
    example: 'list patches --ecosystem debian --severity critical,high',
    load: async () => (await import('./lists.ts')).patchesCommand,
  },
]
