import { MIRROR_DOCTOR, SUPPORT } from '../after-texts.ts'
import { JSON_FLAG, type Verb } from './verb.ts'

/** Commands about settings, problems and backups. */
export const ADMINISTRATION_VERBS: readonly Verb[] = [
  {
    path: 'config',
    summary: 'the settings in force and where each came from',
    options: [JSON_FLAG],
    example: 'config --json',
    load: async () => (await import('../mirror/config.ts')).configCommand,
  },
  {
    path: 'config check',
    arguments: '<file>',
    summary: 'check a file of settings, with the environment over it: all problems at once; exit status 2 for any',
    options: [JSON_FLAG],
    example: 'config check /etc/patchmirror.yaml',
    load: async () => (await import('../mirror/config.ts')).checkConfigCommand,
  },
  {
    path: 'config schema',
    summary: 'print the JSON Schema of a file of settings, for editors',
    example: 'config schema',
    load: async () => (await import('../mirror/config.ts')).configSchemaCommand,
  },
  {
    path: 'doctor',
    summary: 'check settings, data folder, network, credential and all else; say what to do',
    options: [JSON_FLAG],
    after: MIRROR_DOCTOR,
    example: 'doctor',
    load: async () => (await import('../doctor/doctor.ts')).mirrorDoctorCommand,
  },
  {
    path: 'support',
    arguments: '<file>',
    summary: 'write what a report of a problem needs into a new zip file, without secrets',
    options: [['--log <file>', 'also the end of this log file of the daemon'], JSON_FLAG],
    after: SUPPORT,
    example: 'support problem.zip --log /var/log/patchmirror.log',
    load: async () => (await import('../doctor/support.ts')).supportCommand,
  },
  {
    path: 'backup',
    arguments: '<file>',
    summary: 'write a checked copy of the databases, keys and webhook secrets, also beside a running daemon',
    options: [
      ['--private', 'only what no sync and no bundle brings back: keys, secrets, identity, ledger, deliveries'],
      ['--force', 'replace a file of this name'],
      JSON_FLAG,
    ],
    example: 'backup /backup/mirror.zip --force',
    load: async () => (await import('../backup/backup.ts')).backupCommand,
  },
  {
    path: 'restore',
    arguments: '<file>',
    summary: 'restore a backup into an empty data folder (data.dir)',
    options: [['--new-identity', 'be another mirror in bundles: where the old one may still run'], JSON_FLAG],
    example: 'restore /backup/mirror.zip --new-identity',
    load: async () => (await import('../backup/restore.ts')).restoreCommand,
  },
]
