import { CSV_FLAG, JSON_FLAG, LISTS, type Flag, type VerbPart } from '../../cli/verbs/verb.ts'

const SINCE: Flag = [
  '--since <time>',
  'a date, a time, yesterday, monday or 7d; times are in UTC (the last 7 days, or since they are known)',
]

/** The commands of this feature. */
export const FINDINGS_VERBS: readonly VerbPart[] = [
  LISTS,
  {
    path: 'list findings',
    arguments: '[tag]',
    summary: 'the judged tags with the numbers of their findings, or one of them',
    options: [
      ['--since <time>', `of one tag: what changed since ${SINCE[1]}`],
      ['--limit <n>', 'how many, at most 1000', '100'],
      CSV_FLAG,
      JSON_FLAG,
    ],
    after:
      '\nThose with the most findings that have a fix first. A tag by its name, digest or id.\n' +
      'The findings of a tag, one by one: patchmirror match TAG',
    example: 'list findings library/python:3.12',
    load: async () => (await import('./cli.ts')).listFindingsCommand,
  },
  {
    path: 'changes',
    arguments: '[since]',
    forms: [
      {
        options: [
          ['--findings', 'what changed in the findings of the mirrored tags instead'],
          SINCE,
          ['--tag <name>', 'those of one tag'],
          ['--limit <n>', 'how many changes, at most 1000', '100'],
          CSV_FLAG,
          JSON_FLAG,
        ],
        takesArguments: true,
        load: async () => (await import('./cli.ts')).changedFindingsCommand,
      },
    ],
  },
]
