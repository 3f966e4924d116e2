import { FLEET_CHECK } from '../../cli/after-texts.ts'
import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** Commands about the fleet of mirrors on an object store. */
export const FLEET_VERBS: readonly Verb[] = [
  { path: 'fleet', summary: 'mirrors that share an object store' },
  {
    path: 'fleet check',
    summary: 'try whether the object store does what a fleet needs, with real writes that are deleted again',
    options: [JSON_FLAG],
    example: 'fleet check',
    after: FLEET_CHECK,
    load: async () => (await import('./cli/check.ts')).fleetCheckCommand,
  },
  {
    path: 'fleet status',
    summary: 'the newest generation, who leads, and what each mirror serves',
    options: [JSON_FLAG],
    example: 'fleet status',
    load: async () => (await import('./cli/status.ts')).fleetStatusCommand,
  },
  {
    path: 'fleet log',
    summary: 'the newest generations on the store: when, by which mirror, what changed',
    options: [['--limit <n>', 'how many, at most 1000', '10'], JSON_FLAG],
    example: 'fleet log --limit 3',
    load: async () => (await import('./cli/generations.ts')).fleetLogCommand,
  },
  {
    path: 'fleet rollback',
    arguments: '<generation>',
    summary: 'publish the content of an older generation as the next one; no node syncs until "fleet release"',
    options: [JSON_FLAG],
    example: 'fleet rollback 40',
    load: async () => (await import('./cli/generations.ts')).fleetRollbackCommand,
  },
  {
    path: 'fleet release',
    summary: 'let nodes sync again after "fleet rollback"',
    options: [JSON_FLAG],
    example: 'fleet release',
    load: async () => (await import('./cli/generations.ts')).fleetReleaseCommand,
  },
  {
    path: 'fleet gc',
    summary: 'delete bundles and changes on the store that no generation needs any more',
    options: [['--dry-run', 'say what would be deleted, delete nothing'], JSON_FLAG],
    example: 'fleet gc --dry-run',
    load: async () => (await import('./cli/generations.ts')).fleetGcCommand,
  },
]
