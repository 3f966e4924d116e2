import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const BACKUP_VERBS: readonly Verb[] = [
  {
    path: 'backup',
    arguments: '<file>',
    summary: 'write a checked copy of the data, keys and secrets',
    options: [
      ['--private', 'only what no sync and no bundle brings back: keys, secrets, identity, ledger, deliveries'],
      ['--force', 'replace a file of this name'],
      JSON_FLAG,
    ],
    after: '\nAlso beside a running daemon.',
    example: 'backup /backup/mirror.zip --force',
    load: async () => (await import('./cli/backup.ts')).backupCommand,
  },
  {
    path: 'restore',
    arguments: '<file>',
    summary: 'restore a backup into an empty data folder (data.dir)',
    options: [['--new-identity', 'be another mirror in bundles: where the old one may still run'], JSON_FLAG],
    example: 'restore /backup/mirror.zip --new-identity',
    load: async () => (await import('./cli/restore.ts')).restoreCommand,
  },
]
