import { CSV_FLAG, JSON_FLAG, LISTS, type VerbPart } from '../../cli/verbs/verb.ts'

const SINCE = 'a date, a time, yesterday, monday or 7d; times are in UTC'

/** The commands of this feature. */
export const CHANGES_VERBS: readonly VerbPart[] = [
  LISTS,
  {
    path: 'list records',
    summary: 'the records, with the dates since which they and their fixes are known',
    options: [
      ['--cve <name>', 'this CVE, or what names it'],
      ['--package <name>', 'about a package of this name'],
      ['--ecosystem <name>', 'such as npm'],
      ['--severity <names>', 'critical, high, medium, low, none, separated by commas'],
      ['--status <name>', 'present or removed'],
      ['--since <time>', `first seen since then: ${SINCE}`],
      ['--limit <n>', 'how many of the newest, at most 1000 (20; as CSV or JSON all)'],
      CSV_FLAG,
      JSON_FLAG,
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
      CSV_FLAG,
      JSON_FLAG,
    ],
    example: 'changes monday --ecosystem npm',
    load: async () => (await import('./changes.ts')).changesCommand,
  },
]
