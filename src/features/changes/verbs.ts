import { JSON_FLAG, LISTS, type VerbPart } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const CHANGES_VERBS: readonly VerbPart[] = [
  LISTS,
  {
    path: 'list records',
    summary: 'the records, with the dates since which they and their fixes are known',
    options: [
      ['--ecosystem <name>', 'only records of this ecosystem, such as npm'],
      ['--limit <n>', 'how many of the newest, at most 1000', '20'],
      ['--csv', 'all records as CSV'],
      ['--json', 'all records as JSON'],
    ],
    after: '\nOf a single record: patchmirror show ID',
    example: 'list records --ecosystem Debian --csv',
    load: async () => (await import('./since.ts')).sinceCommand,
  },
  {
    path: 'changes',
    arguments: '[since]',
    summary: 'what changed in the records, or in the findings of tags',
    options: [
      [
        '--since <time>',
        'a date, a time, yesterday, monday, 7d, or a snapshot; times are in UTC (the last 7 days, or since the log begins)',
      ],
      ['--ecosystem <name>', 'records about packages of this ecosystem alone'],
      ['--purl <purl>', 'records about this package alone'],
      [
        '--tag <name>',
        'records about the packages in the mirrored SBOM of a tag, by its name, digest or id; with --findings: its findings',
      ],
      ['--sbom <file>', 'records about the packages in an SBOM, - for standard input'],
      ['--limit <n>', 'how many records, at most 1000', '100'],
      JSON_FLAG,
    ],
    example: 'changes monday --ecosystem npm',
    load: async () => (await import('./changes.ts')).changesCommand,
  },
]
