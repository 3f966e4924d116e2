import { FLEET_CHECK, FLEET_ROLLBACK } from '../../cli/after-texts.ts'
import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** Commands about the fleet of mirrors on an object store. */
export const FLEET_VERBS: readonly Verb[] = [
  { path: 'fleet', summary: 'mirrors that share an object store' },
  {
    path: 'fleet check',
    summary: 'try whether the object store does what a fleet needs',
    options: [JSON_FLAG],
    forms: [
      {
        options: [
          ['--gc', 'delete bundles and changes on the store that no generation needs any more'],
          ['--dry-run', 'with --gc: say what would be deleted, delete nothing'],
          JSON_FLAG,
        ],
        load: async () => (await import('./cli/generations.ts')).fleetGcCommand,
      },
    ],
    example: 'fleet check',
    after: FLEET_CHECK,
    load: async () => (await import('./cli/check.ts')).fleetCheckCommand,
  },
  {
    path: 'fleet status',
    summary: 'the newest generation, who leads, and what each mirror serves',
    options: [JSON_FLAG],
    forms: [
      {
        options: [
          ['--log', 'the newest generations on the store: when, by which mirror, what changed'],
          ['--limit <n>', 'with --log: how many, at most 1000 (10)'],
          JSON_FLAG,
        ],
        load: async () => (await import('./cli/generations.ts')).fleetLogCommand,
      },
    ],
    example: 'fleet status --log',
    load: async () => (await import('./cli/status.ts')).fleetStatusCommand,
  },
  {
    path: 'fleet rollback',
    arguments: '[generation]',
    summary: 'publish an older generation again, or let nodes sync after that',
    options: [JSON_FLAG],
    forms: [
      {
        options: [['--end', 'let nodes sync again'], JSON_FLAG],
        load: async () => (await import('./cli/generations.ts')).fleetReleaseCommand,
      },
    ],
    after: FLEET_ROLLBACK,
    example: 'fleet rollback 40',
    load: async () => (await import('./cli/generations.ts')).fleetRollbackCommand,
  },
]
