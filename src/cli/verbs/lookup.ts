import { RESOURCES } from '../../domain/resources.ts'
import { type Flag, JSON_FLAG, type Verb } from './verb.ts'

const LIMIT: Flag = ['--limit <n>', 'how many of each kind, at most 1000', '20']
const PAGE: readonly Flag[] = [
  ['--order <field>', 'by this field, such as updated_at:desc; default: the order of the service'],
  ['--limit <n>', 'how many on a page, at most 1000', '50'],
  ['--after <cursor>', 'the page after this cursor, which the page before names'],
]

/** The filters of `/v1/patches`, from the table that its route is made from. */
const PATCH_FILTERS: readonly Flag[] = RESOURCES.flatMap(({ name, list }) =>
  name === 'patches' ? (list?.facets ?? []) : [],
).flatMap(({ param, values, many = false }): Flag[] => {
  if (param === null) return []
  const several = many ? ', several separated by commas' : ''
  const accepted = values === undefined ? 'exactly this value' : `one of: ${values.join(', ')}`
  return [[`--${param.replaceAll('_', '-')} <${many ? 'names' : 'name'}>`, `${accepted}${several}`]]
})

/** Commands that answer questions from the data folder. They only read. */
export const LOOKUP_VERBS: readonly Verb[] = [
  {
    path: 'search',
    arguments: '<query>',
    summary: 'find records, packages, images and tags by id, CVE, package name, purl, tag or digest',
    options: [LIMIT, JSON_FLAG],
    example: 'search pkg:npm/lodash',
    load: async () => (await import('../lookup/search.ts')).searchCommand,
  },
  {
    path: 'show',
    alias: 'record',
    arguments: '<name>',
    summary:
      'a record by its id, a tag by its reference, id or digest (its first 8 digits or more), or the tags of a repository',
    options: [['--limit <n>', 'how many affected packages, references or tags', '20'], JSON_FLAG],
    example: 'show CVE-2026-12345',
    load: async () => (await import('../lookup/show.ts')).showCommand,
  },
  {
    path: 'match',
    arguments: '<sbom>',
    summary: 'the vulnerabilities of the components of an SBOM (CycloneDX, SPDX; - reads standard input)',
    options: [
      ['--format <name>', 'table (the default), json, cyclonedx (a vulnerability disclosure report) or sarif'],
      JSON_FLAG,
      [
        '--fail-on <kind>',
        'exit with 1 for findings of a kind: any, fixable (a fix is known), high (or critical), critical; or for unjudged packages',
      ],
      [
        '--distro <name>',
        'the distribution and release of packages for which the SBOM names none, such as debian-12 or jammy',
      ],
      ['--no-vex', 'do not apply the mirrored VEX: what it rules out is among the findings'],
    ],
    example: 'match sbom.cdx.json --fail-on fixable',
    load: async () => (await import('../lookup/match.ts')).matchCommand,
  },
  {
    path: 'since',
    summary: 'since when records and their fixes are known here: the newest, or all of them',
    options: [
      ['--ecosystem <name>', 'only records of this ecosystem, such as npm'],
      ['--limit <n>', 'how many of the newest, at most 1000', '20'],
      ['--csv', 'all records as CSV'],
      ['--json', 'all records as JSON'],
    ],
    after: '\nOf a single record: patchmirror show ID',
    example: 'since --ecosystem Debian --csv',
    load: async () => (await import('../lookup/since.ts')).sinceCommand,
  },
  {
    path: 'changes',
    summary: 'what changed in the records: fixes, ranges, severity, withdrawals, in words',
    options: [
      [
        '--since <time>',
        'a date, a time, yesterday, monday, 7d, or a snapshot; times are in UTC (the last 7 days, or since the log begins)',
      ],
      ['--ecosystem <name>', 'records about packages of this ecosystem alone'],
      ['--purl <purl>', 'records about this package alone'],
      ['--tag <name>', 'records about the packages in the mirrored SBOM of a tag, by its name, digest or id'],
      ['--sbom <file>', 'records about the packages in an SBOM, - for standard input'],
      ['--limit <n>', 'how many records, at most 1000', '100'],
      JSON_FLAG,
    ],
    example: 'changes --since monday --ecosystem npm',
    load: async () => (await import('../lookup/changes.ts')).changesCommand,
  },
  {
    path: 'tags',
    arguments: '[image]',
    summary: 'the tags of all images, or of an image by its repository or id',
    options: [...PAGE, JSON_FLAG],
    example: 'tags library/python',
    load: async () => (await import('../lookup/lists.ts')).tagsCommand,
  },
  {
    path: 'findings',
    arguments: '[tag]',
    summary:
      'what changed in the findings of the mirrored tags, or the findings of a tag, by its name, digest or id, as numbers',
    options: [
      ['--all', 'the judged tags with their numbers, those with the most findings that have a fix first'],
      [
        '--since <time>',
        'a date, a time, yesterday, monday or 7d; times are in UTC (the last 7 days, or since they are known)',
      ],
      ['--limit <n>', 'how many changes or tags, at most 1000', '100'],
      JSON_FLAG,
    ],
    example: 'findings --since monday',
    load: async () => (await import('../lookup/findings.ts')).findingsCommand,
  },
  {
    path: 'vex',
    arguments: '<image>',
    summary:
      'what counts of the mirrored VEX about one image, as OpenVEX for scanners: by its digest, or by a tag, its name or id',
    options: [
      ['--name <repositories>', 'further repositories under which the image is scanned, separated by commas'],
      [
        '--components',
        'name components as products as well, for "trivy sbom" of this image: it rules them out in others too',
      ],
      JSON_FLAG,
    ],
    example: 'vex library/python:3.12',
    load: async () => (await import('../lookup/vex.ts')).vexCommand,
  },
  {
    path: 'patches',
    summary: 'the list of patches, with the filters of /v1/patches',
    options: [...PATCH_FILTERS, ...PAGE, JSON_FLAG],
    example: 'patches --ecosystem debian --severities critical,high',
    load: async () => (await import('../lookup/lists.ts')).patchesCommand,
  },
]
