import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const FINDINGS_VERBS: readonly Verb[] = [
  {
    path: 'findings',
    arguments: '[tag]',
    summary: 'what changed in the findings of tags, or those of one tag',
    after: '\nThe tag by its name, digest or id; its findings are shown as numbers.',
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
    load: async () => (await import('./cli.ts')).findingsCommand,
  },
]
